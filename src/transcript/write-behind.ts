import type { Clock, Timer } from '../base/clock.ts'

export interface WriteBehindOptions {
  readonly clock: Clock
  /** From so many appends under way at once on. */
  readonly fromWriters: number
  readonly delayMs: number
}

/** Whoever has lines that are durable in the journal and not in its file. */
export interface Behind {
  catchUp(): void
}

/**
 * When many sessions write at once, each durable line would cost a call to the system of its own to reach its file, more
 * than everything else about it. Then files follow the journal a moment later, several lines at a time. A store that
 * has little to do never puts anything off: a file holds what was acknowledged.
 */
export class WriteBehind {
  readonly #options: WriteBehindOptions
  readonly #behind = new Set<Behind>()
  #underWay = 0
  #timer: Timer | undefined

  constructor(options: WriteBehindOptions) {
    this.#options = options
  }

  get isCrowded(): boolean {
    return this.#underWay >= this.#options.fromWriters
  }

  begin(): void {
    this.#underWay++
  }

  end(): void {
    this.#underWay--
  }

  /** It is told to catch up soon, unless it says before that it has. */
  add(behind: Behind): void {
    this.#behind.add(behind)
    this.#timer ??= this.#options.clock.after(this.#options.delayMs, () => {
      this.#timer = undefined
      for (const one of this.#behind) one.catchUp()
      this.#behind.clear()
    })
  }

  remove(behind: Behind): void {
    this.#behind.delete(behind)
  }

  /** Whoever is behind has been closed by now. */
  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
