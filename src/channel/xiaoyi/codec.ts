import { type JsonBounds, parseForeignJson, isRecord } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { hasControlCharacters } from '../../core/inbound.ts'

/** What the service asks of us. One frame is one request; everything optional in the wild is settled here. */
export type XiaoyiRequest =
  | MessageRequest
  | EventRequest
  | (Addressed & { readonly kind: 'clear' })
  /** `taskId` only when the frame names one; the real service sends none. */
  | (Addressed & { readonly kind: 'cancel'; readonly taskId?: string })
  | { readonly kind: 'heartbeat' }
  /** The service reports trouble; never a request. */
  | { readonly kind: 'peer-error'; readonly code: string }
  /** Meant for another agent of the same account. */
  | { readonly kind: 'foreign' }
  /** To be answered with a JSON-RPC error. `taskId` is there when a phone may be waiting for that task. */
  | (Addressed & {
      readonly kind: 'rejected'
      readonly code: number
      readonly reason: string
      readonly taskId?: string
    })

interface Addressed {
  /** JSON-RPC id of the request. */
  readonly id: string
  /** `params.sessionId` when present, else the top-level one. */
  readonly sessionId: string
}

/** Data parts without a text. */
export interface EventRequest extends Addressed {
  readonly kind: 'event'
  readonly parts: readonly Part[]
  readonly topSessionId?: string
}

export interface MessageRequest extends Addressed {
  readonly kind: 'message'
  readonly taskId: string
  readonly messageId: string
  /** The id that changes with every launch of the app; learnt as an alias of `sessionId`. */
  readonly topSessionId?: string
  readonly deviceId?: string
  readonly parts: readonly Part[]
}

/** A part of a message as a phone sends it. */
export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly name: string; readonly mimeType: string; readonly source: FileSource }
  | { readonly kind: 'data'; readonly data: Readonly<Record<string, unknown>> }

export type FileSource =
  | { readonly kind: 'uri'; readonly uri: string }
  | { readonly kind: 'bytes'; readonly base64: string }
  | { readonly kind: 'none' }

export interface FrameLimits {
  readonly maxFrameBytes: number
  readonly maxParts: number
}

export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602

/** A request has some dozens of fields; a thousand times as much is no request, and it is not parsed. */
const FRAME_BOUNDS: JsonBounds = { maxDepth: 100, maxMarks: 10_000 }

/** Throws `FRAME_TOO_LARGE` or `FRAME_MALFORMED` for what cannot even be answered. */
export function decodeRequest(raw: string, agentId: string, limits: FrameLimits): XiaoyiRequest {
  const bytes = Buffer.byteLength(raw)
  if (bytes > limits.maxFrameBytes) throw new GatewayError('FRAME_TOO_LARGE', 'the frame exceeds the limit', { bytes })
  const frame = parseForeignJson(raw, FRAME_BOUNDS)
  if (!isRecord(frame)) throw malformed('the frame is not a JSON object')
  if (isForeign(frame, agentId)) return { kind: 'foreign' }
  const request = unwrap(frame)
  if (request === undefined) return { kind: 'heartbeat' }
  if (isForeign(request, agentId)) return { kind: 'foreign' }
  return withCleanIds(decodeRpc(request, limits))
}

/** Ids become session keys and log lines; one with a control character is answered, and goes no further. */
function withCleanIds(request: XiaoyiRequest): XiaoyiRequest {
  if (!('sessionId' in request)) return request
  const { id, sessionId } = request
  const taskId = 'taskId' in request ? request.taskId : undefined
  const more = request.kind === 'message' ? [request.messageId, request.topSessionId, request.deviceId] : []
  const ids = [id, sessionId, taskId, ...more].filter((one) => one !== undefined)
  if (!ids.some(hasControlCharacters)) return request
  const reason = 'an id holds a control character'
  return { kind: 'rejected', id, sessionId, code: INVALID_PARAMS, reason, ...(taskId === undefined ? {} : { taskId }) }
}

function isForeign(frame: Record<string, unknown>, agentId: string): boolean {
  const params = isRecord(frame['params']) ? frame['params'] : {}
  const named = idOf(frame['agentId']) ?? idOf(params['agentId'])
  return named !== undefined && named !== agentId
}

/** The wrapped inbound form of the API-key tier: `msgType` outside, JSON-RPC as a string in `msgDetail`. */
function unwrap(frame: Record<string, unknown>): Record<string, unknown> | undefined {
  const type = frame['msgType']
  if (type === undefined) return frame
  if (type === 'heartbeat') return undefined
  const detail = frame['msgDetail']
  const inner = typeof detail === 'string' ? parseForeignJson(detail, FRAME_BOUNDS) : detail
  if (!isRecord(inner)) throw malformed('msgDetail is not a JSON object')
  const { msgType: _type, msgDetail: _detail, ...outer } = frame
  const implied = type === 'clearContext' ? { method: 'clearContext' } : {}
  return { ...outer, ...implied, ...inner }
}

function decodeRpc(frame: Record<string, unknown>, limits: FrameLimits): XiaoyiRequest {
  const method = frame['method'] ?? frame['action']
  if (method === undefined && isRecord(frame['error'])) {
    return { kind: 'peer-error', code: idOf(frame['error']['code']) ?? 'unknown' }
  }
  const params = isRecord(frame['params']) ? frame['params'] : {}
  const address = addressOf(frame, params)
  switch (method) {
    case 'clearContext':
    case 'clear_context':
    case 'clear':
      return { kind: 'clear', ...address }
    case 'tasks/cancel':
    case 'tasks_cancel':
      return decodeCancel(frame, params, address)
    default:
      // Anything that carries a message is a message, whatever its method is called (`tasks/send` was seen).
      if (method === 'message/stream' || isRecord(params['message'])) return decodeMessage(frame, address, limits)
      if (Array.isArray(frame['events']) || (method === undefined && isRecord(frame['data']))) {
        return { kind: 'event', ...address, parts: [{ kind: 'data', data: frame }] }
      }
      return { kind: 'rejected', ...address, code: METHOD_NOT_FOUND, reason: 'the method is not known here' }
  }
}

function addressOf(frame: Record<string, unknown>, params: Record<string, unknown>): Addressed {
  const session = isRecord(frame['session']) ? frame['session'] : {}
  const sessionId =
    idOf(params['sessionId']) ??
    idOf(frame['sessionId']) ??
    idOf(frame['conversationId']) ??
    idOf(params['conversationId']) ??
    idOf(session['sessionId'])
  if (sessionId === undefined) throw malformed('the frame names no session')
  return { id: idOf(frame['id']) ?? idOf(params['id']) ?? '', sessionId }
}

function decodeCancel(
  frame: Record<string, unknown>,
  params: Record<string, unknown>,
  address: Addressed,
): XiaoyiRequest {
  const named = idOf(frame['taskId']) ?? idOf(params['taskId']) ?? idOf(params['id'])
  return { kind: 'cancel', ...address, ...(named === undefined ? {} : { taskId: named }) }
}

function decodeMessage(frame: Record<string, unknown>, address: Addressed, limits: FrameLimits): XiaoyiRequest {
  const params = isRecord(frame['params']) ? frame['params'] : {}
  const taskId = idOf(params['id']) ?? idOf(frame['taskId']) ?? idOf(frame['id'])
  const reject = (reason: string): XiaoyiRequest => ({
    kind: 'rejected',
    ...address,
    code: INVALID_PARAMS,
    reason,
    ...(taskId === undefined ? {} : { taskId }),
  })
  const message = params['message']
  if (taskId === undefined || !isRecord(message)) return reject('params.id and params.message are required')
  const listed = message['parts']
  if (!Array.isArray(listed)) return reject('params.message.parts must be a list')
  if (listed.length > limits.maxParts) return reject('the message has too many parts')
  const parts = listed.flatMap(decodePart)
  const topSessionId = idOf(frame['sessionId'])
  const top = topSessionId === undefined ? {} : { topSessionId }
  if (parts.length > 0 && parts.length === listed.length && parts.every((part) => part.kind === 'data')) {
    return { kind: 'event', ...address, parts, ...top }
  }
  const deviceId = idOf(frame['deviceId'])
  return {
    kind: 'message',
    ...address,
    id: address.id === '' ? taskId : address.id,
    taskId,
    messageId: idOf(message['messageId']) ?? address.id,
    ...top,
    ...(deviceId === undefined ? {} : { deviceId }),
    parts,
  }
}

/** Parts of kinds we do not know are skipped: the next app version may add one next to the text. */
function decodePart(value: unknown): Part[] {
  if (!isRecord(value)) return []
  if (value['kind'] === 'text' && typeof value['text'] === 'string') return [{ kind: 'text', text: value['text'] }]
  if (value['kind'] === 'data' && isRecord(value['data'])) return [{ kind: 'data', data: value['data'] }]
  if (value['kind'] === 'file' && isRecord(value['file'])) return [decodeFile(value['file'])]
  return []
}

function decodeFile(file: Record<string, unknown>): Part {
  const { name, mimeType, uri, bytes } = file
  const source: FileSource =
    typeof bytes === 'string' && bytes !== ''
      ? { kind: 'bytes', base64: bytes }
      : typeof uri === 'string' && uri !== ''
        ? { kind: 'uri', uri }
        : { kind: 'none' }
  return {
    kind: 'file',
    name: typeof name === 'string' && name !== '' ? name : 'file',
    mimeType: typeof mimeType === 'string' ? mimeType : '',
    source,
  }
}

/** Ids arrive as strings, and as numbers from some consoles. */
function idOf(value: unknown): string | undefined {
  if (typeof value === 'string' && value !== '') return value
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined
}

function malformed(reason: string): GatewayError {
  return new GatewayError('FRAME_MALFORMED', reason)
}

/** `variables.systemVariables.push_id`, in the object form of the samples and the list form of the tables. */
export function pushIdOf(parts: readonly Part[]): string | undefined {
  for (const part of parts) {
    if (part.kind !== 'data' || !isRecord(part.data['variables'])) continue
    const system = part.data['variables']['systemVariables']
    const found = pushIdIn(system)
    if (found !== undefined) return found
  }
  return undefined
}

function pushIdIn(system: unknown): string | undefined {
  for (const entry of Array.isArray(system) ? system : [system]) {
    if (!isRecord(entry)) continue
    const named = entry['name'] === 'push_id' || entry['key'] === 'push_id' ? entry['value'] : undefined
    const found = idOf(entry['push_id']) ?? idOf(named)
    if (found !== undefined) return found
  }
  return undefined
}
