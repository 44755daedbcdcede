import { takeHead } from '../base/text.ts'
import type { Ids } from '../base/ids.ts'
import type { Change, RowChange } from '../core/change.ts'
import type { SessionId } from '../core/ids.ts'
import { callerOf, type AcceptedMessage } from '../core/inbound.ts'
import { isLocal, parseSlash } from './commands.ts'

export function newSessionId(ids: Ids): SessionId {
  return `sess_${ids.hex(32)}` as SessionId
}

/**
 * What a message changes in its session's row: it is named after its first message and shows its last, delivery follows
 * the latest message, everything else stays. A command that is answered without the model begins no session.
 */
export function rowChangeFor(
  message: AcceptedMessage,
  ids: Ids,
): Extract<Change, { kind: 'begin-session' | 'change-session' }> {
  const slash = parseSlash(message.text)
  const { key } = message
  const words = wordsOf(message)
  const title = words === undefined ? {} : { title: words.title }
  const preview = words === undefined ? {} : { preview: words.preview }
  const delivery = deliveryOf(message)
  // A conversation that is looked at on the dashboard goes on being delivered where it was.
  const change: RowChange =
    message.fromDashboard === true
      ? { touched: true, defaults: { ...title, ...delivery }, fields: preview }
      : { touched: true, defaults: title, fields: { ...preview, ...delivery } }
  if (isLocal(slash)) return { kind: 'change-session', key, ...change }
  return { kind: 'begin-session', key, sessionId: newSessionId(ids), owner: callerOf(message).owner, ...change }
}

/** What a list shows of a conversation because of this message; nothing because of a command. */
export function wordsOf({ text }: Pick<AcceptedMessage, 'text'>): { title: string; preview: string } | undefined {
  const slash = parseSlash(text)
  if (slash.kind !== 'message' || slash.text === '') return undefined
  return { title: titleOf(slash.text), preview: previewOf(slash.text) }
}

function deliveryOf({ channel, account, messageId, route, key, client }: AcceptedMessage): RowChange['fields'] {
  const to = route.peerId ?? route.chatId ?? route.senderId ?? messageId
  const threadId = route.topicId ?? route.threadId
  return {
    deliveryContext: { channel, to, accountId: account, ...(threadId === undefined ? {} : { threadId }) },
    lastChannel: channel,
    lastTo: to,
    lastAccountId: account,
    ...(client?.mark === undefined ? {} : { chat: client.mark }),
    ...(channel === 'webhook' ? { webhookMessageId: messageId, webhookSessionId: key } : {}),
  }
}

const TITLE_CHARS = 60
const PREVIEW_CHARS = 120

/** What a list shows of a message, on one line. */
export const titleOf = (text: string): string => startOf(oneLine(text), TITLE_CHARS)

export const previewOf = (text: string): string => startOf(oneLine(text), PREVIEW_CHARS)

const startOf = (line: string, chars: number): string => (line.length <= chars ? line : takeHead(line, chars))

function oneLine(text: string): string {
  return text.slice(0, 2_000).replaceAll(/\s+/gu, ' ').trim()
}
