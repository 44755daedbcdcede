import type { Clock } from '../base/clock.ts'
import { deferred, type Deferred } from '../base/async.ts'

export interface TurnLimits {
  readonly total: number
  /** Of the total; what is left over belongs to the sessions of other providers. */
  readonly perProvider: number
  readonly perAccount: number
}

/** Whose turn it is, and which provider's answer it waits for. */
export interface TurnClaim {
  readonly provider: string
  readonly account: string
}

export interface ProviderLoad {
  readonly running: number
  readonly waiting: number
  /** Age of the turn that has been running longest. */
  readonly slowestMs: number
}

interface Waiter {
  readonly claim: TurnClaim
  readonly since: number
  readonly admitted: Deferred<void>
}

interface Running {
  readonly claim: TurnClaim
  readonly since: number
}

/**
 * How many turns run at once, over all sessions. A provider that hangs holds no more than its share, and so does one
 * account with many sessions; of those that wait, the account with the fewest running turns is next, then the one that
 * came first.
 */
export class TurnSlots {
  readonly #clock: Clock
  readonly #limits: TurnLimits
  readonly #running = new Set<Running>()
  readonly #ofProvider = new Map<string, number>()
  readonly #ofAccount = new Map<string, number>()
  #waiters: Waiter[] = []
  #admitted = 0

  constructor(clock: Clock, limits: TurnLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** No turn of any session can begin. */
  get isFull(): boolean {
    return this.#admitted >= this.#limits.total
  }

  get inUse(): number {
    return this.#admitted
  }

  get waiting(): number {
    return this.#waiters.length
  }

  /** How long the one that came first has been waiting; 0 when none waits. */
  get longestWaitMs(): number {
    const [first] = this.#waiters
    return first === undefined ? 0 : this.#clock.monotonic() - first.since
  }

  /** Resolves with the release function; calling that twice does nothing. Rejects with the signal's reason. */
  async acquire(claim: TurnClaim, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    // Every waiting turn that could run has a place already, so a new one that fits overtakes none.
    if (!this.#fits(claim)) await this.#wait(claim, signal)
    else this.#count(claim, 1)
    const running = { claim, since: this.#clock.monotonic() }
    this.#running.add(running)
    return () => {
      if (!this.#running.delete(running)) return
      this.#count(claim, -1)
      while (this.#admitNext());
    }
  }

  /** By provider, those that run or wait only. */
  load(): ReadonlyMap<string, ProviderLoad> {
    const now = this.#clock.monotonic()
    const loads = new Map<string, ProviderLoad>()
    const change = (provider: string, edit: (load: ProviderLoad) => ProviderLoad): void => {
      loads.set(provider, edit(loads.get(provider) ?? { running: 0, waiting: 0, slowestMs: 0 }))
    }
    for (const { claim, since } of this.#running) {
      change(claim.provider, (load) => ({
        ...load,
        running: load.running + 1,
        slowestMs: Math.max(load.slowestMs, now - since),
      }))
    }
    for (const { claim } of this.#waiters) change(claim.provider, (load) => ({ ...load, waiting: load.waiting + 1 }))
    return loads
  }

  #fits({ provider, account }: TurnClaim): boolean {
    const { total, perProvider, perAccount } = this.#limits
    return (
      this.#admitted < total &&
      (this.#ofProvider.get(provider) ?? 0) < perProvider &&
      (this.#ofAccount.get(account) ?? 0) < perAccount
    )
  }

  /** Counted at the moment of admission, before the one admitted has gone on. */
  #count({ provider, account }: TurnClaim, by: 1 | -1): void {
    this.#admitted += by
    for (const [counts, name] of [
      [this.#ofProvider, provider],
      [this.#ofAccount, account],
    ] as const) {
      const count = (counts.get(name) ?? 0) + by
      if (count === 0) counts.delete(name)
      else counts.set(name, count)
    }
  }

  async #wait(claim: TurnClaim, signal: AbortSignal): Promise<void> {
    const waiter = { claim, since: this.#clock.monotonic(), admitted: deferred() }
    this.#waiters.push(waiter)
    const onAbort = (): void => {
      if (!this.#waiters.includes(waiter)) return
      this.#waiters = this.#waiters.filter((other) => other !== waiter)
      waiter.admitted.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await waiter.admitted.promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** One release can make room for two: one that waited for its provider, one that waited for its account. */
  #admitNext(): boolean {
    let next: Waiter | undefined
    let fewest = Infinity
    for (const waiter of this.#waiters) {
      const own = this.#ofAccount.get(waiter.claim.account) ?? 0
      if (own >= fewest || !this.#fits(waiter.claim)) continue
      next = waiter
      fewest = own
    }
    if (next === undefined) return false
    this.#waiters = this.#waiters.filter((waiter) => waiter !== next)
    this.#count(next.claim, 1)
    next.admitted.resolve()
    return true
  }
}

/**
 * A turn's place among those that run at once. It is given back while the turn waits for a person, who may take hours,
 * and taken again before the turn goes on.
 */
export class TurnPlace {
  readonly #admit: () => Promise<() => void>
  readonly #onWaiting: () => void
  #release: () => void
  #waits = 0
  /** It is being taken again. */
  #taking: Promise<void> | undefined

  private constructor(release: () => void, admit: () => Promise<() => void>, onWaiting: () => void) {
    this.#release = release
    this.#admit = admit
    this.#onWaiting = onWaiting
  }

  /** `onWaiting` is called whenever the turn begins to wait for a person. Rejects when no place can be had. */
  static async take(admit: () => Promise<() => void>, onWaiting: () => void): Promise<TurnPlace> {
    return new TurnPlace(await admit(), admit, onWaiting)
  }

  /** True while nothing but people can make the turn go on. */
  get isWaiting(): boolean {
    return this.#waits > 0
  }

  /** Several waits of one turn may overlap; the place comes back when the last of them has ended. */
  async whileWaiting<T>(wait: () => Promise<T>): Promise<T> {
    this.#waits++
    this.#release()
    this.#onWaiting()
    try {
      return await wait()
    } finally {
      this.#waits--
      if (this.#waits === 0) await (this.#taking ??= this.#takeAgain())
    }
  }

  release(): void {
    this.#release()
  }

  async #takeAgain(): Promise<void> {
    try {
      this.#release = await this.#admit()
    } finally {
      this.#taking = undefined
    }
    // Meanwhile another call of the same turn may have begun to wait.
    if (this.#waits > 0) this.#release()
  }
}
