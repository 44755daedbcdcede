import type { JsonObject, JsonValue } from '../../base/json.ts'

/** Every form of a clear that was seen. */
export const CLEAR_SHAPES = ['official', 'seed', 'params', 'snake', 'legacy', 'wrapped'] as const
/** The name of one of them. */
export type ClearShape = (typeof CLEAR_SHAPES)[number]

/** Every form of a cancel that was seen. */
export const CANCEL_SHAPES = ['official', 'seed', 'params', 'a2a', 'snake', 'legacy', 'wrapped'] as const
/** The name of one of them. */
export type CancelShape = (typeof CANCEL_SHAPES)[number]

export interface RequestIds {
  readonly agentId: string
  readonly id: string | number
  /** The stable one. */
  readonly sessionId: string
  /** The one of this launch of the app. */
  readonly topSessionId: string
}

export interface MessageIds extends RequestIds {
  readonly taskId: string | number
  readonly messageId: string | number
  readonly deviceId: string
}

export function textPart(text: string): JsonObject {
  return { kind: 'text', text }
}

/** Device context as the console's switch adds it, `push_id` included; it comes before the text. */
export function variablesPart(systemVariables: JsonObject): JsonObject {
  return { kind: 'data', data: { variables: { systemVariables } } }
}

export function messageRequest(ids: MessageIds, parts: readonly JsonValue[]): JsonObject {
  return {
    jsonrpc: '2.0',
    id: ids.id,
    method: 'message/stream',
    agentId: ids.agentId,
    deviceId: ids.deviceId,
    conversationId: ids.sessionId,
    sessionId: ids.topSessionId,
    params: {
      id: ids.taskId,
      sessionId: ids.sessionId,
      message: { kind: 'message', messageId: ids.messageId, role: 'user', parts: [...parts] },
    },
  }
}

/** The session named in the answer is the one named here, whichever that is. */
export function clearRequest(shape: ClearShape, ids: RequestIds): { frame: JsonObject; sessionId: string } {
  const { agentId, id, sessionId, topSessionId } = ids
  const base = { jsonrpc: '2.0', id }
  switch (shape) {
    case 'official':
      return { frame: { ...base, sessionId, method: 'clearContext' }, sessionId }
    case 'seed':
      return { frame: { ...base, method: 'clearContext', agentId, sessionId }, sessionId }
    case 'params':
      return { frame: { ...base, method: 'clearContext', agentId, params: { sessionId } }, sessionId }
    case 'snake':
      return { frame: { ...base, method: 'clear_context', sessionId: topSessionId }, sessionId: topSessionId }
    case 'legacy':
      return { frame: { agentId, sessionId, id, action: 'clear', timestamp: 0 }, sessionId }
    case 'wrapped':
      return { frame: wrapped('clearContext', ids, { ...base, sessionId }), sessionId }
  }
  throw new Error('unknown shape of a clear request')
}

export function cancelRequest(
  shape: CancelShape,
  ids: RequestIds & { readonly taskId: string | number | undefined },
): { frame: JsonObject; sessionId: string } {
  const { agentId, id, sessionId, topSessionId, taskId } = ids
  const base = { jsonrpc: '2.0', id }
  const method = 'tasks/cancel'
  switch (shape) {
    case 'official':
      return { frame: { ...base, sessionId, method }, sessionId }
    case 'seed':
      return { frame: { ...base, method, agentId, sessionId, taskId }, sessionId }
    case 'params':
      return { frame: { ...base, method, params: { id: taskId, sessionId } }, sessionId }
    case 'a2a':
      return { frame: { ...base, method, sessionId: topSessionId, params: { id: taskId } }, sessionId: topSessionId }
    case 'snake':
      return { frame: { ...base, method: 'tasks_cancel', sessionId }, sessionId }
    case 'legacy':
      return { frame: { agentId, id, action: method, conversationId: sessionId, timestamp: 0 }, sessionId }
    case 'wrapped':
      return { frame: wrapped('message', ids, { ...base, method, sessionId }), sessionId }
  }
  throw new Error('unknown shape of a cancel request')
}

export function wrapped(msgType: string, ids: RequestIds, inner: JsonObject): JsonObject {
  const { agentId, sessionId } = ids
  return { msgType, agentId, sessionId, msgDetail: JSON.stringify(inner) }
}
