import { isRecord, type JsonObject, type JsonValue } from '../../base/json.ts'
import { checkAnthropicRequest } from '../rules/anthropic.ts'
import { anthropicRefusal, ANTHROPIC_ERRORS } from './anthropic-errors.ts'
import {
  toJsonObject,
  namedEvent,
  alphanumeric,
  argumentText,
  type ApiWire,
  deltaChars,
  type Exchange,
  fragments,
  type Frame,
  type Tokens,
  tokensOf,
} from './wire.ts'
import { type AnswerBlock, type ScriptedAnswer, stopOf } from './script.ts'

const STOP_REASONS = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  refusal: 'refusal',
  'stop-sequence': 'stop_sequence',
} as const
const MAX_PADDING = 12

export const anthropicWire: ApiWire = {
  api: 'anthropic-messages',

  route(method, url, body) {
    const path = url.pathname.replace(/\/$/, '')
    const api = 'anthropic-messages'
    const model = isRecord(body) && typeof body.model === 'string' ? body.model : ''
    const stream = isRecord(body) && body.stream === true
    if (method === 'POST' && path.endsWith('/v1/messages')) return { endpoint: 'generate', model, stream, api }
    if (method === 'POST' && path.endsWith('/v1/messages/count_tokens'))
      return { endpoint: 'count-tokens', model, stream: false, api }
    if (method === 'GET' && path.endsWith('/v1/models')) return { endpoint: 'models', model: '', stream: false, api }
    return undefined
  },

  keyOf: (headers) => headers.get('x-api-key') ?? headers.get('authorization')?.replace(/^Bearer\s+/i, '') ?? undefined,

  missingHeader: (headers) => (headers.has('anthropic-version') ? undefined : 'anthropic-version: header is required'),

  check: (body, route, options) =>
    checkAnthropicRequest(body, { ...options, countTokens: route.endpoint === 'count-tokens' }),

  refuse: anthropicRefusal,

  errorFrame(kind, exchange) {
    const { type, message } = ANTHROPIC_ERRORS[kind]
    return namedEvent(
      'error',
      JSON.stringify({ type: 'error', error: { type, message }, request_id: exchange.requestId }),
    )
  },

  *frames(answer, route, exchange): Iterable<Frame> {
    const message = { ...envelope(answer, route.model, exchange), content: [], stop_reason: null, stop_sequence: null }
    const tokens = anthropicTokens(answer, exchange)
    yield frame(exchange, 'message_start', {
      message: { ...message, usage: { ...usage(answer, exchange), output_tokens: 1 } },
    })
    for (const [index, block] of answer.blocks.entries()) yield* blockFrames(block, index, deltaChars(answer), exchange)
    yield frame(exchange, 'message_delta', {
      delta: { stop_reason: STOP_REASONS[stopOf(answer)], stop_sequence: null },
      usage: {
        input_tokens: tokens.input,
        cache_creation_input_tokens: tokens.cacheWrite,
        cache_read_input_tokens: tokens.cacheRead,
        output_tokens: tokens.output,
      },
    })
    yield frame(exchange, 'message_stop', {})
  },

  complete(answer, route, exchange) {
    return {
      ...envelope(answer, route.model, exchange),
      content: answer.blocks.map((block) => wholeBlock(block, exchange)),
      stop_reason: STOP_REASONS[stopOf(answer)],
      stop_sequence: null,
      usage: usage(answer, exchange),
    }
  },

  countTokens: (tokens) => ({ input_tokens: tokens }),

  models: (names) => ({
    data: names.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' })),
    has_more: false,
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
  }),

  headers: (exchange) => ({ 'request-id': exchange.requestId, 'anthropic-organization-id': 'simulated' }),
}

export const ANTHROPIC_PING = 'event: ping\ndata: {"type": "ping"}\n\n'

/** The service pads its events to hide their length; parsers must not mind. */
function frame(exchange: Exchange, type: string, data: JsonObject): Frame {
  const text = JSON.stringify({ type, ...data })
  const padding = ' '.repeat(Math.floor(exchange.ids.fraction() * MAX_PADDING))
  return { text: namedEvent(type, `${text.slice(0, -1)}${padding}}`) }
}

function envelope(answer: ScriptedAnswer, model: string, exchange: Exchange): JsonObject {
  return {
    model,
    id: `msg_01${alphanumeric(exchange.ids, 22)}`,
    type: 'message',
    role: 'assistant',
    ...(stopOf(answer) === 'refusal' ? { stop_details: { type: 'refusal', category: null, explanation: null } } : {}),
  }
}

/** Here the input is what neither came from the cache nor went into it. */
function anthropicTokens(answer: ScriptedAnswer, exchange: Exchange): Tokens {
  const tokens = tokensOf(answer, exchange)
  if (answer.usage !== undefined) return tokens
  return { ...tokens, input: Math.max(1, tokens.input - tokens.cacheRead - tokens.cacheWrite) }
}

function usage(answer: ScriptedAnswer, exchange: Exchange): JsonObject {
  const tokens = anthropicTokens(answer, exchange)
  return {
    input_tokens: tokens.input,
    cache_creation_input_tokens: tokens.cacheWrite,
    cache_read_input_tokens: tokens.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: tokens.cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: tokens.output,
    service_tier: 'standard',
  }
}

function wholeBlock(block: AnswerBlock, exchange: Exchange): JsonValue {
  if (block.type === 'toolCall') {
    return { type: 'tool_use', id: callId(block.id, exchange), name: block.name, input: toJsonObject(block.arguments) }
  }
  if (block.type !== 'thinking') return { type: 'text', text: block.type === 'text' ? block.text : block.refusal }
  if (block.redacted === true) return { type: 'redacted_thinking', data: block.signature ?? exchange.seals.sign('') }
  const signature = block.signature ?? exchange.seals.sign(block.thinking)
  return { type: 'thinking', thinking: block.thinking, signature }
}

function callId(given: string | undefined, exchange: Exchange): string {
  return given ?? `toolu_01${alphanumeric(exchange.ids, 22)}`
}

function* blockFrames(block: AnswerBlock, index: number, size: number, exchange: Exchange): Iterable<Frame> {
  const delta = (value: JsonObject): Frame => frame(exchange, 'content_block_delta', { index, delta: value })
  const start = (content: JsonObject): Frame =>
    frame(exchange, 'content_block_start', { index, content_block: content })
  if (block.type === 'text' || block.type === 'refusal') {
    yield start({ type: 'text', text: '' })
    const text = block.type === 'text' ? block.text : block.refusal
    for (const piece of fragments(text, size)) yield delta({ type: 'text_delta', text: piece })
  } else if (block.type === 'toolCall') {
    yield start({ type: 'tool_use', id: callId(block.id, exchange), name: block.name, input: {} })
    yield delta({ type: 'input_json_delta', partial_json: '' })
    const text = argumentText(block.arguments)
    // The service sends no fragment for an empty object.
    for (const piece of text === '{}' ? [] : fragments(text, size))
      yield delta({ type: 'input_json_delta', partial_json: piece })
  } else if (block.redacted === true) {
    yield start({ type: 'redacted_thinking', data: block.signature ?? exchange.seals.sign('') })
  } else {
    yield start({ type: 'thinking', thinking: '', signature: '' })
    for (const piece of fragments(block.thinking, size)) yield delta({ type: 'thinking_delta', thinking: piece })
    yield delta({ type: 'signature_delta', signature: block.signature ?? exchange.seals.sign(block.thinking) })
  }
  yield frame(exchange, 'content_block_stop', { index })
}
