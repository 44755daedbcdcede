import type { SessionKey } from '../core/ids.ts'
import type { RouteFields } from '../core/inbound.ts'

export interface RouteSettings {
  readonly agent: string
  readonly scope: 'per-sender' | 'global' | 'per-connection'
  readonly preserveCase: boolean
}

export interface Routable {
  readonly channel: string
  readonly account: string
  readonly messageId: string
  readonly route: RouteFields
}

/**
 * The one function that names a conversation; messages, commands, control frames and events all use it.
 * Order: explicit session, then peer, then scope. Ids are percent-encoded so that two routes can never meet.
 */
export function routeOf(message: Routable, settings: RouteSettings): SessionKey {
  const key = explicitKey(message) ?? peerKey(message, settings) ?? scopeKey(message, settings)
  return canonicalKey(key, settings.preserveCase || message.route.preserveCase === true)
}

/** Whether the key comes from the scope alone: the sender named no conversation, so it must not meet one of another owner. */
export function isAutomatic(message: Routable, settings: RouteSettings): boolean {
  return explicitKey(message) === undefined && peerKey(message, settings) === undefined
}

/** A key as a client wrote it, in the form that is stored. */
export function canonicalKey(key: string, preserveCase: boolean): SessionKey {
  const trimmed = key.trim()
  return (preserveCase ? trimmed : trimmed.toLowerCase()) as SessionKey
}

function explicitKey({ route }: Routable): string | undefined {
  return trimmedOrNothing(route.session)
}

function peerKey({ channel, route }: Routable, { agent }: RouteSettings): string | undefined {
  const namedKind = trimmedOrNothing(route.peerKind) ?? trimmedOrNothing(route.chatType)
  const namedPeer = trimmedOrNothing(route.peerId) ?? trimmedOrNothing(route.chatId)
  const kind = namedKind?.toLowerCase() ?? 'dm'
  // A sender stands for a peer only where nothing says that the conversation is a group.
  const peer = namedPeer ?? (namedKind === undefined ? trimmedOrNothing(route.senderId) : undefined)
  if (peer === undefined) return undefined
  const base = `agent:${encodeId(agent)}:${route.keysOf ?? channel}:${kind}:${encodeId(peer)}`
  const thread = trimmedOrNothing(route.threadId)
  if (kind === 'dm') return thread === undefined ? base : `${base}:thread:${encodeId(thread)}`
  if (kind !== 'group' && kind !== 'channel') return undefined
  const topic = trimmedOrNothing(route.topicId) ?? thread
  return topic === undefined ? base : `${base}:topic:${encodeId(topic)}`
}

function scopeKey({ channel, account, messageId, route }: Routable, { scope }: RouteSettings): string {
  if (scope === 'global') return 'global'
  return `${route.keysOf ?? channel}:${encodeId(scope === 'per-connection' ? account : messageId)}`
}

function encodeId(id: string): string {
  return id.trim().replaceAll('%', '%25').replaceAll(':', '%3A')
}

function trimmedOrNothing(value: string | undefined): string | undefined {
  const trimmed = value?.trim()
  return trimmed === '' ? undefined : trimmed
}
