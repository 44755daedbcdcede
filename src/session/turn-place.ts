/**
 * A turn's place among those that run at once. It is given back while the turn waits for a person, who may take hours,
 * and taken again before the turn goes on.
 */
export class TurnPlace {
  readonly #admit: () => Promise<() => void>
  readonly #onWaiting: () => void
  #release: () => void
  #waits = 0

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
      if (this.#waits === 0) await this.#takeAgain()
    }
  }

  release(): void {
    this.#release()
  }

  async #takeAgain(): Promise<void> {
    this.#release = await this.#admit()
    // Meanwhile another call of the same turn may have begun to wait.
    if (this.#waits > 0) this.#release()
  }
}
