import type { RefusalKind } from './script.ts'
import type { Exchange, Refusal, Refused, Route } from './wire.ts'

interface AnthropicError {
  readonly status: number
  readonly type: string
  readonly message: string
}

export const ANTHROPIC_ERRORS: Readonly<Record<RefusalKind, AnthropicError>> = {
  'invalid-request': { status: 400, type: 'invalid_request_error', message: 'Error' },
  authentication: { status: 401, type: 'authentication_error', message: 'invalid x-api-key' },
  permission: {
    status: 403,
    type: 'permission_error',
    message: 'Your API key does not have permission to use the specified resource.',
  },
  'not-found': { status: 404, type: 'not_found_error', message: 'Not Found' },
  'rate-limit': {
    status: 429,
    type: 'rate_limit_error',
    message:
      'This request would exceed your organization’s rate limit. Please reduce the prompt length or the maximum tokens requested, or try again later.',
  },
  quota: {
    status: 400,
    type: 'invalid_request_error',
    message:
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  },
  overloaded: { status: 529, type: 'overloaded_error', message: 'Overloaded' },
  unavailable: { status: 503, type: 'api_error', message: 'Service Unavailable' },
  'server-error': { status: 500, type: 'api_error', message: 'Internal server error' },
  'context-overflow': { status: 400, type: 'invalid_request_error', message: 'prompt is too long' },
  'content-filter': {
    status: 400,
    type: 'invalid_request_error',
    message: 'Output blocked by content filtering policy',
  },
}

export function anthropicRefusal(refusal: Refusal, _route: Route | undefined, exchange: Exchange): Refused {
  const headers: Record<string, string> = { 'request-id': exchange.requestId }
  if (refusal.kind === 'rules') {
    const first = refusal.violations[0]
    const status = first?.status ?? 400
    return { status, headers, body: body(first?.type ?? 'invalid_request_error', first?.message ?? 'Error', exchange) }
  }
  const known = ANTHROPIC_ERRORS[refusal.kind]
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  if (refusal.kind === 'rate-limit') headers['anthropic-ratelimit-requests-remaining'] = '0'
  headers['x-should-retry'] = String(known.status === 429 || known.status >= 500)
  const overflow = `prompt is too long: ${exchange.inputTokens} tokens > ${exchange.contextTokens} maximum`
  const message = refusal.message ?? (refusal.kind === 'context-overflow' ? overflow : known.message)
  return { status: known.status, headers, body: body(known.type, message, exchange) }
}

function body(type: string, message: string, exchange: Exchange): Refused['body'] {
  return { type: 'error', error: { type, message }, request_id: exchange.requestId }
}
