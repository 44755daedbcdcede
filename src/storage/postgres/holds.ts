import type { Clock, Timer } from '../../base/clock.ts'
import type { Database } from '../../base/database.ts'
import type { Hold } from '../storage.ts'
import { toColumn } from './column-text.ts'

export interface HoldsOptions {
  readonly database: Pick<Database, 'query'>
  readonly clock: Clock
  readonly node: string
  readonly leaseMs: number
  hasOthers(): boolean
}

const TAKE = {
  name: 'hold_take',
  text: `insert into accounts as a (channel, account, next_seq, node)
    values ($1, $2, coalesce((select next_seq from accounts where channel = '' and account = ''), 1), $3)
    on conflict (channel, account) do update set node = $3
      where a.node is null or a.node = $3 or not is_alive(a.node)
    returning node`,
}
const KEPT = { name: 'hold_kept', text: 'select channel, account from accounts where node = $1' }
const RELEASE = {
  name: 'hold_release',
  text: 'update accounts set node = null where channel = $1 and account = $2 and node = $3',
}

/** What this node holds alone, for as long as it renews its lease. */
export class Holds {
  readonly #options: HoldsOptions
  readonly #held = new Map<string, AbortController>()
  #leaseUntil = Number.NEGATIVE_INFINITY
  #expiry: Timer | undefined

  constructor(options: HoldsOptions) {
    this.#options = options
  }

  async take(channel: string, account: string): Promise<Hold | undefined> {
    const { database, node, hasOthers } = this.#options
    const place = [toColumn(channel), toColumn(account)]
    const taken = await database.query(TAKE, [...place, node])
    if (taken.length === 0) return undefined
    const lost = new AbortController()
    const name = nameOf(place)
    this.#held.set(name, lost)
    this.#watch()
    return {
      lost: lost.signal,
      get hasSuccessor() {
        return hasOthers()
      },
      release: async () => {
        if (this.#held.get(name) !== lost) return
        this.#held.delete(name)
        await database.query(RELEASE, [...place, node])
      },
    }
  }

  /** The lease was renewed by a statement that was sent at this monotonic time. */
  renewed(at: number): void {
    this.#leaseUntil = at + this.#options.leaseMs
    this.#watch()
  }

  /** Gives up what another node took. */
  async check(): Promise<void> {
    if (this.#held.size === 0) return
    const { database, node } = this.#options
    const before = new Map(this.#held)
    const rows = await database.query<{ channel: string; account: string }>(KEPT, [node])
    const kept = new Set(rows.map(({ channel, account }) => nameOf([channel, account])))
    for (const [name, lost] of before) if (!kept.has(name)) this.#lose(name, lost)
  }

  close(): void {
    this.#expiry?.cancel()
  }

  /** Others take it when the lease is over: from then on it must not be used here either. */
  #watch(): void {
    const { clock } = this.#options
    this.#expiry?.cancel()
    if (this.#held.size === 0) return
    this.#expiry = clock.after(Math.max(0, this.#leaseUntil - clock.monotonic()), () => {
      for (const [name, lost] of this.#held) this.#lose(name, lost)
    })
  }

  #lose(name: string, lost: AbortController): void {
    if (this.#held.get(name) === lost) this.#held.delete(name)
    lost.abort(new Error('another node may hold it now'))
  }
}

function nameOf(place: readonly string[]): string {
  return place.join('\n')
}
