/** Bytes that many may hold together. */
export class ByteBudget {
  readonly #max: number
  #held = 0

  constructor(max: number) {
    this.#max = max
  }

  get held(): number {
    return this.#held
  }

  /** False, and nothing taken, when there is no room. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#max) return false
    this.#held += bytes
    return true
  }

  give(bytes: number): void {
    this.#held -= bytes
  }
}
