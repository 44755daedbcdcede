import { createHash } from 'node:crypto'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import {
  callerOf,
  UNKNOWN_OWNER,
  type InboundMessage,
  ownerOf,
  type RouteFields,
  type SessionRecord,
} from '../core/inbound.ts'
import { isLocal, parseSlash } from '../session/commands.ts'
import type { Acceptance, Storage } from '../storage/storage.ts'
import type { SessionKey } from '../core/ids.ts'

export interface RouteSettings {
  readonly agent: string
  readonly scope: 'per-sender' | 'global' | 'per-connection'
  readonly preserveCase: boolean
}

interface Routable {
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
function isAutomatic(message: Routable, settings: RouteSettings): boolean {
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

export interface ClaimsDeps {
  readonly storage: Storage
  readonly ids: Ids
  readonly route: RouteSettings
  /** Conversations there may be. */
  readonly maxSessions: number
}

/** A conversation that a message may join, as far as its row allows it. */
export interface Candidate {
  readonly key: SessionKey
  readonly joins: NonNullable<Acceptance['joins']>
  /** Its row; undefined when it has not begun. */
  readonly record: SessionRecord | undefined
}

const SUFFIX_DIGITS = 6

/**
 * Which conversation a message joins, and whether it may. Two owners whose messages happen to have the same id never
 * meet: the key that the id makes belongs to the first of them, as the storage decides when it accepts the message.
 */
export class Claims {
  readonly #deps: ClaimsDeps
  /** Conversations that messages being made durable begin. */
  #beginning = 0

  constructor(deps: ClaimsDeps) {
    this.#deps = deps
  }

  /** The keys to try, one after the other, until the storage takes the message under one of them. */
  async *candidates(message: InboundMessage): AsyncIterable<Candidate> {
    const { route, ids, storage } = this.#deps
    const { owner, sees } = callerOf(message)
    const routed = await this.#broughtBack(await this.#routedKey(message), message)
    const isShared = !isAutomatic(message, route) || route.scope === 'global'
    if (isShared && !(sees === 'own' && routed === 'global')) {
      const record = await storage.sessions.get(routed)
      yield { key: routed, joins: sees === 'own' ? joinsOf(owner) : { rows: 'any' }, record }
      throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', { key: routed.slice(0, 200) })
    }
    let key = routed
    for (let attempt = 0; ; attempt++) {
      const record = await storage.sessions.get(key)
      if (!isTaken(record, owner)) yield { key, joins: joinsOf(owner), record }
      // Made from the owner, so that the same message sent again finds the same conversation.
      const suffix = owner === UNKNOWN_OWNER ? ids.hex(SUFFIX_DIGITS) : suffixOf(routed, owner, attempt)
      key = await this.#broughtBack(`${routed}~${suffix}` as SessionKey, message)
    }
  }

  /**
   * Holds a place for a conversation that the message begins, until `release`. `full` says why there is none, as the
   * error to throw unless the message is a known one.
   */
  async hold(
    { record }: Candidate,
    message: InboundMessage,
  ): Promise<{ readonly full?: GatewayError; release(): void }> {
    if (record !== undefined || isLocal(parseSlash(message.text))) return { release: () => undefined }
    // The place is taken before the storage is asked: of many that begin at once, each counts those before it.
    const beginning = ++this.#beginning
    let isHeld = true
    const release = (): void => {
      if (isHeld) this.#beginning--
      isHeld = false
    }
    try {
      const full = await this.#fullError(beginning)
      if (full === undefined) return { release }
      release()
      return { full, release }
    } catch (error) {
      release()
      throw error
    }
  }

  /** An archived conversation that a message joins is in the index again; it needs room there as a new one does. */
  async #broughtBack(key: SessionKey, message: InboundMessage): Promise<SessionKey> {
    const { sessions } = this.#deps.storage
    if (!(await sessions.hasArchived(key))) return key
    const needsRoom = (await sessions.get(key)) === undefined && !isLocal(parseSlash(message.text))
    const full = needsRoom ? await this.#fullError(this.#beginning + 1) : undefined
    if (full !== undefined) throw full
    return (await sessions.bringBack(key)) ? ((await sessions.resolve(key))?.key ?? key) : key
  }

  /** `beginning` conversations are on their way, the one in question included. */
  async #fullError(beginning: number): Promise<GatewayError | undefined> {
    const { storage, maxSessions } = this.#deps
    const sessions = await storage.sessions.count()
    if (sessions + beginning <= maxSessions) return undefined
    return new GatewayError(
      'SESSION_LIMIT',
      `there are ${sessions} conversations already; delete some, go on with one by its "session", or raise limits.sessions`,
      { sessions, limit: maxSessions },
    )
  }

  /** The key of the route; a row adopted from a file may have another case, and is found exactly first, then folded. */
  async #routedKey(message: InboundMessage): Promise<SessionKey> {
    const { storage, route } = this.#deps
    const asWritten = routeOf(message, { ...route, preserveCase: true })
    if ((await storage.sessions.get(asWritten)) !== undefined) return asWritten
    const key = routeOf(message, route)
    const isFolded = !route.preserveCase && message.route.preserveCase !== true
    return isFolded ? ((await storage.sessions.resolve(key))?.key ?? key) : key
  }
}

function isTaken(record: SessionRecord | undefined, owner: string): boolean {
  const holder = record === undefined ? undefined : ownerOf(record)
  return holder !== undefined && (holder !== owner || owner === UNKNOWN_OWNER)
}

/** What has no identity owns nothing: it joins no conversation, not even one of its own kind. */
function joinsOf(owner: string): Candidate['joins'] {
  return owner === UNKNOWN_OWNER ? { rows: 'none' } : { rows: 'own', owner }
}

/** A key without what `candidates` put behind it. */
export function withoutSuffix(key: string): string {
  return key.replace(/~[0-9a-f]{6}$/u, '')
}

function suffixOf(key: SessionKey, owner: string, attempt: number): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([key, owner, attempt]))
    .digest('hex')
  return digest.slice(0, SUFFIX_DIGITS)
}
