import type { Clock, Timer } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'

/** Something that keeps descriptors open and can give them back. */
export interface OpenFile {
  /** Gives them back until the next use; does nothing in the middle of one. */
  rest(): Promise<void>
}

export interface OpenFilesDeps {
  readonly clock: Clock
  readonly log: Log
  readonly max: number
  /** Not written for so long, a file and its lock are given back. */
  readonly restAfterMs: number
}

/**
 * Which transcripts keep their file and lock open: those written lately, and no more than the limit. The appends of one
 * message and of the next ones share a lock, and a model that thinks for long holds none.
 */
export class OpenFiles {
  readonly #deps: OpenFilesDeps
  /** With the time of the last use; used longest ago first. */
  readonly #open = new Map<OpenFile, number>()
  readonly #resting = new Set<Promise<void>>()
  #look: Timer | undefined

  constructor(deps: OpenFilesDeps) {
    this.#deps = deps
  }

  use(file: OpenFile): void {
    this.#open.delete(file)
    this.#open.set(file, this.#deps.clock.monotonic())
    this.#lookLater()
    const [oldest] = this.#open.keys()
    if (this.#open.size > this.#deps.max && oldest !== undefined) this.#rest(oldest)
  }

  forget(file: OpenFile): void {
    this.#open.delete(file)
  }

  async close(): Promise<void> {
    this.#look?.cancel()
    while (this.#resting.size > 0) await Promise.all(this.#resting)
  }

  #lookLater(): void {
    const { clock, restAfterMs } = this.#deps
    this.#look ??= clock.after(restAfterMs, () => {
      this.#look = undefined
      const longAgo = clock.monotonic() - restAfterMs
      for (const [file, usedAt] of this.#open) if (usedAt <= longAgo) this.#rest(file)
      if (this.#open.size > 0) this.#lookLater()
    })
  }

  #rest(file: OpenFile): void {
    this.#open.delete(file)
    const resting = file.rest().catch((error: unknown) => {
      this.#deps.log.warn('a transcript file could not be closed', { errno: errnoOf(error) })
    })
    this.#resting.add(resting)
    void resting.finally(() => this.#resting.delete(resting))
  }
}
