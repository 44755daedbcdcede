import type { Clock } from '../base/clock.ts'
import { isOneOf, type JsonObject } from '../base/json.ts'
import type { Log, LogFacts } from '../base/log.ts'
import type { LiveEvents } from './live-events.ts'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LEVELS)[number]

export function isLogLevel(value: string): value is LogLevel {
  return isOneOf(value, LEVELS)
}

const KEPT = 1_000

/** The latest log lines in memory, for the page; they hold what the log holds, so no text and no secret. */
export class LogLines {
  readonly #clock: Clock
  readonly #lines: { readonly n: number; readonly level: LogLevel; readonly line: JsonObject }[] = []
  #written = 0
  /** Pages that read along. */
  live: LiveEvents | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A log that also keeps its lines here. */
  around(inner: Log, facts: LogFacts = {}): Log {
    const write =
      (level: LogLevel) =>
      (message: string, more: LogFacts = {}) => {
        inner[level](message, more)
        this.#keep(level, message, { ...facts, ...more })
      }
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (more) => this.around(inner.child(more), { ...facts, ...more }),
    }
  }

  /** The latest of this level and above, oldest first; the cursor leads to those before them. */
  latest(level: LogLevel, limit: number, before = Number.POSITIVE_INFINITY): JsonObject {
    const from = LEVELS.indexOf(level)
    const found = this.#lines.filter((one) => one.n < before && LEVELS.indexOf(one.level) >= from)
    const shown = found.slice(-limit)
    const [first] = shown
    return {
      lines: shown.map(({ line }) => line),
      ...(first === undefined || shown.length === found.length ? {} : { nextCursor: String(first.n) }),
    }
  }

  #keep(level: LogLevel, message: string, { session, ...facts }: LogFacts): void {
    const line: JsonObject = {
      at: this.#clock.now(),
      level,
      message,
      ...(typeof session === 'string' ? { session } : {}),
      facts: Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)),
    }
    this.#lines.push({ n: this.#written++, level, line })
    if (this.#lines.length > KEPT) this.#lines.shift()
    if (this.live?.hasReaders === true) this.live.emit('log', line)
  }
}
