import { isRecord, type JsonValue } from '../../base/json.ts'
import { checkOpenAICompletionsRequest, type CompletionsOptions } from '../rules/openai-completions.ts'
import { checkOpenAIResponsesRequest } from '../rules/openai-responses.ts'
import type { RuleViolation } from '../rules/rule.ts'
import type { Exchange, Route } from './wire.ts'

/** Of the chat API, which Mistral took over. */
export const FINISH_REASONS = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  refusal: 'stop',
  'stop-sequence': 'stop',
} as const

/** Both OpenAI APIs live on one host; a simulator of either answers the other's path too. */
export function openAiRoute(method: string, url: URL, body: unknown): Route | undefined {
  const path = url.pathname.replace(/\/$/, '')
  const model = isRecord(body) && typeof body.model === 'string' ? body.model : ''
  const stream = isRecord(body) && body.stream === true
  if (method === 'POST' && path.endsWith('/responses'))
    return { endpoint: 'generate', model, stream, api: 'openai-responses' }
  if (method === 'POST' && path.endsWith('/chat/completions')) {
    return { endpoint: 'generate', model, stream, api: 'openai-completions' }
  }
  if (method === 'GET' && path.endsWith('/models'))
    return { endpoint: 'models', model: '', stream: false, api: 'openai-responses' }
  return undefined
}

export function bearerKey(headers: Headers): string | undefined {
  return headers.get('authorization')?.replace(/^Bearer\s+/i, '')
}

export function checkOpenAi(body: unknown, route: Route, options: CompletionsOptions): readonly RuleViolation[] {
  return route.api === 'openai-responses'
    ? checkOpenAIResponsesRequest(body, options)
    : checkOpenAICompletionsRequest(body, options)
}

export function openAiModels(names: readonly string[], exchange: Exchange): JsonValue {
  const created = Math.floor(exchange.clock.now() / 1000)
  return { object: 'list', data: names.map((id) => ({ id, object: 'model', created, owned_by: 'simulator' })) }
}

export function openAiHeaders(exchange: Exchange): Record<string, string> {
  return { 'x-request-id': exchange.requestId, 'openai-version': '2020-10-01', 'openai-processing-ms': '1' }
}
