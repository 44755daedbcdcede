import type { Clock } from '../base/clock.ts'
import type { ErrorCode } from '../core/errors.ts'

export interface CircuitOptions {
  /** Failures in a row that open it. */
  readonly maxFailures: number
  /** Different conversations they have to come from: one that always fails says something about itself. */
  readonly minSources: number
  readonly firstPauseMs: number
  readonly maxPauseMs: number
}

export const DEFAULT_CIRCUIT: CircuitOptions = {
  maxFailures: 5,
  minSources: 2,
  firstPauseMs: 5_000,
  maxPauseMs: 120_000,
}

/** What tells about a provider's health. A refused key or request says nothing about it, and neither does a limit. */
const SICK: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'MODEL_OVERLOADED',
  'MODEL_FAILED',
  'MODEL_NETWORK',
  'MODEL_TIMEOUT',
  'MODEL_STREAM_CUT',
])

export type CircuitState = 'closed' | 'open' | 'probing'

/**
 * Keeps sessions from queueing up at a dead provider: after some failures in a row requests fail at once, until a
 * single probe gets through.
 */
export class Circuit {
  readonly #clock: Clock
  readonly #options: CircuitOptions
  #failures = 0
  /** Of the failures in a row, never more than have to be known. */
  readonly #sources = new Set<string>()
  #openings = 0
  #openUntil = 0
  #probing = false

  constructor(clock: Clock, options: CircuitOptions = DEFAULT_CIRCUIT) {
    this.#clock = clock
    this.#options = options
  }

  get state(): CircuitState {
    const { maxFailures, minSources } = this.#options
    if (this.#failures < maxFailures || this.#sources.size < minSources) return 'closed'
    return this.#probing ? 'probing' : 'open'
  }

  /** Zero when a request may be made now; otherwise how long to stay away. Every admission is reported on later. */
  admit(): number {
    if (this.state === 'closed') return 0
    const waitMs = this.#openUntil - this.#clock.monotonic()
    if (waitMs > 0) return waitMs
    if (this.#probing) return this.#options.firstPauseMs
    this.#probing = true
    return 0
  }

  succeeded(): void {
    this.#failures = 0
    this.#sources.clear()
    this.#openings = 0
    this.#probing = false
  }

  /** `source` is the conversation it happened to; absent when the provider never saw what was sent. */
  failed(code: ErrorCode, source?: string): void {
    // An answer of any other kind comes from a living service.
    if (!SICK.has(code)) return this.succeeded()
    this.#probing = false
    this.#failures++
    if (this.#sources.size < this.#options.minSources) this.#sources.add(source ?? `unseen ${this.#failures}`)
    if (this.state === 'closed') return undefined
    const pause = Math.min(this.#options.maxPauseMs, this.#options.firstPauseMs * 2 ** Math.min(this.#openings++, 20))
    this.#openUntil = this.#clock.monotonic() + pause
    return undefined
  }

  /** The request was given up by us: it tells nothing. */
  abandoned(): void {
    this.#probing = false
  }
}
