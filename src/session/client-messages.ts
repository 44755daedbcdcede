import { isRecord, parseJson, type JsonObject } from '../base/json.ts'
import type { ClientCall, ClientMessage } from '../core/client-turn.ts'
import type { AcceptedMessage, Attachment } from '../core/inbound.ts'
import { NO_USAGE, type Message, type ToolCallBlock, type UserBlock } from '../core/message.ts'
import type { PlacedTurn } from '../turn/deps.ts'

/** A text with its files, as the model gets it. */
export type ContentOf = (text: string, attachments: readonly Attachment[]) => Promise<string | readonly UserBlock[]>

/** Where a client's turn begins, and the messages that only the client has had so far, as the transcript keeps them. */
export async function placedTurn(
  { client, channel, key }: AcceptedMessage,
  now: number,
  contentOf: ContentOf,
): Promise<PlacedTurn> {
  const { at, earlier = [], fresh = 0, asks = true, digest } = client?.place ?? {}
  const names = toolNames(earlier)
  const messages: Message[] = []
  for (const message of earlier) {
    if (message.role === 'user')
      messages.push({
        role: 'user',
        content: await contentOf(message.text, message.attachments),
        timestamp: now,
        provenance: { kind: 'external_user', sourceChannel: channel, sourceSessionKey: key },
        sent: message.digest,
      })
    else messages.push(toMessage(message, now, names))
  }
  return {
    ...(at === undefined ? {} : { at }),
    earlier: messages,
    fresh,
    asks,
    ...(digest === undefined ? {} : { digest }),
  }
}

/** The guard gives a result without a name the name of its call, where the call is in the transcript already. */
function toolNames(messages: readonly ClientMessage[]): ReadonlyMap<string, string> {
  return new Map(
    messages.flatMap((message) =>
      message.role === 'assistant' ? message.calls.map(({ id, name }) => [id, name] as const) : [],
    ),
  )
}

function toMessage(
  message: Exclude<ClientMessage, { role: 'user' }>,
  timestamp: number,
  names: ReadonlyMap<string, string>,
): Message {
  if (message.role === 'tool')
    return {
      role: 'toolResult',
      toolCallId: message.callId,
      toolName: names.get(message.callId) ?? '',
      content: [{ type: 'text', text: message.text }],
      details: { sent: message.digest },
      isError: false,
      timestamp,
    }
  const text = message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]
  return {
    role: 'assistant',
    content: [...text, ...message.calls.map(toBlock)],
    // Of no model that we know: opaque parts of it belong to no model.
    api: 'client',
    provider: 'client',
    model: 'client',
    usage: NO_USAGE,
    stopReason: message.calls.length === 0 ? 'stop' : 'toolUse',
    timestamp,
  }
}

function toBlock({ id, name, arguments: written }: ClientCall): ToolCallBlock {
  const parsed = parseJson(written)
  return isRecord(parsed)
    ? { type: 'toolCall', id, name, arguments: parsed as JsonObject }
    : { type: 'toolCall', id, name, arguments: {}, invalidArguments: written === '' ? '(nothing)' : written }
}
