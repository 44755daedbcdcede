import { type Caller, mayUse, ownerOf } from '../core/inbound.ts'
import type { Storage } from '../storage/storage.ts'

const MOST_KNOWN = 2_000
/** Conversations changed last, whose owners are looked up when the first page opens. */
const KNOWN_AT_FIRST = 200

/**
 * Whether a reader of live events may hear of a conversation, answered at once: whose a conversation is, is remembered
 * for those that are in use while pages are open. Of one that is not known yet only readers that see everything hear.
 */
export class VisibleSessions {
  readonly #storage: Storage
  readonly #owners = new Map<string, string | undefined>()
  #stop: (() => void) | undefined

  constructor(storage: Storage) {
    this.#storage = storage
  }

  /** Whether there are readers, or ones that may come back. */
  setFollowed(isFollowed: boolean): void {
    this.#stop?.()
    this.#stop = undefined
    if (!isFollowed) return this.#owners.clear()
    this.#stop = this.#storage.watch((notice) => {
      if (notice.kind === 'session' || notice.kind === 'message') void this.learn(notice.key)
    })
    void this.#learnLatest()
  }

  async #learnLatest(): Promise<void> {
    await Promise.all([...this.#owners.keys()].map((key) => this.learn(key)))
    const { sessions } = await this.#storage.sessions.list({ limit: KNOWN_AT_FIRST }).catch(() => ({ sessions: [] }))
    for (const { key, record } of sessions) if (!this.#owners.has(key)) this.#remember(key, ownerOf(record))
  }

  /** Resolves when the conversation's owner is known. */
  async learn(key: string): Promise<void> {
    const row = await this.#storage.sessions.resolve(key).catch(() => undefined)
    this.#owners.delete(key)
    if (row !== undefined) this.#remember(key, ownerOf(row.record))
  }

  #remember(key: string, owner: string | undefined): void {
    this.#owners.set(key, owner)
    const [oldest] = this.#owners.size > MOST_KNOWN ? this.#owners.keys() : []
    if (oldest !== undefined) this.#owners.delete(oldest)
  }

  maySee(key: string, caller: Caller): boolean {
    if (caller.sees === 'all') return true
    return this.#owners.has(key) && this.#owners.get(key) === caller.owner
  }

  /** The same for one conversation that is asked for by its name. */
  async mayOpen(key: string, caller: Caller): Promise<boolean> {
    // Without a watch no change of owner is noticed: only what is opened at this moment may be known.
    if (this.#stop === undefined) this.#owners.clear()
    await this.learn(key)
    const row = await this.#storage.sessions.resolve(key)
    return row === undefined ? caller.sees === 'all' : mayUse(caller, row.record)
  }
}
