import { createHash } from 'node:crypto'
import { callerOf, UNKNOWN_OWNER, type AcceptedMessage } from '../core/inbound.ts'
import type { Acceptance } from '../storage/storage.ts'

/** What tells a redelivery from a new message: same owner, sender id, session and content; or the sender's own key. */
export function recognitionOf(message: AcceptedMessage): Pick<Acceptance, 'fingerprint' | 'request'> {
  const key = requestKeyOf(message)
  const request =
    key === undefined || message.idempotency === undefined
      ? {}
      : { request: { key, digest: message.idempotency.digest } }
  return { fingerprint: fingerprintOf(message), ...request }
}

function fingerprintOf(message: AcceptedMessage): string {
  const { channel, key, messageId, text, attachments, run } = message
  const { owner } = callerOf(message)
  const files = attachments.map(({ name, bytes }) => [name, bytes])
  // Two messages without any identity are never the same one, so nothing but the run itself can be recognised.
  const sender = owner === UNKNOWN_OWNER ? [owner, run] : [owner]
  const content = JSON.stringify([channel, ...sender, key, messageId, text, files])
  return createHash('sha256').update(content).digest('base64url')
}

/** What a sender recognises its request by. A sender without any identity has none: its repeats are new messages. */
function requestKeyOf(message: AcceptedMessage): string | undefined {
  const { owner } = callerOf(message)
  if (message.idempotency === undefined || owner === UNKNOWN_OWNER) return undefined
  return JSON.stringify([message.channel, owner, message.idempotency.key])
}
