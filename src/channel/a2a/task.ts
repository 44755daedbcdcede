import type { JsonObject } from '../../base/json.ts'
import type { AcceptedMessage, ReplyContent } from '../../core/inbound.ts'
import type { KnownRun } from '../channel.ts'
import type { FileUrl } from '../webhook/codec.ts'
import type { LiveTask } from './live-task.ts'
import type { PushConfig } from './push-configs.ts'

/** What the channel stores with a message to answer it. */
export interface A2aReplyTo extends JsonObject {
  readonly messageId: string
  /** The text, for the task's history. */
  readonly said?: string
  /** As the client wrote it; the session is its canonical form. */
  readonly contextId?: string
  /** It answers what this task asked, and is no task of its own. */
  readonly answers?: string
  /** Push notification configurations that came with the message. */
  readonly push?: readonly PushConfig[]
}

export const ANSWER = 'answer'

export type TaskState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'

/** A task as the protocol writes it in JSON (version 1.0). */
export interface TaskView extends JsonObject {
  readonly id: string
  readonly contextId: string
  readonly status: StatusView
  readonly artifacts: readonly ArtifactView[]
  readonly history: readonly JsonObject[]
  readonly metadata: JsonObject
}

export interface StatusView extends JsonObject {
  readonly state: TaskState
  readonly timestamp: string
}

export interface ArtifactView extends JsonObject {
  readonly artifactId: string
  readonly parts: readonly JsonObject[]
}

/** A run is a task. */
export function toTask(known: KnownRun, live: LiveTask | undefined, fileUrl: FileUrl): TaskView {
  const { message, reply } = known
  return {
    id: message.run,
    contextId: contextOf(message),
    status: toStatus(known, live),
    artifacts: artifactsOf(reply?.content, live, fileUrl),
    history: historyOf(message),
    metadata: { session: message.key, ...answeredBy(reply?.content) },
  }
}

export function toStatus({ message, reply, endedAt, isRunning }: KnownRun, live: LiveTask | undefined): StatusView {
  const at = reply === undefined ? Math.max(live?.changedAt ?? 0, message.acceptedAt) : (endedAt ?? message.acceptedAt)
  const timestamp = new Date(at).toISOString()
  if (reply !== undefined) return endOf(reply.content, message, timestamp)
  const question = live?.question
  if (question !== undefined) {
    const text = `The tool "${question.tool}" needs approval ${question.id}: answer with "approve" or "deny".`
    return { state: 'TASK_STATE_INPUT_REQUIRED', message: agentMessage(message, text), timestamp }
  }
  const isWorking = isRunning || live?.isRunning === true
  return { state: isWorking ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED', timestamp }
}

export function contextOf({ key, replyTo }: Pick<AcceptedMessage, 'key' | 'replyTo'>): string {
  return (replyTo as A2aReplyTo).contextId ?? key
}

function endOf(content: ReplyContent, message: AcceptedMessage, timestamp: string): StatusView {
  switch (content.kind) {
    case 'complete':
      return { state: 'TASK_STATE_COMPLETED', timestamp }
    case 'error': {
      const said = agentMessage(message, content.message)
      return { state: 'TASK_STATE_FAILED', message: { ...said, metadata: { code: content.code } }, timestamp }
    }
    case 'cancelled':
      return { state: 'TASK_STATE_CANCELED', timestamp }
  }
}

function artifactsOf(
  content: ReplyContent | undefined,
  live: LiveTask | undefined,
  fileUrl: FileUrl,
): readonly ArtifactView[] {
  if (content?.kind === 'complete') return [answerOf(content.text), ...filesOf(content, fileUrl)]
  const text = content?.kind === 'error' ? content.partialText : (live?.text ?? '')
  return text === '' ? [] : [answerOf(text)]
}

export function answerOf(text: string): ArtifactView {
  return { artifactId: ANSWER, name: ANSWER, parts: [textPart(text)] }
}

/** Each file is an artifact of its own. */
export function filesOf(content: ReplyContent, fileUrl: FileUrl): readonly ArtifactView[] {
  const files = content.kind === 'complete' ? (content.files ?? []) : []
  return files.map(({ id, name, mimeType }) => ({
    artifactId: id,
    name,
    parts: [{ url: fileUrl(id), filename: name, mediaType: mimeType }],
  }))
}

function textPart(text: string): JsonObject {
  return { text, mediaType: 'text/plain' }
}

function answeredBy(content: ReplyContent | undefined): JsonObject {
  if (content?.kind !== 'complete') return {}
  const { model, usage } = content
  return { ...(model === undefined ? {} : { model }), ...(usage === undefined ? {} : { usage: { ...usage } }) }
}

/** Nothing where the text was too long to be kept. */
function historyOf(message: AcceptedMessage): readonly JsonObject[] {
  const { messageId, said } = message.replyTo as A2aReplyTo
  const files = message.attachments.map(({ name }) => textPart(`[file ${name}]`))
  const parts = [...(said === undefined || said === '' ? [] : [textPart(said)]), ...files]
  if (parts.length === 0) return []
  return [{ messageId, contextId: contextOf(message), taskId: message.run, role: 'ROLE_USER', parts }]
}

function agentMessage(message: AcceptedMessage, text: string): JsonObject {
  return {
    messageId: `${message.run}-status`,
    contextId: contextOf(message),
    taskId: message.run,
    role: 'ROLE_AGENT',
    parts: [textPart(text)],
  }
}
