import type { Files } from '../../src/base/files.ts'
import { withTurns } from './turned-files.ts'

/**
 * Lets several programs work on one disk with their calls interleaved as `random` says: each call waits until it is
 * picked. A program that is killed never gets its next call done.
 */
export class Interleaving {
  readonly #disk: Files
  readonly #random: () => number
  #waiting: { readonly program: string; readonly go: () => void }[] = []

  constructor(disk: Files, random: () => number) {
    this.#disk = disk
    this.#random = random
  }

  filesOf(program: string): Files {
    return withTurns(
      this.#disk,
      () =>
        new Promise((resolve) => {
          this.#waiting.push({ program, go: resolve })
        }),
    )
  }

  /** Lets one waiting call happen; false when there is none. */
  async step(): Promise<boolean> {
    // What the last call caused reaches the next call first.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const at = Math.floor(this.#random() * this.#waiting.length)
    const [next] = this.#waiting.splice(at, 1)
    next?.go()
    return next !== undefined
  }

  kill(program: string): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.program !== program)
  }
}
