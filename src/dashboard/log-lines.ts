import type { Clock } from '../base/clock.ts'
import { isOneOf, type JsonObject } from '../base/json.ts'
import type { Log, LogFacts } from '../base/log.ts'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LEVELS)[number]

export function isLogLevel(value: string): value is LogLevel {
  return isOneOf(value, LEVELS)
}

const KEPT = 1_000

/** The latest log lines in memory, for the page; they hold what the log holds, so no text and no secret. */
export class LogLines {
  readonly #clock: Clock
  readonly #lines: { readonly level: LogLevel; readonly line: JsonObject }[] = []
  onLine: ((line: JsonObject) => void) | undefined

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

  /** Oldest first, from this level on. */
  latest(level: LogLevel, limit: number): JsonObject[] {
    const from = LEVELS.indexOf(level)
    return this.#lines
      .filter((one) => LEVELS.indexOf(one.level) >= from)
      .slice(-limit)
      .map(({ line }) => line)
  }

  #keep(level: LogLevel, message: string, { session, ...facts }: LogFacts): void {
    const line: JsonObject = {
      at: this.#clock.now(),
      level,
      message,
      ...(typeof session === 'string' ? { session } : {}),
      facts: Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)),
    }
    this.#lines.push({ level, line })
    if (this.#lines.length > KEPT) this.#lines.shift()
    this.onLine?.(line)
  }
}
