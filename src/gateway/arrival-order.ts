/**
 * What arrives for one session takes effect in the order it arrived, however long each thing takes to become ready: a
 * reset that follows a message on the same socket must find that message, and one that follows the reset must survive it.
 */
export class ArrivalOrder {
  /** The end of each session's line; absent while nothing stands in it. */
  readonly #lines = new Map<string, Promise<void>>()

  /** Runs `act` when `ready` is settled and everything that came before has acted. Resolves with what `act` returned. */
  enter<T>(line: string, ready: Promise<unknown>, act: () => T): Promise<Awaited<T>> {
    return this.#stand(line, Promise.allSettled([this.#lines.get(line), ready]), async () => act)
  }

  /**
   * The same for what has to look something up first: that is done when everything before has acted, and what comes next
   * waits for it, so that `act` finds what came before it and nothing that came later.
   */
  enterAndFind<R, T>(line: string, find: () => Promise<R>, act: (found: R) => T): Promise<Awaited<T>> {
    return this.#stand(line, this.#lines.get(line) ?? Promise.resolve(), async () => {
      const found = await find()
      return () => act(found)
    })
  }

  async #stand<T>(line: string, ready: Promise<unknown>, prepare: () => Promise<() => T>): Promise<Awaited<T>> {
    let acted: { readonly value: T } | undefined
    const turn = ready.then(prepare).then((act) => {
      // The value is not awaited here: whatever comes next waits for the start of this, not for its end.
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
