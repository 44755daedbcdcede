import type { JsonObject } from '../../base/json.ts'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import type { ReplyContent } from '../../core/inbound.ts'

/** What went wrong, in the words of the gateway. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly error: string
  /** The parameter it is about. */
  readonly field?: string
}

/** The same in OpenAI's words. */
export interface OpenAiProblem {
  readonly status: number
  readonly body: JsonObject
}

interface Words {
  readonly status?: number
  readonly type?: string
  readonly code?: string
}

/** Where OpenAI has a word of its own; every other code stays as it is. */
const WORDS: Readonly<Partial<Record<ErrorCode | 'NOT_FOUND' | 'METHOD_NOT_ALLOWED', Words>>> = {
  UNAUTHORIZED: { type: 'authentication_error', code: 'invalid_api_key' },
  FORBIDDEN: { type: 'permission_error' },
  ORIGIN_REFUSED: { type: 'permission_error' },
  RATE_LIMITED: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  BUDGET_REACHED: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  MODEL_UNKNOWN: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  MODEL_QUOTA: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  MODEL_RATE_LIMITED: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  MODEL_CONTEXT_OVERFLOW: { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded' },
  MODEL_CONTENT_FILTERED: { status: 400, type: 'invalid_request_error', code: 'content_filter' },
  MODEL_REQUEST_INVALID: { status: 400, type: 'invalid_request_error' },
  MODEL_OVERLOADED: { status: 503 },
  MODEL_UNAVAILABLE: { status: 503 },
  TURN_CANCELLED: { status: 409, type: 'invalid_request_error' },
}

export function toOpenAiProblem({ status: own, code, error, field }: Problem): OpenAiProblem {
  const words: Words = WORDS[code as ErrorCode] ?? {}
  const status = words.status ?? own
  const type = words.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { status, body: { error: { message: error, type, code: words.code ?? code, param: field ?? null } } }
}

/** A turn that did not end with an answer; undefined for one that did. */
export function problemOfReply(content: ReplyContent): Problem | undefined {
  switch (content.kind) {
    case 'complete':
      return undefined
    case 'cancelled':
      return { status: 409, code: 'TURN_CANCELLED', error: `the turn was stopped (${content.by})` }
    case 'error':
      return { status: isPassing(content.code) ? 503 : 500, code: content.code, error: content.message }
  }
}

/** The same request may be answered later. */
function isPassing(code: ErrorCode): boolean {
  return ERRORS[code].retry === 'later'
}

/** The same request fails again. */
export function isFinal(content: ReplyContent): boolean {
  return content.kind === 'cancelled' || (content.kind === 'error' && !isPassing(content.code))
}
