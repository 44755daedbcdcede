const BLOCK = 1_024
const BYTES_PER_ACCOUNT = 256

/**
 * Frame numbers per account that never repeat, not even after a crash: numbers are handed out only below a durable
 * bound, and after a restart counting goes on at that bound. Accounts beyond the limit are forgotten, the oldest first;
 * one that comes back counts on from the highest number any forgotten account had.
 */
export class Sequences {
  readonly #maxAccounts: number
  readonly #next = new Map<string, number>()
  readonly #reserved = new Map<string, number>()
  #floor = 0

  constructor(maxAccounts: number) {
    this.#maxAccounts = maxAccounts
  }

  /** A name of the usual length and two numbers, in two maps. */
  get heldBytes(): number {
    return BYTES_PER_ACCOUNT * Math.max(this.#next.size, this.#reserved.size)
  }

  get floor(): number {
    return this.#floor
  }

  /** Undefined when the durable bound is reached: reserve more first. */
  take(account: string): number | undefined {
    const bound = this.#boundOf(account)
    const next = this.#next.get(account) ?? bound + 1
    if (next > bound) return undefined
    this.#next.set(account, next + 1)
    return next
  }

  /**
   * A number that is first used when `reserved`, if given, is durable too: commit both together. Saves a caller that writes
   * anyway a commit of its own.
   */
  takeWith(account: string): { readonly seq: number; readonly reserved?: number } {
    const ready = this.take(account)
    if (ready !== undefined) return { seq: ready }
    const bound = this.#boundOf(account)
    const seq = Math.max(this.#next.get(account) ?? 0, bound + 1)
    this.#next.set(account, seq + 1)
    return { seq, reserved: seq + BLOCK }
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
    return this.#boundOf(account) + BLOCK
  }

  /** A bound that became durable. Live, counting goes on inside it; after a restart it starts behind it. */
  reserve(account: string, upTo: number): void {
    const before = this.#boundOf(account)
    if (upTo <= before) return
    this.#reserved.delete(account)
    this.#reserved.set(account, upTo)
    if (!this.#next.has(account)) this.#next.set(account, before + 1)
    if (this.#reserved.size > this.#maxAccounts) this.#forgetOldest()
  }

  raiseFloor(upTo: number): void {
    this.#floor = Math.max(this.#floor, upTo)
  }

  reservations(): Iterable<[string, number]> {
    return this.#reserved.entries()
  }

  /** After recovery: whatever was reserved may have been used. */
  startBehindReservations(): void {
    for (const [account, upTo] of this.#reserved) this.#next.set(account, upTo + 1)
  }

  #boundOf(account: string): number {
    return this.#reserved.get(account) ?? this.#floor
  }

  #forgetOldest(): void {
    const [oldest] = this.#reserved
    if (oldest === undefined) return
    const [account, upTo] = oldest
    this.raiseFloor(upTo)
    this.#reserved.delete(account)
    this.#next.delete(account)
  }
}
