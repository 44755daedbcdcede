import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'

/** Something that keeps descriptors open and can give them back. */
export interface OpenFile {
  /** Gives them back until the next use; does nothing in the middle of one. */
  rest(): Promise<void>
}

/** Bounds how many transcripts keep their file and lock open: beyond the limit those used longest ago rest. */
export class OpenFiles {
  readonly #max: number
  readonly #log: Log
  /** Used longest ago first. */
  readonly #open = new Set<OpenFile>()
  readonly #resting = new Set<Promise<void>>()

  constructor(max: number, log: Log) {
    this.#max = max
    this.#log = log
  }

  use(file: OpenFile): void {
    this.#open.delete(file)
    this.#open.add(file)
    if (this.#open.size <= this.#max) return
    const [oldest] = this.#open
    if (oldest !== undefined) this.#rest(oldest)
  }

  forget(file: OpenFile): void {
    this.#open.delete(file)
  }

  #rest(file: OpenFile): void {
    this.#open.delete(file)
    const resting = file.rest().catch((error: unknown) => {
      this.#log.warn('a transcript file could not be closed', { errno: errnoOf(error) })
    })
    this.#resting.add(resting)
    void resting.finally(() => this.#resting.delete(resting))
  }

  async settled(): Promise<void> {
    while (this.#resting.size > 0) await Promise.all(this.#resting)
  }
}
