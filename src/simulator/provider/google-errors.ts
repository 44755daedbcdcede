import type { JsonValue } from '../../base/json.ts'
import type { RefusalKind } from './script.ts'
import type { Exchange, Refusal, Refused, Route } from './wire.ts'

interface GoogleError {
  readonly code: number
  readonly status: string
  readonly message: string
}

export const GOOGLE_ERRORS: Readonly<Record<RefusalKind, GoogleError>> = {
  'invalid-request': { code: 400, status: 'INVALID_ARGUMENT', message: 'Request contains an invalid argument.' },
  authentication: { code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid. Please pass a valid API key.' },
  permission: {
    code: 403,
    status: 'PERMISSION_DENIED',
    message:
      "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
  },
  'not-found': { code: 404, status: 'NOT_FOUND', message: 'The model is not found for API version v1beta.' },
  'rate-limit': {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: 'You exceeded your current rate limit. Please retry later.',
  },
  quota: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  overloaded: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded. Please try again later.' },
  unavailable: { code: 503, status: 'UNAVAILABLE', message: 'The service is currently unavailable.' },
  'server-error': { code: 500, status: 'INTERNAL', message: 'An internal error has occurred. Please retry.' },
  'context-overflow': { code: 400, status: 'INVALID_ARGUMENT', message: 'The input token count exceeds the maximum.' },
  'content-filter': { code: 400, status: 'INVALID_ARGUMENT', message: 'The request was blocked.' },
}

export function googleRefusal(refusal: Refusal, route: Route | undefined, exchange: Exchange): Refused {
  const headers: Record<string, string> = { 'x-request-id': exchange.requestId }
  if (refusal.kind === 'rules') {
    const message = refusal.violations.map((violation) => violation.message).join('\n')
    return { status: 400, headers, body: wrap({ code: 400, message, status: 'INVALID_ARGUMENT' }, route) }
  }
  const { code, status, message } = GOOGLE_ERRORS[refusal.kind]
  const overflow = `The input token count (${exchange.inputTokens}) exceeds the maximum number of tokens allowed (${exchange.contextTokens}).`
  const text = refusal.message ?? (refusal.kind === 'context-overflow' ? overflow : message)
  const error = { code, message: text, status, ...details(refusal) }
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  return { status: code, headers, body: wrap(error, route) }
}

function details(refusal: Exclude<Refusal, { kind: 'rules' }>): { details?: JsonValue } {
  if (refusal.kind === 'authentication') {
    return {
      details: [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
      ],
    }
  }
  if (refusal.retryAfterSeconds === undefined) return {}
  return {
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${refusal.retryAfterSeconds}s` }],
  }
}

/** A stream without server-sent events is an array, and so is its refusal. */
function wrap(error: JsonValue, route: Route | undefined): JsonValue {
  return route?.asArray === true ? [{ error }] : { error }
}
