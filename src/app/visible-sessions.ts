import type { SessionKey } from '../core/ids.ts'
import { type Caller, mayUse, ownerOf, type SessionRecord } from '../core/inbound.ts'
import type { Storage } from '../storage/storage.ts'

const MOST_KNOWN = 2_000

/**
 * Whether a reader of live events may hear of a conversation, answered at once: whose a conversation is, is remembered
 * for those that were in use lately. Of one that is not known yet only readers that see everything hear; it is learned
 * for the next event.
 */
export class VisibleSessions {
  readonly #storage: Storage
  readonly #owners = new Map<string, string | undefined>()
  readonly #stop: () => void

  /** While `isFollowed` says that no events are made nothing is learned, and what changes is forgotten. */
  constructor(storage: Storage, isFollowed: () => boolean) {
    this.#storage = storage
    this.#stop = storage.watch((notice) => {
      if (notice.kind !== 'session' && notice.kind !== 'message') return
      if (isFollowed()) void this.#learn(notice.key)
      else this.#owners.delete(notice.key)
    })
  }

  async #learn(key: SessionKey): Promise<void> {
    this.#remember(key, await this.#storage.sessions.get(key).catch(() => undefined))
  }

  #remember(key: string, record: SessionRecord | undefined): void {
    this.#owners.delete(key)
    if (record === undefined) return
    this.#owners.set(key, ownerOf(record))
    const [oldest] = this.#owners.size > MOST_KNOWN ? this.#owners.keys() : []
    if (oldest !== undefined) this.#owners.delete(oldest)
  }

  maySee(key: string, caller: Caller): boolean {
    if (caller.sees === 'all') return true
    if (this.#owners.has(key)) return this.#owners.get(key) === caller.owner
    void this.#learn(key as SessionKey)
    return false
  }

  /** The same for one conversation that is asked for by its name. */
  async mayOpen(key: string, caller: Caller): Promise<boolean> {
    const row = await this.#storage.sessions.resolve(key)
    this.#remember(key, row?.record)
    return row === undefined ? caller.sees === 'all' : mayUse(caller, row.record)
  }

  close(): void {
    this.#stop()
  }
}
