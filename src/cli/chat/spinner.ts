import type { Clock, Timer } from '../../base/clock.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 120

/** Shows that something is under way until the first words come. */
export class Spinner {
  readonly #clock: Clock
  readonly #show: (text: string) => void
  #timer: Timer | undefined

  constructor(clock: Clock, show: (text: string) => void) {
    this.#clock = clock
    this.#show = show
  }

  start(words: string): void {
    this.stop()
    this.#turn(words, 0)
  }

  stop(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#show('')
  }

  #turn(words: string, frame: number): void {
    this.#show(`${FRAMES[frame % FRAMES.length] ?? ''} ${words}`)
    this.#timer = this.#clock.after(FRAME_MS, () => this.#turn(words, frame + 1))
  }
}
