import type { JsonObject } from '../../base/json.ts'
import { lengthRefusal } from './length-refusal.ts'
import type { RefusalKind } from './script.ts'
import type { Exchange, Refusal, Refused, Route } from './wire.ts'

interface OpenAiError {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly message: string
}

export const OPENAI_ERRORS: Readonly<Record<RefusalKind, OpenAiError>> = {
  'invalid-request': { status: 400, type: 'invalid_request_error', code: null, message: 'Invalid request.' },
  authentication: {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
    message: 'Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.',
  },
  permission: {
    status: 403,
    type: 'invalid_request_error',
    code: 'unsupported_country_region_territory',
    message: 'Country, region, or territory not supported',
  },
  'not-found': {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
    message: 'The model does not exist or you do not have access to it.',
  },
  'rate-limit': {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached for requests. Please try again later.',
  },
  quota: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  overloaded: {
    status: 503,
    type: 'server_error',
    code: 'server_is_overloaded',
    message: 'Our servers are currently overloaded. Please try again later.',
  },
  unavailable: { status: 503, type: 'server_error', code: null, message: 'Service Unavailable' },
  'server-error': {
    status: 500,
    type: 'server_error',
    code: 'server_error',
    message: 'The server had an error while processing your request. Sorry about that!',
  },
  'context-overflow': {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
  },
  'content-filter': {
    status: 400,
    type: 'invalid_request_error',
    code: 'invalid_prompt',
    message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
  },
}

export function openAiRefusal(refusal: Refusal, route: Route | undefined, exchange: Exchange): Refused {
  const headers: Record<string, string> = { 'x-request-id': exchange.requestId }
  if (refusal.kind === 'rules') {
    const first = refusal.violations[0]
    const error = {
      message: first?.message ?? 'Invalid request.',
      type: 'invalid_request_error',
      param: first === undefined || first.path === '' ? null : first.path,
      code: first?.code ?? null,
    }
    return { status: first?.status ?? 400, headers, body: { error } }
  }
  if (refusal.kind === 'context-overflow' && exchange.lengthRefusal !== undefined && refusal.message === undefined)
    return { headers, ...lengthRefusal(exchange.lengthRefusal, exchange) }
  const known = OPENAI_ERRORS[refusal.kind]
  if (refusal.retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(refusal.retryAfterSeconds)
    headers['retry-after-ms'] = String(refusal.retryAfterSeconds * 1000)
  }
  if (known.status === 429) headers['x-ratelimit-remaining-requests'] = '0'
  const message = refusal.message ?? defaultMessage(refusal.kind, route, exchange)
  return {
    status: known.status,
    headers,
    body: { error: { message, type: known.type, param: null, code: known.code } },
  }
}

function defaultMessage(kind: RefusalKind, route: Route | undefined, exchange: Exchange): string {
  if (kind !== 'context-overflow' || route?.api !== 'openai-completions') return OPENAI_ERRORS[kind].message
  return (
    `This model's maximum context length is ${exchange.contextTokens} tokens. However, your messages resulted in ` +
    `${exchange.inputTokens} tokens. Please reduce the length of the messages.`
  )
}

export function openAiErrorObject(kind: RefusalKind): JsonObject {
  const { message, type, code } = OPENAI_ERRORS[kind]
  return { message, type, param: null, code }
}
