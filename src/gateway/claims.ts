import { createHash } from 'node:crypto'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import { callerOf, UNKNOWN_OWNER, type InboundMessage } from '../core/inbound.ts'
import { ownerOf, type SessionDirectory } from '../session/directory.ts'
import { isLocal, parseSlash } from '../session/commands.ts'
import { isAutomatic, routeOf, type RouteSettings } from '../session/route.ts'

export interface ClaimsDeps {
  readonly directory: SessionDirectory
  readonly ids: Ids
  readonly route: RouteSettings
  /** Conversations there may be. */
  readonly maxSessions: number
}

export interface Claim {
  readonly key: SessionKey
  /** To be called when the message is durable, or refused: from then on the index says whose the key is. */
  release(): void
}

const SUFFIX_DIGITS = 6

/**
 * Which conversation a message joins, and whether it may. Two owners whose messages happen to have the same id never
 * meet: the key that the id makes belongs to the first of them, also while its message is still being made durable.
 */
export class Claims {
  readonly #deps: ClaimsDeps
  /** Keys of messages that are being made durable and have no row yet. */
  readonly #claimed = new Map<SessionKey, { readonly owner: string; messages: number }>()
  /** Conversations that messages being made durable begin. */
  #beginning = 0

  constructor(deps: ClaimsDeps) {
    this.#deps = deps
  }

  /**
   * Throws `SESSION_NOT_FOUND` for a conversation that the sender may not see, `SESSION_LIMIT` for one that would be one
   * too many.
   */
  claim(message: InboundMessage): Claim {
    const key = this.keyOf(message)
    const begins = this.#deps.directory.get(key) === undefined && !isLocal(parseSlash(message.text))
    if (begins) this.checkRoom()
    return this.#hold(key, callerOf(message).owner, begins)
  }

  /** Whether a message of this key is being made durable. */
  isClaimed(key: SessionKey): boolean {
    return this.#claimed.has(key)
  }

  /** The conversation a message joins, as far as the index knows. Throws as `claim` does. */
  keyOf(message: InboundMessage): SessionKey {
    const { owner, sees } = callerOf(message)
    const routed = this.#routedKey(message)
    const isShared = !isAutomatic(message, this.#deps.route) || this.#deps.route.scope === 'global'
    if (!isShared || (sees === 'own' && routed === 'global')) return this.#ownKey(routed, owner)
    if (sees === 'own' && this.#isTaken(routed, owner))
      throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', { key: routed.slice(0, 200) })
    return routed
  }

  /** Throws `SESSION_LIMIT` when there is no room for another conversation. */
  checkRoom(): void {
    const { directory, maxSessions } = this.#deps
    if (directory.size + this.#beginning < maxSessions) return
    throw new GatewayError(
      'SESSION_LIMIT',
      `there are ${directory.size} conversations already; delete some, go on with one by its "session", or raise limits.sessions`,
      { sessions: directory.size, limit: maxSessions },
    )
  }

  /** The key of the route; a row adopted from a file may have another case, and is found exactly first, then folded. */
  #routedKey(message: InboundMessage): SessionKey {
    const { directory, route } = this.#deps
    const asWritten = routeOf(message, { ...route, preserveCase: true })
    if (directory.get(asWritten) !== undefined) return asWritten
    const key = routeOf(message, route)
    const isFolded = !route.preserveCase && message.route.preserveCase !== true
    return isFolded ? (directory.resolve(key)?.key ?? key) : key
  }

  /**
   * The key itself while it is free, else one beside it. The suffix is made from the owner, so that the same message sent
   * again finds the same conversation.
   */
  #ownKey(key: SessionKey, owner: string): SessionKey {
    let candidate = key
    for (let attempt = 0; this.#isTaken(candidate, owner); attempt++) {
      const suffix = owner === UNKNOWN_OWNER ? this.#deps.ids.hex(SUFFIX_DIGITS) : suffixOf(key, owner, attempt)
      candidate = `${key}~${suffix}` as SessionKey
    }
    return candidate
  }

  #isTaken(key: SessionKey, owner: string): boolean {
    const record = this.#deps.directory.get(key)
    const holder = record === undefined ? this.#claimed.get(key)?.owner : ownerOf(record)
    return holder !== undefined && (holder !== owner || owner === UNKNOWN_OWNER)
  }

  #hold(key: SessionKey, owner: string, begins: boolean): Claim {
    if (begins) this.#beginning++
    const claimed = this.#claimed.get(key) ?? { owner, messages: 0 }
    claimed.messages++
    this.#claimed.set(key, claimed)
    return {
      key,
      release: () => {
        if (begins) this.#beginning--
        claimed.messages--
        if (claimed.messages === 0) this.#claimed.delete(key)
      },
    }
  }
}

function suffixOf(key: SessionKey, owner: string, attempt: number): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([key, owner, attempt]))
    .digest('hex')
  return digest.slice(0, SUFFIX_DIGITS)
}
