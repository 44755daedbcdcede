/**
 * What arrives for one session takes effect in the order it arrived, however long each thing takes to become ready: a
 * reset that follows a message on the same socket must find that message, and one that follows the reset must survive it.
 */
export class ArrivalOrder {
  /** The end of each session's line; gone when nobody stands in it. */
  readonly #lines = new Map<string, Promise<void>>()

  /** Runs `act` when `ready` is settled and everything that came before has acted. Resolves with what `act` returned. */
  async enter<T>(line: string, ready: Promise<unknown> | undefined, act: () => T): Promise<Awaited<T>> {
    const before = this.#lines.get(line)
    if (before === undefined && ready === undefined) return await act()
    let acted: { readonly value: T } | undefined
    const turn = Promise.allSettled([before, ready]).then(() => {
      // The value is not awaited here: whoever comes next waits for the start of this, not for its end.
      acted = { value: act() }
    })
    const done = turn.catch(() => undefined)
    this.#lines.set(line, done)
    try {
      await turn
    } finally {
      if (this.#lines.get(line) === done) this.#lines.delete(line)
    }
    return await (acted as unknown as { readonly value: T }).value
  }
}
