import { createHash } from 'node:crypto'
import { isRecord } from '../base/json.ts'
import type { Sampling } from '../core/client-turn.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import type { PreparedMessage } from '../core/message.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import type { ModelRequest, ToolSpec } from '../provider/provider.ts'

export const SETUP_ENTRY_TYPE = 'clew.setup'

/** What besides the history makes a request: written to the transcript when it changes, so that old requests can be rebuilt. */
export interface Setup {
  readonly hash: string
  readonly system: string
  readonly tools: readonly ToolSpec[]
  readonly maxOutputTokens: number
  readonly thinkingLevel: string
  /** What a client decided about the turn besides. */
  readonly client?: ClientSetup
}

/** The system prompt is the client's when `system` is true. */
export interface ClientSetup {
  readonly system: boolean
  readonly sampling?: Sampling
  readonly toolChoice?: 'required' | { readonly name: string }
}

export function createSetup(setup: Omit<Setup, 'hash'>): Setup {
  const { system, tools, maxOutputTokens, thinkingLevel, client } = setup
  const more = client === undefined ? [] : [client]
  const hash = createHash('sha256')
    .update(JSON.stringify([system, tools, maxOutputTokens, thinkingLevel, ...more]))
    .digest('hex')
  return { hash, system, tools, maxOutputTokens, thinkingLevel, ...(client === undefined ? {} : { client }) }
}

/** What a request holds besides its setup. */
interface RequestContents {
  readonly model: string
  readonly messages: readonly PreparedMessage[]
  readonly projection: 'normal' | 'safest'
  readonly sessionId: string
}

/** How a prepared history, a setup and a session make a request: the same when it is sent and when it is rebuilt. */
export function modelRequest(
  { system, tools, maxOutputTokens, thinkingLevel, client: { sampling, toolChoice } = { system: false } }: Setup,
  { model, messages, projection, sessionId }: RequestContents,
): ModelRequest {
  return {
    model,
    system,
    tools,
    maxOutputTokens,
    thinkingLevel,
    ...(sampling === undefined ? {} : { sampling }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    messages,
    plainTurns: projection === 'safest',
    cacheKey: sessionId,
  }
}

/** The entry to append when the latest one in view describes another setup. */
export function setupDrafts(entries: readonly Entry[], setup: Setup): readonly EntryDraft[] {
  return latestSetup(entries)?.hash === setup.hash
    ? []
    : [{ type: 'custom', customType: SETUP_ENTRY_TYPE, data: setup }]
}

export function latestSetup(
  entries: readonly Entry[],
  isWanted: (setup: Setup) => boolean = () => true,
): Setup | undefined {
  return readPath(entries, SETUPS).findLast(isWanted)
}

const SETUPS: PathReader<Setup[]> = {
  start: () => [],
  add(setups, entry) {
    if (entry.type === 'custom' && entry.customType === SETUP_ENTRY_TYPE && isSetup(entry.data)) setups.push(entry.data)
  },
}

function isSetup(data: unknown): data is Setup {
  if (!isRecord(data)) return false
  const { hash, system, tools, maxOutputTokens, thinkingLevel, client } = data
  if (client !== undefined && !isRecord(client)) return false
  if (typeof hash !== 'string' || typeof system !== 'string' || typeof thinkingLevel !== 'string') return false
  return Number.isFinite(maxOutputTokens) && Array.isArray(tools) && tools.every(isToolSpec)
}

function isToolSpec(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { name, description, parameters } = value
  return typeof name === 'string' && typeof description === 'string' && isRecord(parameters)
}

const WORKSPACE_BEGIN = '<workspace>'
const WORKSPACE_END = '</workspace>'

/** How the workspace stands in the system prompt; nothing when it has nothing to say. */
export function workspaceBlock(text: string): string {
  if (text === '') return ''
  const intro =
    'Files of the workspace. Follow what they ask for; read a skill with the tool "files" when it fits the task.'
  return `${WORKSPACE_BEGIN}\n${intro}\n${text.replaceAll(WORKSPACE_END, '')}\n${WORKSPACE_END}`
}

/**
 * The block of the latest request in view, which stays as it is for the whole session: a file that changes in the middle
 * would cost the provider's prompt cache. Undefined when there was no request, or a summary took it out of view.
 */
export function earlierWorkspaceBlock(entries: readonly Entry[]): string | undefined {
  const system = latestSetup(entries, ({ client }) => client?.system !== true)?.system
  if (system === undefined) return undefined
  const start = system.lastIndexOf(WORKSPACE_BEGIN)
  return start < 0 || !system.endsWith(WORKSPACE_END) ? '' : system.slice(start)
}
