/** Runs tasks one after another, in the order they were given. A failed task does not stop the next. */
export class Mailbox {
  #tail: Promise<void> = Promise.resolve()

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(task)
    this.#tail = result.then(
      () => undefined,
      () => undefined,
    )
    return result
  }

  /** Resolves when everything given so far has ended. */
  idle(): Promise<void> {
    return this.#tail
  }
}
