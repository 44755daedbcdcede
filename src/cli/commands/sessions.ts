import { createInterface } from 'node:readline/promises'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { systemClock } from '../../platform/system-clock.ts'
import { apiOf, findGateway, type CommonOptions } from '../connect.ts'
import { withGatewayApp } from '../offline.ts'
import { ago, printJson, printLines, table } from '../output.ts'
import { sessionPath } from '../remote-api.ts'
import type { GatewayApi, RestoreQuery } from '../../gateway/http.ts'

export interface ListOptions extends CommonOptions {
  readonly limit: number
  readonly cursor?: string
  readonly prefix?: string
}

export async function listSessions(options: ListOptions): Promise<void> {
  const { limit, cursor, prefix } = options
  const query = { limit, ...(cursor === undefined ? {} : { cursor }), ...(prefix === undefined ? {} : { prefix }) }
  const page = await call(options, (api) => api.list(query))
  if (options.json === true) return printJson(page)
  const sessions = Array.isArray(page['sessions']) ? page['sessions'].filter(isRecord) : []
  if (sessions.length === 0) return printLines(['no sessions'])
  const now = systemClock.now()
  const rows = sessions.map((row) => [
    text(row['key']),
    ago(Number(row['updatedAt']), now),
    text(row['lastChannel']),
    text(row['sessionId']),
  ])
  printLines(table([['KEY', 'UPDATED', 'CHANNEL', 'ID'], ...rows]))
  if (typeof page['nextCursor'] === 'string')
    printLines(['', `more: clew sessions list --cursor ${page['nextCursor']}`])
}

export interface ShowOptions extends CommonOptions {
  readonly request?: number
  readonly blob?: string
}

export async function showSession(key: string, options: ShowOptions): Promise<void> {
  if (options.blob !== undefined) return showBlob(key, options.blob, options)
  const query = options.request === undefined ? {} : { request: options.request }
  const shown = await call(options, (api) => api.show(key, query))
  if (options.json === true) return printJson(shown)
  if (options.request !== undefined) return printLines([text(shown['rendered'])])
  printLines(renderSession(shown))
}

/** The whole text of one tool result, for people and for pipes. */
async function showBlob(key: string, id: string, options: CommonOptions): Promise<void> {
  const shown = await call(options, (api) => api.blob(key, id))
  if (options.json === true) printJson(shown)
  else printLines([text(shown['text'])])
}

export async function resetSession(key: string, options: CommonOptions): Promise<void> {
  report(
    await call(options, (api) => api.reset(key)),
    options,
    `${key} starts afresh; the old conversation is archived`,
  )
}

export async function deleteSession(key: string, options: CommonOptions & { readonly yes?: boolean }): Promise<void> {
  if (options.yes !== true && !(await confirm(`Delete "${key}" and its archive for good?`))) {
    throw new GatewayError('FIELD_INVALID', 'nothing was deleted: confirm, or pass --yes', { field: 'yes' })
  }
  report(await call(options, (api) => api.delete(key)), options, `${key} is deleted`)
}

export async function restoreSession(key: string, options: CommonOptions & RestoreQuery): Promise<void> {
  const { archive, compaction } = options
  const what = { ...(archive === undefined ? {} : { archive }), ...(compaction === undefined ? {} : { compaction }) }
  const result = await call(options, (api) => api.restore(key, what))
  report(result, options, text(result['message']) || `${key} is restored`)
}

/** Through the running gateway when there is one; else on the files, with the home locked meanwhile. */
async function call(options: CommonOptions, action: (api: SessionsApi) => Promise<JsonObject>): Promise<JsonObject> {
  const running = await findGateway(options)
  if (running === undefined) return withGatewayApp(options, (app) => action(app.api))
  const remote = apiOf(running)
  return action({
    list: ({ archived, ...query }) =>
      remote.get('/api/sessions', { ...query, ...(archived === true ? { archived: 1 } : {}) }),
    show: (key, query) => remote.get(sessionPath(key), { ...query }),
    blob: (key, id) => remote.get(sessionPath(key, `/blobs/${encodeURIComponent(id)}`)),
    reset: (key) => remote.post(sessionPath(key, '/reset')),
    delete: (key) => remote.delete(sessionPath(key)),
    restore: (key, what) => remote.post(sessionPath(key, '/restore'), { ...what }),
  })
}

type SessionsApi = Pick<GatewayApi, 'list' | 'show' | 'blob' | 'reset' | 'delete' | 'restore'>

function report(result: JsonObject, options: CommonOptions, sentence: string): void {
  if (options.json === true) printJson(result)
  else printLines([sentence])
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/iu.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

function renderSession(shown: JsonObject): string[] {
  const session = isRecord(shown['session']) ? shown['session'] : {}
  const head = table([
    ['key', text(session['key'])],
    ['id', text(session['sessionId'])],
    ['updated', new Date(Number(session['updatedAt'])).toISOString()],
    ['requests', `${Number(shown['requests'] ?? 0)}`],
    ...cleanupRow(shown['cleanup']),
    ...(Array.isArray(session['archived'])
      ? session['archived']
          .filter(isRecord)
          .map((old) => ['archived', `${text(old['sessionId'])} (${new Date(Number(old['at'])).toISOString()})`])
      : []),
  ])
  const messages = Array.isArray(shown['messages']) ? shown['messages'].filter(isRecord) : []
  return [...head, '', ...messages.flatMap(renderMessage)]
}

function cleanupRow(cleanup: unknown): string[][] {
  if (!isRecord(cleanup) || (cleanup['steps'] === 0 && cleanup['netTokensSaved'] === 0)) return []
  const number = (name: string): string => `${Number(cleanup[name] ?? 0)}`
  const net = `net of cache effects ${number('netTokensSaved')} so far (${text(cleanup['netBasis'])})`
  const saved = `${number('messages')} messages of ${number('steps')} steps, ${number('tokensSaved')} tokens saved`
  return [['cleanup', `${saved}; ${net}`]]
}

function renderMessage(message: Record<string, unknown>): string[] {
  const mark = markOf(message)
  const context = text(message['prependContext'])
  return [
    ...(context === '' ? [] : ['context from a hook:', ...indented(context), '']),
    `${text(message['role'])}${mark}:`,
    ...indented(text(message['text'])),
    '',
  ]
}

const indented = (words: string): readonly string[] => words.split('\n').map((line) => `  ${line}`)

/** Why the model does not see it as it is. */
function markOf({ hidden, summarised }: Record<string, unknown>): string {
  if (summarised === true) return ' (summarised for the model)'
  return hidden === true ? ' (hidden from the model)' : ''
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
