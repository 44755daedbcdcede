import { isRecord, parseJson } from '../base/json.ts'
import type { Log, LogFacts } from '../base/log.ts'
import { createRedactor } from '../base/redact.ts'
import { formatLogLine } from './log-line.ts'

export interface PinoLogOptions {
  /** Adds debug lines: more structure (ids, sizes, timings), never content. */
  readonly verbose: boolean
  /** One readable line per event instead of NDJSON: for a person at a terminal. */
  readonly pretty: boolean
  readonly colors?: boolean
  /** Waits for every line to be written: for commands that end soon. A server must not wait for the reader of its log. */
  readonly sync: boolean
  /** Lines waiting for a slow reader beyond this are dropped. */
  readonly maxBufferedBytes?: number
  /** Cut out wherever they appear. */
  readonly secrets?: readonly string[]
  /** Default: 2, standard error; standard output is for data. */
  readonly descriptor?: number
  /** Takes the lines instead of the descriptor. */
  readonly write?: (line: string) => void
  /** Gets every line as JSON, besides. */
  readonly copy?: (line: string) => void
}

export interface PinoLog {
  readonly log: Log
  /** Cuts these out too from now on. */
  hide(secrets: readonly string[]): void
  /** Writes what is buffered; to be called last. */
  flush(): void
}

/** Pino is loaded here and not at import, so that commands without a log do not pay for it. */
export async function openPinoLog(options: PinoLogOptions): Promise<PinoLog> {
  const { pino } = await import('pino')
  const sink = options.write === undefined ? openSink(pino.destination, options) : { write: options.write, flush() {} }
  const write = (line: string): void => {
    sink.write(options.pretty ? toPretty(line, options) : line)
    options.copy?.(line)
  }
  const logger = pino(
    {
      level: options.verbose ? 'debug' : 'info',
      base: options.verbose ? { pid: process.pid } : null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  )
  const known = new Set(options.secrets)
  let redact = createRedactor({ secrets: [...known] })
  return {
    log: wrap(logger, (value) => redact(value)),
    hide(secrets) {
      for (const secret of secrets) known.add(secret)
      redact = createRedactor({ secrets: [...known] })
    },
    flush: () => sink.flush(),
  }
}

interface PinoLike {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
  isLevelEnabled(level: string): boolean
}

function wrap(logger: PinoLike, redact: (value: LogFacts | string) => unknown, bound: LogFacts = {}): Log {
  const clean = (facts: LogFacts): object => {
    const cleaned = redact(facts)
    return isRecord(cleaned) ? cleaned : {}
  }
  const line =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, facts: LogFacts = {}): void => {
      if (logger.isLevelEnabled(level)) logger[level](clean({ ...bound, ...facts }), String(redact(message)))
    }
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    // Pino's own children write a fact twice when a line names it again.
    child: (facts) => wrap(logger, redact, { ...bound, ...facts }),
  }
}

interface Sink {
  write(line: string): void
  flush(): void
}

interface Destination {
  write(line: string): unknown
  flushSync(): void
  on(event: 'error', listener: () => void): unknown
}

function openSink(
  open: (options: { fd: number; sync: boolean; maxLength: number }) => Destination,
  options: PinoLogOptions,
): Sink {
  const destination = open({
    fd: options.descriptor ?? 2,
    sync: options.sync,
    maxLength: options.sync ? 0 : (options.maxBufferedBytes ?? 4 * 1024 * 1024),
  })
  // The reader of our log went away (EPIPE): the gateway goes on without it.
  destination.on('error', () => undefined)
  return {
    write: (line) => void destination.write(line),
    flush() {
      try {
        destination.flushSync()
      } catch {
        // The reader is gone.
      }
    },
  }
}

function toPretty(line: string, options: PinoLogOptions): string {
  const record = parseJson(line)
  return isRecord(record) ? formatLogLine(record, { verbose: options.verbose, colors: options.colors ?? false }) : line
}
