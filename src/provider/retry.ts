import type { Ids } from '../base/ids.ts'
import { isProviderFailure, type ErrorCode, type GatewayError } from '../core/errors.ts'

export interface RetryOptions {
  /** Requests altogether, the first one included. */
  readonly maxAttempts: number
  readonly baseDelayMs: number
  readonly maxDelayMs: number
  /** A provider that asks for a longer pause is not waited for: the user gets an error instead. */
  readonly maxRetryAfterMs: number
}

export const DEFAULT_RETRY: RetryOptions = {
  maxAttempts: 4,
  baseDelayMs: 500,
  maxDelayMs: 8_000,
  maxRetryAfterMs: 60_000,
}

/** `MODEL_UNAVAILABLE` says that no request is made for a while. */
const isWorthRepeating = (code: ErrorCode): boolean => isProviderFailure(code) && code !== 'MODEL_UNAVAILABLE'

/** How long to wait before request number `attempt + 1`, or undefined when there must not be one. */
export function retryDelay(error: GatewayError, attempt: number, options: RetryOptions, ids: Ids): number | undefined {
  const { retryAfterMs, shouldRetry } = error.facts
  if (attempt >= options.maxAttempts || shouldRetry === false) return undefined
  if (!isWorthRepeating(error.code) && shouldRetry !== true) return undefined
  const backoff = Math.min(options.maxDelayMs, options.baseDelayMs * 2 ** (attempt - 1))
  // Between half and all of it, so that many sessions do not come back in step.
  const spread = Math.round(backoff * (0.5 + ids.fraction() / 2))
  if (typeof retryAfterMs !== 'number') return spread
  return retryAfterMs > options.maxRetryAfterMs ? undefined : retryAfterMs + Math.round(spread / 4)
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. Undefined when there is none that makes sense. */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const exact = Number(headers.get('retry-after-ms') ?? Number.NaN)
  if (Number.isFinite(exact) && exact >= 0) return Math.ceil(exact)
  const value = headers.get('retry-after')?.trim()
  if (value === undefined || value === '') return undefined
  if (/^\d+(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000)
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
