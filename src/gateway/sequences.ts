const BLOCK = 1_024

/**
 * Frame numbers per account that never repeat, not even after a crash: numbers are handed out only below a durable
 * bound, and after a restart counting goes on at that bound.
 */
export class Sequences {
  readonly #next = new Map<string, number>()
  readonly #reserved = new Map<string, number>()

  /** Undefined when the durable bound is reached: reserve more first. */
  take(account: string): number | undefined {
    const next = this.#next.get(account) ?? (this.#reserved.get(account) ?? 0) + 1
    if (next > (this.#reserved.get(account) ?? 0)) return undefined
    this.#next.set(account, next + 1)
    return next
  }

  /** For clients that never come back under the same name: nothing to survive, nothing to reserve. */
  takeEphemeral(account: string): number {
    const next = this.#next.get(account) ?? 1
    this.#next.set(account, next + 1)
    return next
  }

  forget(account: string): void {
    this.#next.delete(account)
  }

  nextReservation(account: string): number {
    return (this.#reserved.get(account) ?? 0) + BLOCK
  }

  /** A bound that became durable. Live, counting goes on inside it; after a restart it starts behind it. */
  reserve(account: string, upTo: number): void {
    const before = this.#reserved.get(account) ?? 0
    if (upTo <= before) return
    this.#reserved.set(account, upTo)
    if (!this.#next.has(account)) this.#next.set(account, before + 1)
  }

  reservations(): Iterable<[string, number]> {
    return this.#reserved.entries()
  }

  /** After recovery: whatever was reserved may have been used. */
  startBehindReservations(): void {
    for (const [account, upTo] of this.#reserved) this.#next.set(account, upTo + 1)
  }
}
