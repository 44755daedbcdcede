/** What we send. Every frame is an outer object with `msgType`; the JSON-RPC answer travels as a string inside it. */

export type TaskState = 'submitted' | 'working' | 'input-required' | 'completed' | 'canceled' | 'failed' | 'unknown'

/** Where an answer belongs: kept durably with the message, because a restart must not change it. */
export interface ReplyAddress {
  readonly sessionId: string
  readonly taskId: string
  readonly requestId: string
}

export interface WireError {
  readonly code: number
  readonly message: string
}

export interface ArtifactUpdate {
  readonly artifactId: string
  readonly append: boolean
  readonly lastChunk: boolean
  readonly final: boolean
  readonly part: { readonly text: string } | { readonly reasoningText: string }
  readonly error?: WireError
}

export function encodeInit(agentId: string): string {
  return JSON.stringify({ msgType: 'clawd_bot_init', agentId })
}

export function encodeHeartbeat(agentId: string, now: number): string {
  return JSON.stringify({ msgType: 'heartbeat', agentId, timestamp: now })
}

/** Without `text` the frame carries no message at all: text in a status update stays on the phone for ever. */
export function encodeStatus(
  agentId: string,
  address: ReplyAddress,
  status: { readonly state: TaskState; readonly final: boolean; readonly text?: string },
): string {
  const message =
    status.text === undefined
      ? {}
      : { message: { role: 'agent' as const, parts: [{ kind: 'text' as const, text: status.text }] } }
  return wrap(agentId, address, {
    result: {
      taskId: address.taskId,
      kind: 'status-update',
      final: status.final,
      status: { ...message, state: status.state },
    },
  })
}

/** All three flags are always written: a missing `lastChunk` means true to the service. */
export function encodeArtifact(agentId: string, address: ReplyAddress, update: ArtifactUpdate): string {
  const { artifactId, append, lastChunk, final, part, error } = update
  const wirePart =
    'text' in part ? { kind: 'text', text: part.text } : { kind: 'reasoningText', reasoningText: part.reasoningText }
  return wrap(agentId, address, {
    result: {
      taskId: address.taskId,
      kind: 'artifact-update',
      append,
      lastChunk,
      final,
      artifact: { artifactId, parts: [wirePart] },
    },
    ...(error === undefined ? {} : { error }),
  })
}

export function encodeCleared(
  agentId: string,
  request: { readonly sessionId: string; readonly id: string },
  state: 'cleared' | 'failed',
): string {
  const address = { sessionId: request.sessionId, taskId: request.id, requestId: request.id }
  return wrap(agentId, address, { result: { status: { state } } })
}

export function encodeCanceled(
  agentId: string,
  request: { readonly sessionId: string; readonly id: string; readonly taskId: string },
  state: 'canceled' | 'failed',
): string {
  const address = { sessionId: request.sessionId, taskId: request.taskId, requestId: request.id }
  return wrap(agentId, address, { result: { id: request.taskId, status: { state } } })
}

export function encodeError(agentId: string, address: ReplyAddress, error: WireError): string {
  return wrap(agentId, address, { error })
}

function wrap(agentId: string, address: ReplyAddress, answer: object): string {
  const { sessionId, taskId, requestId } = address
  return JSON.stringify({
    msgType: 'agent_response',
    agentId,
    sessionId,
    taskId,
    msgDetail: JSON.stringify({ jsonrpc: '2.0', id: requestId, ...answer }),
  })
}
