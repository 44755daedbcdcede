import {
  type JsonBounds,
  jsonExcess,
  parseForeignJson,
  isOneOf,
  isRecord,
  parseJson,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts'
import { GatewayError, type ErrorCode } from '../../core/errors.ts'
import type { SessionEvent, TurnEvent } from '../../core/event.ts'
import type { SessionKey } from '../../core/ids.ts'
import { type ControlCommand, type Reply, type RouteFields, type SessionRecord, faultOfId } from '../../core/inbound.ts'
import { assertNever } from '../../base/assert-never.ts'
import type { ControlResult } from '../channel.ts'
import type { AnswerFile } from '../../core/outcome.ts'
import type { FileReference } from '../files/file-store.ts'

/** A frame a client sent, understood. */
export type InboundFrame =
  | {
      readonly kind: 'message'
      /** As it was sent, to be echoed; absent when the client gave none. */
      readonly id?: string | number
      readonly content: string
      readonly route: RouteFields
      readonly stream: boolean
      readonly ack: boolean
      readonly autoCleanup?: boolean
      /** Everything that was sent, for fields that only some doors know. */
      readonly fields: Readonly<Record<string, unknown>>
      readonly files: readonly FileReference[]
    }
  | {
      readonly kind: 'control'
      readonly type: ControlType
      readonly command: ControlCommand
      readonly requestId?: JsonValue
    }
  | { readonly kind: 'ack'; readonly seq: number }
  /** A frame of our own kind that came back, from a hub that echoes. */
  | { readonly kind: 'echo' }

export const CONTROL_TYPES = [
  'session.reset',
  'session.delete',
  'session.get',
  'session.list',
  'session.cancel',
] as const
export type ControlType = (typeof CONTROL_TYPES)[number]

const OWN_TYPES = new Set(['progress', 'complete', 'error', 'accepted', 'event', 'connected'])

/** A frame has a few fields; a thousand times as much is no frame, and it is not parsed. */
const FRAME_BOUNDS: JsonBounds = { maxDepth: 100, maxMarks: 10_000 }
const EXCESSIVE = {
  depth: `the frame is nested deeper than ${FRAME_BOUNDS.maxDepth} levels`,
  marks: `the frame holds more than ${FRAME_BOUNDS.maxMarks} values`,
} as const

/** What could be read of a frame that is refused, so that the error can be matched to its cause. */
export class FrameRefused extends GatewayError {
  readonly messageId: string | number | undefined
  readonly control: { readonly type: ControlType; readonly key?: string; readonly requestId?: JsonValue } | undefined

  constructor(
    code: ErrorCode,
    message: string,
    about: {
      readonly field?: string
      readonly messageId?: string | number
      readonly control?: FrameRefused['control']
    } = {},
  ) {
    super(code, message, about.field === undefined ? {} : { field: about.field })
    this.messageId = about.messageId
    this.control = about.control
  }
}

export function decodeFrame(text: string, maxFrameBytes: number): InboundFrame {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxFrameBytes)
    throw new FrameRefused('FRAME_TOO_LARGE', `the frame has ${bytes} bytes; the limit is ${maxFrameBytes}`)
  const excess = jsonExcess(text, FRAME_BOUNDS)
  if (excess !== undefined) throw new FrameRefused('FRAME_MALFORMED', EXCESSIVE[excess])
  const frame = parseJson(text)
  if (frame === undefined) throw new FrameRefused('FRAME_MALFORMED', 'the frame is not valid JSON')
  if (!isRecord(frame)) throw new FrameRefused('FRAME_MALFORMED', 'the frame is not a JSON object')
  const { type } = frame
  if (type === undefined || type === null || type === '') return decodeMessage(frame)
  if (typeof type !== 'string') throw new FrameRefused('FRAME_MALFORMED', '"type" is not a string')
  if (type === 'ack') return { kind: 'ack', seq: requireSeq(frame['seq']) }
  if (isControlType(type)) return 'data' in frame ? { kind: 'echo' } : decodeControl(type, frame)
  if (OWN_TYPES.has(type)) return { kind: 'echo' }
  throw new FrameRefused('FRAME_MALFORMED', `there is no frame type "${type.slice(0, 40)}"`)
}

const MAX_LIMITED_PARSE = 64 * 1024

/** The refusal of a frame that came too fast, naming its message or request where that can be read cheaply. */
export function rateLimited(text: string): FrameRefused {
  const refuse = (about: ConstructorParameters<typeof FrameRefused>[2]): FrameRefused =>
    new FrameRefused('RATE_LIMITED', 'too many frames; slow down', about)
  const frame = text.length > MAX_LIMITED_PARSE ? undefined : parseForeignJson(text, FRAME_BOUNDS)
  if (!isRecord(frame)) return refuse({})
  const { type, id, key, requestId } = frame
  if (typeof type === 'string' && isControlType(type)) {
    const control = { type, ...(isId(key) ? { key: String(key) } : {}) }
    return refuse({
      control: { ...control, ...(requestId === undefined ? {} : { requestId: requestId as JsonValue }) },
    })
  }
  return refuse(isId(id) ? { messageId: id } : {})
}

function decodeMessage(frame: Record<string, unknown>): InboundFrame {
  const id = frame['id']
  if (id !== undefined && id !== null && !isId(id))
    throw new FrameRefused('FIELD_INVALID', '"id" must be a string or a number', { field: 'id' })
  const wrongId = faultOfId('id', id)
  if (wrongId !== undefined) throw new FrameRefused('FIELD_INVALID', wrongId, { field: 'id' })
  const about = isId(id) ? { messageId: id } : {}
  const content = frame['content']
  if (typeof content !== 'string') {
    throw new FrameRefused('FIELD_INVALID', '"content" must be a string', { ...about, field: 'content' })
  }
  if (content.trim() === '')
    throw new FrameRefused('FIELD_INVALID', '"content" is empty', { ...about, field: 'content' })
  const autoCleanup =
    optionalBoolean(frame, 'auto_cleanup_enabled', about) ?? optionalBoolean(frame, 'autoCleanup', about)
  return {
    kind: 'message',
    ...(isId(id) && String(id).trim() !== '' ? { id } : {}),
    content,
    route: decodeRoute(frame, about),
    stream: optionalBoolean(frame, 'stream', about) ?? false,
    ack: optionalBoolean(frame, 'ack', about) ?? false,
    fields: frame,
    files: decodeFiles(frame['files'], about),
    ...(autoCleanup === undefined ? {} : { autoCleanup }),
  }
}

const BASE64 = /^[\w+/-]*={0,2}$/u

function decodeFiles(value: unknown, about: { readonly messageId?: string | number }): readonly FileReference[] {
  if (value === undefined || value === null) return []
  const refuse = (message: string): never => {
    throw new FrameRefused('FIELD_INVALID', message, { ...about, field: 'files' })
  }
  if (!Array.isArray(value)) return refuse('"files" must be a list')
  return value.map((file: unknown): FileReference => {
    if (!isRecord(file)) return refuse('each of "files" must be an object')
    const { id, name, mimeType, data } = file
    if (typeof id === 'string') return { id }
    if (typeof name !== 'string' || typeof data !== 'string' || !BASE64.test(data))
      return refuse('each of "files" must have an "id", or a "name" and base64 "data"')
    return { name, mimeType: typeof mimeType === 'string' ? mimeType : '', data: Buffer.from(data, 'base64') }
  })
}

const ROUTE_FIELDS = ['session', 'peerKind', 'peerId', 'chatType', 'chatId', 'senderId', 'topicId', 'threadId'] as const

function decodeRoute(frame: Record<string, unknown>, about: { readonly messageId?: string | number }): RouteFields {
  const route: { -readonly [F in keyof RouteFields]: RouteFields[F] } = {}
  for (const field of ROUTE_FIELDS) {
    const value = frame[field]
    if (value === undefined || value === null) continue
    if (!isId(value))
      throw new FrameRefused('FIELD_INVALID', `"${field}" must be a string or a number`, { ...about, field })
    const fault = faultOfId(field, value)
    if (fault !== undefined) throw new FrameRefused('FIELD_INVALID', fault, { ...about, field })
    route[field] = String(value)
  }
  return route
}

function decodeControl(type: ControlType, frame: Record<string, unknown>): InboundFrame {
  const requestId = frame['requestId'] as JsonValue | undefined
  const key = frame['key']
  const control = {
    type,
    ...(isId(key) ? { key: String(key) } : {}),
    ...(requestId === undefined ? {} : { requestId }),
  }
  const base = { kind: 'control', type, ...(requestId === undefined ? {} : { requestId }) } as const
  const refuse = (field: string, message: string): never => {
    throw new FrameRefused('FIELD_INVALID', message, { field, control })
  }
  if (type === 'session.list') return { ...base, command: decodeList(frame, refuse) }
  const id = frame['id']
  if (type === 'session.get' && !isPresent(key) && isId(id))
    return { ...base, command: { type: 'get', sessionId: String(id) } }
  if (!isId(key) || String(key).trim() === '') return refuse('key', '"key" must be a non-empty string')
  const command = type.slice('session.'.length) as 'reset' | 'delete' | 'get' | 'cancel'
  return { ...base, command: { type: command, key: String(key) } }
}

function decodeList(frame: Record<string, unknown>, refuse: (field: string, message: string) => never): ControlCommand {
  const { limit, cursor, prefix } = frame
  if (isPresent(limit) && !(typeof limit === 'number' && Number.isSafeInteger(limit) && limit >= 1)) {
    refuse('limit', '"limit" must be a whole number above 0')
  }
  if (isPresent(cursor) && typeof cursor !== 'string') refuse('cursor', '"cursor" must be a string')
  if (isPresent(prefix) && typeof prefix !== 'string') refuse('prefix', '"prefix" must be a string')
  return {
    type: 'list',
    ...(typeof limit === 'number' ? { limit } : {}),
    ...(typeof cursor === 'string' ? { cursor } : {}),
    ...(typeof prefix === 'string' ? { prefix } : {}),
  }
}

export function isControlType(type: string): type is ControlType {
  return isOneOf(type, CONTROL_TYPES)
}

function requireSeq(seq: unknown): number {
  if (typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0) return seq
  throw new FrameRefused('FIELD_INVALID', '"seq" must be a whole number', { field: 'seq' })
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value))
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function optionalBoolean(
  frame: Record<string, unknown>,
  field: string,
  about: { readonly messageId?: string | number },
): boolean | undefined {
  const value = frame[field]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'boolean') return value
  throw new FrameRefused('FIELD_INVALID', `"${field}" must be true or false`, { ...about, field })
}

/** What the webhook channel stores with a message to answer it. */
export interface WebhookReplyTo extends JsonObject {
  readonly connection: string
  readonly messageId: string | number
  readonly stream: boolean
}

export interface FrameAbout {
  readonly session: SessionKey
  readonly messageId: string | number
  readonly runId: string
  readonly seq: number
}

/** Where a file of an answer is found. */
export type FileUrl = (id: string) => string

export function encodeReply(reply: Reply, fileUrl: FileUrl): string {
  return JSON.stringify(replyFrame(reply, (reply.replyTo as WebhookReplyTo).messageId, fileUrl))
}

/** The files of an answer; nothing where there are none. */
export function filesField(files: readonly AnswerFile[] | undefined, fileUrl: FileUrl): JsonObject {
  if (files === undefined || files.length === 0) return {}
  return {
    files: files.map(({ id, name, mimeType, bytes }) => ({ id, name, mimeType, bytes, url: fileUrl(id) })),
  }
}

/** The terminal frame of a message, the same on every door that speaks in frames. */
export function replyFrame(reply: Reply, messageId: string | number, fileUrl: FileUrl): JsonObject {
  const about = {
    session: reply.key,
    messageId,
    runId: reply.run,
    seq: reply.seq,
    ...(reply.redelivered ? { redelivered: true } : {}),
  }
  const { content } = reply
  switch (content.kind) {
    case 'complete': {
      const { text, model, usage } = content
      return {
        type: 'complete',
        content: text,
        ...about,
        ...filesField(content.files, fileUrl),
        ...(model === undefined ? {} : { model }),
        ...(usage === undefined ? {} : { usage: { ...usage } }),
      }
    }
    case 'error':
      return {
        type: 'error',
        error: content.message,
        code: content.code,
        ...(content.partialText === '' ? {} : { content: content.partialText }),
        ...about,
      }
    case 'cancelled':
      return {
        type: 'error',
        error: CANCEL_TEXTS[content.by],
        code: 'TURN_CANCELLED',
        reason: content.by,
        ...about,
      }
    default:
      return assertNever(content)
  }
}

const CANCEL_TEXTS = {
  user: 'the answer was stopped',
  reset: 'the conversation was reset before this message was answered',
  delete: 'the conversation was deleted before this message was answered',
  'newer-message': 'a newer message took the place of this one',
  shutdown: 'the gateway is shutting down',
} as const

export function encodeProgress(content: string, about: FrameAbout): string {
  return JSON.stringify({ type: 'progress', content, ...about })
}

export function encodeAccepted(about: FrameAbout): string {
  return JSON.stringify({ type: 'accepted', ...about })
}

export function encodeRefusal(
  error: GatewayError,
  seq: number,
  messageId?: string | number,
  session?: SessionKey,
): string {
  return JSON.stringify({
    type: 'error',
    error: error.message,
    code: error.code,
    ...retryableOf(error),
    ...(typeof error.facts['field'] === 'string' ? { field: error.facts['field'] } : {}),
    ...(session === undefined ? {} : { session }),
    ...(messageId === undefined ? {} : { messageId }),
    seq,
  })
}

export function isShown({ event }: SessionEvent): boolean {
  return eventData(event) !== undefined
}

/** Undefined for events that streaming clients see in another form (progress, the terminal frame) or not at all. */
export function encodeEvent({ event }: SessionEvent, about: FrameAbout): string | undefined {
  const data = eventData(event)
  return data === undefined ? undefined : JSON.stringify({ type: 'event', ...data, ...about })
}

function eventData(event: TurnEvent): { readonly event: string; readonly data: JsonObject } | undefined {
  switch (event.type) {
    case 'tool-start':
      return {
        event: 'tool_start',
        data: { callId: event.callId, tool: event.tool, arguments: event.arguments, round: event.round },
      }
    case 'tool-end':
      return {
        event: 'tool_end',
        data: {
          callId: event.callId,
          tool: event.tool,
          failed: event.failed,
          duration_ms: event.durationMs,
          round: event.round,
        },
      }
    case 'approval-requested':
      return {
        event: 'approval_requested',
        data: {
          id: event.id,
          callId: event.callId,
          tool: event.tool,
          arguments: event.arguments,
          expiresAt: event.expiresAt,
          round: event.round,
        },
      }
    case 'approval-decided':
      return {
        event: 'approval_decided',
        data: { id: event.id, callId: event.callId, tool: event.tool, verdict: event.verdict, round: event.round },
      }
    case 'model-retry':
      return {
        event: 'model_retry',
        data: {
          attempt: event.attempt,
          delay_ms: event.delayMs,
          code: event.code,
          ...(event.model === undefined ? {} : { model: event.model }),
        },
      }
    case 'compaction-end':
      return {
        event: 'compaction_completed',
        data: { tokens_before: event.tokensBefore, tokens_after: event.tokensAfter, estimated: event.estimated },
      }
    case 'step-cleanup-completed':
      return {
        event: 'step_cleanup_completed',
        data: {
          stepId: event.stepId,
          cleaned_messages: event.cleanedMessages,
          remaining_messages: event.remainingMessages,
          tokens_saved: event.tokensSaved,
          tokens_remaining: event.tokensRemaining,
          tokens_before: event.tokensBefore,
          estimated: event.estimated,
          net_tokens_saved: event.netTokensSaved,
          net_requests: event.netRequests,
          net_basis: event.netBasis,
          ...(event.steps === undefined ? {} : { steps: event.steps }),
          ...(event.reason === undefined ? {} : { reason: event.reason }),
        },
      }
    case 'step-completed':
      return {
        event: 'step_completed',
        data: {
          stepId: event.stepId,
          rounds: event.rounds,
          ...(event.title === undefined ? {} : { title: event.title }),
          ...(event.startTime === undefined ? {} : { startTime: event.startTime }),
          ...(event.endTime === undefined ? {} : { endTime: event.endTime }),
        },
      }
    case 'thinking-delta':
      return { event: 'thinking_delta', data: { delta: event.delta, round: event.round } }
    case 'turn-start':
      return { event: 'turn_start', data: { model: event.model } }
    case 'round-end':
      return {
        event: 'round_end',
        data: {
          round: event.round,
          usage: {
            input: event.usage.input,
            output: event.usage.output,
            cache_read: event.usage.cacheRead,
            cache_write: event.usage.cacheWrite,
          },
        },
      }
    case 'text-delta':
    case 'turn-end':
      return undefined
    default:
      return assertNever(event)
  }
}

export function encodeControlReply(type: ControlType, result: ControlResult, requestId?: JsonValue): string {
  return JSON.stringify({ type, data: controlData(result), ...(requestId === undefined ? {} : { requestId }) })
}

/** The database is away: nothing was done, and the same frame may be sent again. */
function retryableOf({ code }: GatewayError): { readonly retryable?: true } {
  return code === 'STORAGE_UNAVAILABLE' ? { retryable: true } : {}
}

export function encodeControlFailure(
  type: ControlType,
  error: GatewayError,
  key: string | undefined,
  requestId?: JsonValue,
): string {
  const about = key === undefined ? {} : { key }
  const data = { success: false, error: error.message, code: error.code, ...retryableOf(error), ...about }
  return JSON.stringify({ type, data, ...(requestId === undefined ? {} : { requestId }) })
}

function controlData(result: ControlResult): JsonObject {
  switch (result.type) {
    case 'reset':
    case 'delete':
      return { success: true, key: result.key }
    case 'cancel':
      return { success: true, key: result.key, cancelled: result.cancelled }
    case 'get':
      return sessionView(result.key, result.record)
    case 'list':
      return {
        sessions: result.sessions.map(({ key, record }) => sessionView(key, record)),
        count: result.sessions.length,
        total: result.total,
        ...(result.nextCursor === undefined ? {} : { nextCursor: result.nextCursor }),
      }
    default:
      return assertNever(result)
  }
}

function sessionView(key: SessionKey, record: SessionRecord): JsonObject {
  const { sessionId, updatedAt, deliveryContext, lastChannel, lastTo } = record
  return {
    key,
    sessionId,
    updatedAt,
    ...(deliveryContext === undefined ? {} : { deliveryContext: { ...deliveryContext } }),
    ...(lastChannel === undefined ? {} : { lastChannel }),
    ...(lastTo === undefined ? {} : { lastTo }),
  }
}
