import type { JsonValue } from '../../base/json.ts'
import type { RefusalKind } from './script.ts'
import type { Exchange, Refusal, Refused, Route } from './wire.ts'

interface MistralError {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly message: string
}

export const MISTRAL_ERRORS: Readonly<Record<RefusalKind, MistralError>> = {
  'invalid-request': { status: 400, type: 'invalid_request_error', code: null, message: 'Bad request' },
  authentication: { status: 401, type: 'unauthorized', code: null, message: 'Unauthorized' },
  permission: { status: 403, type: 'forbidden', code: null, message: 'Forbidden' },
  'not-found': { status: 400, type: 'invalid_model', code: '1500', message: 'Invalid model' },
  'rate-limit': { status: 429, type: 'rate_limited', code: '1300', message: 'Rate limit exceeded' },
  quota: { status: 429, type: 'rate_limited', code: '1300', message: 'Monthly quota exceeded' },
  overloaded: {
    status: 429,
    type: 'service_tier_capacity_exceeded',
    code: '3505',
    message: 'Service tier capacity exceeded for this model.',
  },
  unavailable: { status: 503, type: 'unreachable_backend', code: '1100', message: 'Service unavailable.' },
  'server-error': { status: 500, type: 'internal_server_error', code: '1000', message: 'Internal server error' },
  'context-overflow': {
    status: 400,
    type: 'invalid_request_prompt',
    code: '3051',
    message: 'Prompt too large for model',
  },
  'content-filter': {
    status: 400,
    type: 'invalid_request_error',
    code: null,
    message: 'The request was blocked by moderation.',
  },
}

export function mistralRefusal(refusal: Refusal, _route: Route | undefined, exchange: Exchange): Refused {
  const headers: Record<string, string> = { 'mistral-correlation-id': exchange.requestId }
  if (refusal.kind === 'rules') return ruleRefusal(refusal, headers)
  if (refusal.kind === 'authentication') return { status: 401, headers, body: { detail: 'Unauthorized' } }
  const known = MISTRAL_ERRORS[refusal.kind]
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  const overflow = `Prompt contains ${exchange.inputTokens} tokens and 0 draft tokens, too large for model with ${exchange.contextTokens} maximum context length`
  const message = refusal.message ?? (refusal.kind === 'context-overflow' ? overflow : known.message)
  return { status: known.status, headers, body: body(message, known.type, known.code, known.status) }
}

/** Schema violations are listed all at once in the validator's own form; the rest come one at a time. */
function ruleRefusal(refusal: Extract<Refusal, { kind: 'rules' }>, headers: Record<string, string>): Refused {
  const schema = refusal.violations.filter((violation) => violation.status === 422)
  if (schema.length > 0) {
    const detail = schema.map((violation) => ({
      type: violation.rule.endsWith('unknown-field')
        ? 'extra_forbidden'
        : violation.rule.endsWith('required-field')
          ? 'missing'
          : 'value_error',
      loc: ['body', ...violation.path.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))],
      msg: violation.message,
    }))
    return { status: 422, headers, body: body({ detail }, 'invalid_request_error', null, 422) }
  }
  const first = refusal.violations[0]
  const status = first?.status ?? 400
  return {
    status,
    headers,
    body: body(first?.message ?? 'Bad request', first?.type ?? 'invalid_request_error', first?.code ?? null, status),
  }
}

function body(message: JsonValue, type: string, code: string | null, status: number): JsonValue {
  return { object: 'error', message, type, param: null, code, raw_status_code: status }
}
