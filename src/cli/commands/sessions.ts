import { createInterface } from 'node:readline/promises'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { phrasesIn } from '../../core/phrases/phrases-in.ts'
import { systemClock } from '../../platform/system.ts'
import { apiOf, commandLine, findGateway, quoted, type CommonOptions } from '../connect.ts'
import { withGatewayApp, type OfflineOptions } from '../offline.ts'
import { ago, printJson, printLines, printPaged, table } from '../output.ts'
import { sessionPath } from '../remote-api.ts'
import { sessionWords, type SessionWords } from '../words.ts'
import type { SearchQuery } from '../../dashboard/search.ts'
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
  const words = await sessionWords(options)
  const sessions = Array.isArray(page['sessions']) ? page['sessions'].filter(isRecord) : []
  if (sessions.length === 0) return printLines([words.noSessions])
  const now = systemClock.now()
  const rows = sessions.map((row) => [
    text(row['key']),
    ago(Number(row['updatedAt']), now),
    text(row['lastChannel']),
    `${Number(row['messages'] ?? 0)}`,
    `${Number(row['tokens'] ?? 0)}`,
    money(row['usd']),
    text(row['title']),
  ])
  printLines(table([['KEY', 'UPDATED', 'CHANNEL', 'MESSAGES', 'TOKENS', 'COST', 'TITLE'], ...rows]))
  if (typeof page['nextCursor'] === 'string')
    printLines(['', words.more(commandLine(`sessions list${given(options)} --cursor ${page['nextCursor']}`, options))])
}

/** Options of the list that the next page needs again. */
function given({ limit, prefix }: ListOptions): string {
  return `${limit === 50 ? '' : ` --limit ${limit}`}${prefix === undefined ? '' : ` --prefix ${quoted(prefix)}`}`
}

function money(usd: unknown): string {
  return typeof usd === 'number' && usd > 0 ? `$${usd.toFixed(usd < 0.1 ? 4 : 2)}` : ''
}

export interface ShowOptions extends CommonOptions {
  readonly request?: number
  readonly blob?: string
  /** Only so many of the latest messages. */
  readonly last?: number
}

export async function showSession(key: string, options: ShowOptions): Promise<void> {
  if (options.blob !== undefined) return showBlob(key, options.blob, options)
  const query = {
    ...(options.request === undefined ? {} : { request: options.request }),
    ...(options.last === undefined ? {} : { limit: options.last }),
  }
  const shown = await call(options, (api) => api.show(key, query))
  if (options.json === true) return printJson(shown)
  if (options.request !== undefined) return printPaged([text(shown['rendered'])])
  await printPaged(renderSession(shown, await sessionWords(options)))
}

/** The whole text of one tool result, for people and for pipes. */
async function showBlob(key: string, id: string, options: CommonOptions): Promise<void> {
  const shown = await call(options, (api) => api.blob(key, id))
  if (options.json === true) printJson(shown)
  else printLines([text(shown['text'])])
}

export interface SearchOptions extends CommonOptions {
  readonly limit: number
}

/** Places in all transcripts that hold the text, newest conversation first. */
export async function searchSessions(wanted: string, options: SearchOptions): Promise<void> {
  const hits: Record<string, unknown>[] = []
  for (let cursor: string | undefined; ;) {
    const page = await call(options, (api) =>
      api.search({ text: wanted, limit: options.limit, ...(cursor === undefined ? {} : { cursor }) }),
    )
    if (Array.isArray(page['hits'])) hits.push(...page['hits'].filter(isRecord))
    cursor = typeof page['nextCursor'] === 'string' ? page['nextCursor'] : undefined
    if (cursor === undefined || hits.length >= options.limit) break
  }
  const shown = hits.slice(0, options.limit)
  if (options.json === true) return printJson({ hits: shown as JsonObject[] })
  if (shown.length === 0) return printLines([(await sessionWords(options)).nothingFound])
  printLines(
    shown.map(
      (hit) =>
        `${text(hit['key'])}  ${timeOf(hit['at'])}  ${text(hit['role'])}: ${text(hit['snippet']).replaceAll(/\s+/gu, ' ')}`,
    ),
  )
}

const FORMATS = ['jsonl', 'md', 'html'] as const

export interface ExportOptions extends CommonOptions {
  readonly format: (typeof FORMATS)[number]
}

/** A conversation as a file, on standard output. */
export async function exportSession(key: string, options: ExportOptions): Promise<void> {
  const running = await findGateway(options)
  const write = (piece: string): void => void process.stdout.write(piece)
  if (running === undefined) return withGatewayApp(options, (app) => app.dashboard.exportTo(key, options.format, write))
  await apiOf(running).stream(sessionPath(key, `/export?format=${options.format}`), write)
}

export async function resetSession(key: string, options: CommonOptions): Promise<void> {
  await report(await call({ ...options, changes: true }, (api) => api.reset(key)), options, (words) => words.reset(key))
}

export async function deleteSession(key: string, options: CommonOptions & { readonly yes?: boolean }): Promise<void> {
  if (options.yes !== true && !(await confirm((await sessionWords(options)).confirmDelete(key)))) {
    throw new GatewayError('FIELD_INVALID', 'nothing was deleted: confirm, or pass --yes', { field: 'yes' })
  }
  await report(await call({ ...options, changes: true }, (api) => api.delete(key)), options, (words) =>
    words.deleted(key),
  )
}

export async function restoreSession(key: string, options: CommonOptions & RestoreQuery): Promise<void> {
  const { archive, compaction } = options
  const what = { ...(archive === undefined ? {} : { archive }), ...(compaction === undefined ? {} : { compaction }) }
  const result = await call({ ...options, changes: true }, (api) => api.restore(key, what))
  await report(result, options, (words) =>
    words.language === 'en' && text(result['message']) !== '' ? text(result['message']) : words.restored(key),
  )
}

/** Through the running gateway when there is one; else on the files, with the home locked meanwhile. */
async function call(options: OfflineOptions, action: (api: SessionsApi) => Promise<JsonObject>): Promise<JsonObject> {
  const running = await findGateway(options)
  if (running === undefined)
    return withGatewayApp(options, (app) => action({ ...app.api, search: (query) => app.dashboard.search(query) }))
  const remote = apiOf(running)
  return action({
    list: ({ archived, ...query }) =>
      remote.get('/api/sessions', { ...query, ...(archived === true ? { archived: 1 } : {}) }),
    show: (key, query) => remote.get(sessionPath(key), { ...query }),
    blob: (key, id) => remote.get(sessionPath(key, `/blobs/${encodeURIComponent(id)}`)),
    reset: (key) => remote.post(sessionPath(key, '/reset')),
    delete: (key) => remote.delete(sessionPath(key)),
    restore: (key, what) => remote.post(sessionPath(key, '/restore'), { ...what }),
    search: ({ text: wanted, ...rest }) => remote.get('/api/search', { q: wanted, ...rest }),
  })
}

type SessionsApi = Pick<GatewayApi, 'list' | 'show' | 'blob' | 'reset' | 'delete' | 'restore'> & {
  search(query: SearchQuery): Promise<JsonObject>
}

async function report(
  result: JsonObject,
  options: CommonOptions,
  sentence: (words: SessionWords) => string,
): Promise<void> {
  if (options.json === true) printJson(result)
  else printLines([sentence(await sessionWords(options))])
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

function renderSession(shown: JsonObject, words: SessionWords): string[] {
  const session = isRecord(shown['session']) ? shown['session'] : {}
  const head = table([
    ['key', text(session['key'])],
    ['id', text(session['sessionId'])],
    ['updated', timeOf(Number(session['updatedAt']))],
    ['requests', `${Number(shown['requests'] ?? 0)}`],
    ['tokens', `${Number(session['tokens'] ?? 0)}`],
    ['usd', typeof session['usd'] === 'number' ? session['usd'].toFixed(4) : '?'],
    ...cleanupRow(shown['cleanup'], words),
    ...(Array.isArray(session['archived'])
      ? session['archived']
          .filter(isRecord)
          .map((old) => ['archived', `${text(old['sessionId'])} (${timeOf(Number(old['at']))})`])
      : []),
  ])
  const messages = Array.isArray(shown['messages']) ? shown['messages'].filter(isRecord) : []
  return [...head, '', ...messages.flatMap((message) => renderMessage(message, words))]
}

function cleanupRow(cleanup: unknown, { language }: SessionWords): string[][] {
  if (!isRecord(cleanup) || (cleanup['steps'] === 0 && cleanup['netTokensSaved'] === 0)) return []
  const number = (name: string): number => Number(cleanup[name] ?? 0)
  const totals = {
    steps: number('steps'),
    messages: number('messages'),
    tokensSaved: number('tokensSaved'),
    netTokensSaved: number('netTokensSaved'),
    netBasis: cleanup['netBasis'] === 'measured' ? 'measured' : 'estimated',
  } as const
  return [['cleanup', phrasesIn(language).statusCleanup(totals)]]
}

function renderMessage(message: Record<string, unknown>, words: SessionWords): string[] {
  const mark = markOf(message, words)
  const context = text(message['prependContext'])
  return [
    ...(context === '' ? [] : [words.hookContext, ...indented(context), '']),
    `${text(message['role'])} ${timeOf(message['timestamp'])}${mark}:`,
    ...indented(text(message['text'])),
    '',
  ]
}

function timeOf(timestamp: unknown): string {
  const at = new Date(typeof timestamp === 'number' ? timestamp : text(timestamp))
  return Number.isNaN(at.getTime()) ? '' : at.toISOString().slice(0, 19).replace('T', ' ')
}

const indented = (words: string): readonly string[] => words.split('\n').map((line) => `  ${line}`)

/** Why the model does not see it as it is. */
function markOf({ hidden, summarised, stopReason, error }: Record<string, unknown>, words: SessionWords): string {
  if (stopReason === 'aborted') return words.stopped
  if (stopReason === 'error') return words.failed(text(error))
  if (summarised === true) return words.summarised
  return hidden === true ? words.hidden : ''
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
