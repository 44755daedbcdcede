import type { Change, Owner } from '../../core/change.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionKey } from '../../core/ids.ts'

/**
 * Which epoch of a session may write. One process holds everything here, so that nothing outlives it: numbers are drawn
 * from one counter, rise over all sessions and are never used again.
 */
export class Epochs {
  readonly #current = new Map<SessionKey, number>()
  #last = 0

  /** Undefined for a session that is not held. */
  of(key: SessionKey): Owner | undefined {
    const epoch = this.#current.get(key)
    return epoch === undefined ? undefined : { session: key, epoch }
  }

  take(key: SessionKey): Owner {
    return this.of(key) ?? this.#next(key)
  }

  release(owner: Owner): void {
    if (this.isCurrent(owner)) this.#current.delete(owner.session)
  }

  /** Its owner is void: the next taking draws another number. So memory does not grow with every session there ever was. */
  forget(key: SessionKey): void {
    this.#current.delete(key)
  }

  isCurrent({ session, epoch }: Owner): boolean {
    return this.#current.get(session) === epoch
  }

  /** Throws for a void owner; what raises an epoch counts from here on, before it is durable. */
  enter(changes: readonly Change[], owner: Owner | undefined): void {
    if (owner !== undefined && !this.isCurrent(owner))
      throw new GatewayError('OWNERSHIP_LOST', 'this session was taken over or stopped meanwhile', {
        session: owner.session,
        epoch: owner.epoch,
      })
    for (const change of changes)
      if (change.kind === 'raise-epoch' && this.#current.has(change.key)) this.#next(change.key)
  }

  #next(session: SessionKey): Owner {
    const epoch = ++this.#last
    this.#current.set(session, epoch)
    return { session, epoch }
  }
}
