import type { JsonValue } from './json.ts'

export type LogFacts = { readonly [name: string]: JsonValue | undefined }

/**
 * Structured log lines. Facts are sizes, ids, codes and counts: never message text, never a secret.
 * `message` is a constant sentence, so that lines can be grouped.
 */
export interface Log {
  debug(message: string, facts?: LogFacts): void
  info(message: string, facts?: LogFacts): void
  warn(message: string, facts?: LogFacts): void
  error(message: string, facts?: LogFacts): void
  child(facts: LogFacts): Log
}

export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
}
