import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import { isRecord } from '../base/json.ts'
import type { Log, LogFacts } from '../base/log.ts'
import type { EntryDraft, Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import {
  type AssistantMessage,
  type Message,
  type Provenance,
  type ToolResultMessage,
  type UserMessage,
  toolCallsOf,
} from '../core/message.ts'
import { withBoundedDepth, isRole, soundMessage, soundProvenance } from '../core/sound-message.ts'
import type { Blobs } from './blobs.ts'
import { capToolResult, type ToolResultCap } from './cap-tool-result.ts'

/** The conversation, and the step of it, that a message is written for. */
interface WrittenBy {
  readonly sessionId: SessionId
  readonly run?: string
}

/** Hooks may be slow or fail; then the message goes on as it was. Inputs are frozen. */
export interface WriteHooks {
  /** Sees every message before it is stored; `block` keeps it out of the transcript. */
  before_message_write?(event: WrittenBy & { readonly message: Message }): HookAnswer<{
    readonly block?: boolean
    readonly message?: Message
  }>
  /** Sees every tool result, after the first cap and before the second. Role and call id stay as they were. */
  tool_result_persist?(
    event: WrittenBy & {
      readonly toolName: string
      readonly toolCallId: string
      readonly message: ToolResultMessage
      readonly isSynthetic: boolean
    },
  ): HookAnswer<{ readonly message?: ToolResultMessage }>
  /** They end by themselves, each handler within its own time: a limit for all together would take answers back. */
  readonly areBounded?: true
  /** What a line of the log says about where the message belongs. */
  placeOf?(written: WrittenBy): Promise<LogFacts>
}

type HookAnswer<T> = T | undefined | void | Promise<T | undefined | void>

export interface GuardOptions {
  readonly sessionId: SessionId
  readonly clock: Clock
  readonly log: Log
  readonly blobs: Blobs
  readonly cap: ToolResultCap
  readonly hooks: WriteHooks
  readonly hookTimeoutMs: number
  /** The step that the draft belongs to. */
  readonly run?: string
}

export interface Guarded {
  readonly drafts: readonly EntryDraft[]
  readonly open: OpenCalls
}

/** The way of a draft into the transcript, stage by stage; see the table in `docs/transcript-format.md`. */
export async function guardDrafts(
  drafts: readonly EntryDraft[],
  open: OpenCalls,
  provenance: Provenance | undefined,
  options: GuardOptions,
): Promise<Guarded> {
  const passed: EntryDraft[] = []
  const calls = new Map(open)
  for (const draft of drafts) {
    if (draft.type !== 'message') {
      passed.push(draft)
      continue
    }
    const about = draft.stepId === undefined ? options : { ...options, run: draft.stepId }
    const message = await guardMessage(validMessage(draft.message), calls, provenance, false, about)
    if (closesFrame(draft.message)) {
      passed.push(...(await closeOpenCalls(calls, about)))
      calls.clear()
    }
    const stored = message === undefined ? undefined : { ...draft, message }
    // A blocked result counts as given: its call must not get an invented one on top. Calls that are not stored open none.
    if (stored !== undefined || draft.message.role === 'toolResult') passEntry(calls, stored ?? draft)
    if (stored !== undefined) passed.push(stored)
  }
  return { drafts: passed, open: calls }
}

function closesFrame(message: Message): boolean {
  return message.role !== 'toolResult'
}

async function closeOpenCalls(open: OpenCalls, options: GuardOptions): Promise<EntryDraft[]> {
  const closed: EntryDraft[] = []
  for (const [callId, call] of open) {
    const draft = syntheticResult(callId, call, options.clock.now())
    if (draft.type !== 'message') continue
    const message = await guardMessage(draft.message, open, undefined, true, options)
    if (message !== undefined) closed.push({ ...draft, message })
  }
  return closed
}

/** Undefined when nothing of it may be stored. */
async function guardMessage(
  message: Message,
  open: OpenCalls,
  provenance: Provenance | undefined,
  isSynthetic: boolean,
  options: GuardOptions,
): Promise<Message | undefined> {
  if (message.role !== 'toolResult') {
    const kept = withoutInvalidParts(message, provenance)
    return kept && beforeWrite(kept, options)
  }
  const { blobs, cap } = options
  const named = withToolName(message, open)
  const persisted = await toolResultPersist(await capToolResult(named, cap, blobs), isSynthetic, options)
  const written = await beforeWrite(persisted, options)
  return written && capToolResult(written, cap, blobs)
}

/** Undefined when nothing is left. Roles of later versions pass as they are. */
function withoutInvalidParts(message: Message, provenance: Provenance | undefined): Message | undefined {
  if (message.role === 'assistant') return withoutInvalidCalls(message)
  return message.role === 'user' ? withProvenance(message, provenance) : message
}

/** Drafts come from hooks and from programs too: a known role is given the shape it promises, others pass as they are. */
function validMessage(message: unknown): Message {
  if (!isRecord(message) || typeof message['role'] !== 'string' || message['role'] === '') {
    throw new GatewayError('FIELD_INVALID', 'a message needs a role', { field: 'message.role' })
  }
  if (message['role'] === 'compactionSummary' || message['role'] === 'branchSummary') {
    throw new GatewayError('FIELD_INVALID', 'summaries are entries of their own, not messages', {
      field: 'message.role',
    })
  }
  if (message['role'] === 'toolResult' && (typeof message['toolCallId'] !== 'string' || message['toolCallId'] === '')) {
    throw new GatewayError('FIELD_INVALID', 'a tool result needs the id of its call', { field: 'message.toolCallId' })
  }
  return isRole(message['role']) ? soundMessage(withBoundedDepth(message)) : (message as unknown as Message)
}

/** Half-streamed calls have no name, no id or no arguments; no provider takes them back. */
function withoutInvalidCalls(message: AssistantMessage): AssistantMessage | undefined {
  const content = message.content.filter(
    (block) => block.type !== 'toolCall' || (block.id !== '' && block.name !== '' && block.invalidArguments !== ''),
  )
  if (content.length === message.content.length) return message
  return content.length === 0 ? undefined : { ...message, content }
}

function withProvenance(message: UserMessage, given: Provenance | undefined): UserMessage {
  const provenance = trimmedProvenance(message.provenance) ?? trimmedProvenance(given)
  if (provenance === undefined && message.provenance === undefined) return message
  const { provenance: _, ...rest } = message
  return provenance === undefined ? rest : Object.assign(rest, { provenance })
}

function trimmedProvenance(value: unknown): Provenance | undefined {
  const provenance = soundProvenance(value)
  if (provenance === undefined) return undefined
  const trimmed = Object.entries(provenance).map(([name, field]) => [name, field.trim()])
  return Object.fromEntries(trimmed.filter(([, field]) => field !== '')) as Provenance
}

function withToolName(message: ToolResultMessage, open: OpenCalls): ToolResultMessage {
  const own = message.toolName.trim()
  const toolName = own === '' ? (open.get(message.toolCallId)?.toolName ?? 'unknown') : own
  return toolName === message.toolName ? message : { ...message, toolName }
}

async function toolResultPersist(
  message: ToolResultMessage,
  isSynthetic: boolean,
  options: GuardOptions,
): Promise<ToolResultMessage> {
  const { tool_result_persist: hook } = options.hooks
  if (hook === undefined) return message
  const { toolName, toolCallId } = message
  const event = { ...writtenBy(options), toolName, toolCallId, message: Object.freeze(message), isSynthetic }
  const answer = await askHook('tool_result_persist', () => hook(event), options)
  return answer?.message === undefined ? message : sameIdentity(answer.message, message)
}

async function beforeWrite<M extends Message>(message: M, options: GuardOptions): Promise<M | undefined> {
  const { before_message_write: hook } = options.hooks
  if (hook === undefined) return message
  Object.freeze(message)
  const answer = await askHook('before_message_write', () => hook({ ...writtenBy(options), message }), options)
  if (answer?.block === true) return undefined
  return answer?.message === undefined ? message : sameIdentity(answer.message, message)
}

/** A hook may change what a message says, not what it is an answer to. */
function sameIdentity<M extends Message>(changed: Message, original: M): M {
  const identity =
    original.role === 'toolResult' ? { role: original.role, toolCallId: original.toolCallId } : { role: original.role }
  return { ...changed, ...identity } as M
}

function writtenBy({ sessionId, run }: GuardOptions): WrittenBy {
  return { sessionId, ...(run === undefined ? {} : { run }) }
}

async function askHook<T>(hook: string, ask: () => HookAnswer<T>, options: GuardOptions): Promise<T | undefined> {
  const { clock, log, hookTimeoutMs } = options
  const timeout = new AbortController()
  try {
    if (options.hooks.areBounded === true) return recordOrNone(await ask())
    const late = sleep(clock, hookTimeoutMs, timeout.signal).then(() => {
      throw new Error('the hook took too long')
    })
    const answer = await Promise.race([Promise.resolve(ask()), late.catch(rethrowUnlessAborted(timeout.signal))])
    return recordOrNone(answer)
  } catch {
    const written = writtenBy(options)
    const place = await options.hooks.placeOf?.(written)
    log.warn('a hook failed; the message is stored without it', { hook, ...written, ...place })
    return undefined
  } finally {
    timeout.abort()
  }
}

function recordOrNone<T>(answer: T | undefined | void): T | undefined {
  return isRecord(answer) ? answer : undefined
}

function rethrowUnlessAborted(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (signal.aborted) return undefined
    throw error
  }
}

/** Calls of the last assistant message that have no result yet, in the order they were made. */
export type OpenCalls = ReadonlyMap<string, OpenCall>

export interface OpenCall {
  readonly toolName: string
  readonly stepId?: string
  readonly round?: number
}

export function openCallsOf(path: readonly Entry[]): OpenCalls {
  const open = new Map<string, OpenCall>()
  // Any message but a result decides alone what is open after it.
  const from = path.findLastIndex((entry) => entry.type === 'message' && entry.message.role !== 'toolResult')
  for (const entry of path.slice(Math.max(0, from))) passEntry(open, entry)
  return open
}

/**
 * Changes `open` to what is open after the entry. A turn that ended in error or abort opens no calls: an invented result
 * for it would have no place a provider accepts. Any other message but a result closes the frame; what was open before
 * it stays open for good, for the view to close.
 */
export function passEntry(open: Map<string, OpenCall>, entry: Entry | EntryDraft): void {
  if (entry.type !== 'message') return
  const { message, stepId, round } = entry
  if (message.role === 'toolResult') {
    open.delete(message.toolCallId)
    return
  }
  open.clear()
  if (message.role !== 'assistant' || message.stopReason === 'error' || message.stopReason === 'aborted') return
  for (const { id, name } of toolCallsOf(message))
    open.set(id, {
      toolName: name,
      ...(stepId === undefined ? {} : { stepId }),
      ...(round === undefined ? {} : { round }),
    })
}

/** In `details.reason`; OpenClaw's later versions use the same word. */
export const MISSING_RESULT = 'missing_tool_result'

/** Marked so that a late real result can replace it in the view. */
export function syntheticResult(callId: string, call: OpenCall, at: number): EntryDraft {
  const message: ToolResultMessage = {
    role: 'toolResult',
    toolCallId: callId,
    toolName: call.toolName,
    content: [
      { type: 'text', text: '[clew] missing tool result: the call was interrupted before its result was stored.' },
    ],
    details: { reason: MISSING_RESULT, synthetic: true },
    isError: true,
    timestamp: at,
  }
  const { stepId, round } = call
  return {
    type: 'message',
    message,
    ...(stepId === undefined ? {} : { stepId }),
    ...(round === undefined ? {} : { round }),
  }
}
