import type { JsonValue } from '../../base/json.ts'
import type { RuleViolation } from '../rules/rule.ts'
import type { Conversation } from './conversation.ts'
import type { SimulatedApi } from './script.ts'

/** What the simulator saw. Keys are replaced before anything is kept. */
export interface SeenRequest {
  readonly index: number
  readonly at: number
  readonly api: SimulatedApi
  readonly endpoint: 'generate' | 'count-tokens' | 'models' | 'unknown'
  readonly method: string
  /** Path and query, keys redacted. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The exact text of the body; cut at the recording limit. */
  readonly bodyText: string
  readonly body: JsonValue | undefined
  readonly model: string
  readonly stream: boolean
  readonly conversation: Conversation
  readonly violations: readonly RuleViolation[]
  /** Set as the exchange goes on. */
  readonly outcome: RequestOutcome
  readonly status: number
  /** When the response ended, however it did. */
  readonly endedAt: number | undefined
}

/** `aborted`: the client left first. `cut`: the script broke the connection. */
export type RequestOutcome = 'running' | 'refused' | 'completed' | 'aborted' | 'cut'

const SECRET_HEADERS = new Set([
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'cookie',
  'proxy-authorization',
])

export function redactedHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].map(([name, value]) => [name, SECRET_HEADERS.has(name) ? '[redacted]' : value]),
  )
}

export function redactedPath(url: URL): string {
  const copy = new URL(url)
  if (copy.searchParams.has('key')) copy.searchParams.set('key', 'redacted')
  return copy.pathname + copy.search
}
