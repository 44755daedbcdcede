import type { Clock } from '../base/clock.ts'
import type { RequestTiming } from '../history/request-record.ts'

/** When a request was sent, when its answer began, when it ended: stored with it, so that a past turn has a timeline. */
export class RequestTimes {
  readonly #clock: Clock
  #startedAt: number | undefined
  #started = 0
  #firstByteMs: number | undefined
  #durationMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(): void {
    this.#startedAt = this.#clock.now()
    this.#started = this.#clock.monotonic()
  }

  heard(): void {
    this.#firstByteMs ??= this.#clock.monotonic() - this.#started
  }

  end(): number {
    this.#durationMs = this.#clock.monotonic() - this.#started
    return this.#durationMs
  }

  timing(): RequestTiming {
    if (this.#startedAt === undefined) return {}
    return {
      startedAt: this.#startedAt,
      ...(this.#firstByteMs === undefined ? {} : { firstByteMs: this.#firstByteMs }),
      durationMs: this.#durationMs ?? this.#clock.monotonic() - this.#started,
    }
  }
}
