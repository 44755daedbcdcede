import { checkUrl, FetchRefused, URL_POLICY } from '../../base/fetch-policy.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import { ERRORS, GatewayError } from '../../core/errors.ts'
import { type ReplyContent, faultOfId } from '../../core/inbound.ts'
import type { KnownRun } from '../channel.ts'
import { decodeFrame, filesField, type FileUrl, type InboundFrame } from '../webhook/codec.ts'

export type MessageFrame = Extract<InboundFrame, { kind: 'message' }>

/** What the HTTP channel stores with a message to answer it. */
export interface HttpReplyTo extends JsonObject {
  readonly messageId: string | number
  /** Where the terminal frame is sent. */
  readonly callback?: Callback
}

export interface Callback extends JsonObject {
  readonly url: string
  /** Signs what is sent. */
  readonly secret?: string
}

const MAX_SECRET_CHARS = 1_024

/** Refuses an address that its letters give away; what a name resolves to shows when it is called. */
function decodeCallback(value: unknown, privateHosts: readonly string[]): Callback {
  const refuse = (message: string): never => {
    throw new GatewayError('FIELD_INVALID', message, { field: 'callback' })
  }
  if (!isRecord(value)) return refuse('"callback" must be an object with a "url"')
  const { url, secret } = value
  if (typeof url !== 'string') return refuse('"callback.url" must be a web address')
  if (secret !== undefined && (typeof secret !== 'string' || secret === '' || secret.length > MAX_SECRET_CHARS))
    return refuse(`"callback.secret" must be a text of at most ${MAX_SECRET_CHARS} characters`)
  try {
    checkUrl(url, { ...URL_POLICY, privateHosts })
  } catch (thrown) {
    return refuse(`"callback.url" is refused: ${thrown instanceof FetchRefused ? thrown.message : 'no address'}`)
  }
  return { url, ...(secret === undefined ? {} : { secret }) }
}

/** `curl -d` calls every body a form; what people send with it is JSON. */
const JSON_TYPES = ['application/json', 'application/x-www-form-urlencoded']

/** `untyped`: no type was sent, as with a request without a body. */
export type BodyKind = 'json' | 'text' | 'untyped'

/** Decided before the body is read. */
export function bodyKindOf(contentType: string | null): BodyKind {
  if (contentType === null) return 'untyped'
  if (isJsonType(contentType)) return 'json'
  if (essenceOf(contentType) === 'text/plain') return 'text'
  throw unsupportedType()
}

export function isJsonType(contentType: string): boolean {
  return JSON_TYPES.includes(essenceOf(contentType))
}

function essenceOf(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

function unsupportedType(): GatewayError {
  return new GatewayError('CONTENT_TYPE_UNSUPPORTED', 'send application/json, or text/plain for the text alone', {
    field: 'Content-Type',
  })
}

export interface MessageRequest {
  readonly frame: MessageFrame
  readonly callback?: Callback
}

export interface BodyLimits {
  readonly maxBytes: number
  /** Hosts of this machine or network that callbacks may go to. */
  readonly callbackHosts: readonly string[]
}

export function decodeBody(kind: BodyKind, body: string, { maxBytes, callbackHosts }: BodyLimits): MessageRequest {
  if (body.trim() === '') throw new GatewayError('FRAME_MALFORMED', 'the body is empty')
  if (kind === 'untyped') throw unsupportedType()
  const frame = decodeFrame(kind === 'text' ? JSON.stringify({ content: body }) : body, maxBytes)
  if (frame.kind === 'message') {
    const { callback } = frame.fields
    if (callback === undefined || callback === null) return { frame }
    return { frame, callback: decodeCallback(callback, callbackHosts) }
  }
  throw new GatewayError('FRAME_MALFORMED', 'only messages are sent here; a message has no "type"')
}

/** The sender's own name for this request. */
export function idempotencyKeyOf(headers: Headers): string | undefined {
  const key = headers.get('idempotency-key')?.trim() ?? ''
  if (key === '') return undefined
  const fault = faultOfId('Idempotency-Key', key)
  if (fault !== undefined) throw new GatewayError('FIELD_INVALID', fault, { field: 'Idempotency-Key' })
  return key
}

/** Undefined when the header is not there: everything is shown. */
export function lastEventIdOf(headers: Headers): number {
  const value = headers.get('last-event-id')?.trim() ?? ''
  if (value === '') return 0
  if (/^\d{1,15}$/u.test(value)) return Number(value)
  throw new GatewayError('FIELD_INVALID', 'Last-Event-ID must be a whole number', { field: 'Last-Event-ID' })
}

export function isWaiting(url: URL): boolean {
  const wait = url.searchParams.get('wait') ?? '1'
  if (wait === '0' || wait === '1') return wait === '1'
  throw new GatewayError('FIELD_INVALID', 'wait must be 0 or 1', { field: 'wait' })
}

/** The status of a message that ended: a model's failure is one of the servers behind us. */
export function statusOfReply(content: ReplyContent): number {
  switch (content.kind) {
    case 'complete':
      return 200
    case 'cancelled':
      return 409
    case 'error': {
      if (ERRORS[content.code].retry === 'later') return 503
      return content.code.startsWith('MODEL_') ? 502 : 500
    }
  }
}

export function describeRun({ message, isRunning, reply, delivery, endedAt }: KnownRun, fileUrl: FileUrl): JsonObject {
  const { run, key, acceptedAt, replyTo } = message
  // As its sender wrote it, where the channel keeps that.
  const { messageId = message.messageId } = replyTo as Partial<HttpReplyTo>
  const about = { runId: run, session: key, messageId }
  const times = { acceptedAt, ...(endedAt === undefined ? {} : { endedAt }) }
  if (reply === undefined) return { ...about, state: isRunning ? 'running' : 'queued', ...times }
  const arrival = delivery === undefined ? {} : { delivery }
  return { ...about, ...describeContent(reply.content, fileUrl), ...arrival, ...times }
}

function describeContent(content: ReplyContent, fileUrl: FileUrl): JsonObject {
  switch (content.kind) {
    case 'complete': {
      const { text, model, usage } = content
      return {
        state: 'complete',
        content: text,
        ...filesField(content.files, fileUrl),
        ...(model === undefined ? {} : { model }),
        ...(usage === undefined ? {} : { usage: { ...usage } }),
      }
    }
    case 'error': {
      const { code, message, partialText } = content
      return { state: 'error', code, error: message, ...(partialText === '' ? {} : { content: partialText }) }
    }
    case 'cancelled':
      return { state: 'cancelled', code: 'TURN_CANCELLED', reason: content.by }
  }
}
