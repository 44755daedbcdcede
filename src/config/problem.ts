import type { ErrorCode } from '../core/errors.ts'

export type KeyPath = readonly (string | number)[]

export interface ConfigProblem {
  /** Advice is about what works and could be better. */
  readonly severity: 'error' | 'warning' | 'advice'
  readonly code: ErrorCode
  /** The file, or the flag that brought the value. */
  readonly source: string
  /** Both from 1; absent when the problem is about something that is not in the file. */
  readonly line?: number
  readonly column?: number
  /** Dotted, `listen.port`; empty when the file as a whole is meant. */
  readonly key: string
  /** What is wrong and what is allowed. Never holds a secret. */
  readonly message: string
  /** It names an environment variable that is not set in this shell. */
  readonly isUnset?: boolean
}

/** `bridge.json:3:11: listen.port: expected …`, the form editors and terminals make clickable. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line === undefined ? problem.source : `${problem.source}:${problem.line}:${problem.column ?? 1}`
  return problem.key === '' ? `${place}: ${problem.message}` : `${place}: ${problem.key}: ${problem.message}`
}

export function keyOf(path: KeyPath): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('')
}
