import { deferred, type Deferred } from './deferred.ts'

/** At most `slots` holders; waiters are served in the order they came. */
export class Semaphore {
  #free: number
  readonly #waiters: Deferred<void>[] = []

  constructor(slots: number) {
    this.#free = slots
  }

  get waiting(): number {
    return this.#waiters.length
  }

  /** Resolves with the release function; calling that twice does nothing. Rejects with the signal's reason. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free--
    else await this.#wait(signal)
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#release()
    }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const turn = deferred()
    this.#waiters.push(turn)
    const onAbort = (): void => {
      const place = this.#waiters.indexOf(turn)
      if (place < 0) return
      this.#waiters.splice(place, 1)
      turn.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await turn.promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  #release(): void {
    const next = this.#waiters.shift()
    if (next === undefined) this.#free++
    else next.resolve()
  }
}
