import { isRecord, type JsonObject, type JsonValue } from '../../base/json.ts'
import { checkMistralRequest } from '../rules/mistral.ts'
import { MISTRAL_ERRORS, mistralRefusal } from './mistral-errors.ts'
import { bearerKey, FINISH_REASONS, openAiModels } from './openai-host.ts'
import { type AnswerBlock, type ScriptedAnswer, stopOf } from './script.ts'
import {
  dataEvent,
  alphanumeric,
  argumentText,
  type ApiWire,
  deltaChars,
  type Exchange,
  fragments,
  type Frame,
  type Route,
  tokensOf,
} from './wire.ts'

const CALL_ID_CHARS = 9

export const mistralWire: ApiWire = {
  api: 'mistral-conversations',

  route(method, url, body): Route | undefined {
    const path = url.pathname.replace(/\/$/, '')
    const api = 'mistral-conversations'
    const model = isRecord(body) && typeof body.model === 'string' ? body.model : ''
    if (method === 'POST' && path.endsWith('/chat/completions')) {
      return { endpoint: 'generate', model, stream: isRecord(body) && body.stream === true, api }
    }
    if (method === 'GET' && path.endsWith('/models')) return { endpoint: 'models', model: '', stream: false, api }
    return undefined
  },

  keyOf: bearerKey,
  check: (body, _route, options) => checkMistralRequest(body, options),
  refuse: mistralRefusal,

  errorFrame(kind) {
    const { message, type, code } = MISTRAL_ERRORS[kind]
    return dataEvent(JSON.stringify({ object: 'error', message, type, param: null, code }))
  },

  *frames(answer, route, exchange): Iterable<Frame> {
    const base = envelope(route, exchange, 'chat.completion.chunk')
    const chunk = (delta: JsonObject, more: JsonObject, finish: string | null = null): Frame => {
      const choices = [{ index: 0, delta, finish_reason: finish }]
      return { text: dataEvent(JSON.stringify({ ...base, choices, ...more })) }
    }
    yield chunk({ role: 'assistant', content: '' }, {})
    for (const delta of spokenDeltas(answer)) yield chunk(delta, {})
    const finish = FINISH_REASONS[stopOf(answer)]
    const ending = { usage: usage(answer, exchange) }
    const [last, ...others] = callDeltas(answer, exchange).toReversed()
    for (const delta of others.toReversed()) yield chunk(delta, {})
    // The last calls, or nothing, come in the chunk that ends the answer and reports the usage.
    yield chunk(last ?? { content: '' }, ending, finish)
    yield { text: dataEvent('[DONE]') }
  },

  complete(answer, route, exchange) {
    const calls = answer.blocks.flatMap((block, index) =>
      block.type === 'toolCall' ? [wholeCall(block, index, exchange)] : [],
    )
    const message = { role: 'assistant', content: wholeContent(answer), tool_calls: calls.length > 0 ? calls : null }
    return {
      ...envelope(route, exchange, 'chat.completion'),
      usage: usage(answer, exchange),
      choices: [{ index: 0, finish_reason: FINISH_REASONS[stopOf(answer)], message }],
    }
  },

  countTokens: (tokens) => ({ input_tokens: tokens }),
  models: openAiModels,
  headers: (exchange) => ({ 'mistral-correlation-id': exchange.requestId }),
}

function envelope(route: Route, exchange: Exchange, object: string): JsonObject {
  return { id: exchange.ids.hex(32), object, created: Math.floor(exchange.clock.now() / 1000), model: route.model }
}

function thinkingChunk(text: string, isClosed: boolean): JsonValue {
  return { type: 'thinking', thinking: [{ type: 'text', text }], ...(isClosed ? { closed: true } : {}) }
}

function* spokenDeltas(answer: ScriptedAnswer): Iterable<JsonObject> {
  const size = deltaChars(answer)
  for (const block of answer.blocks) {
    if (block.type === 'text') for (const piece of fragments(block.text, size)) yield { content: piece }
    else if (block.type === 'refusal') for (const piece of fragments(block.refusal, size)) yield { content: piece }
    else if (block.type === 'thinking') {
      const pieces = fragments(block.thinking, size)
      for (const [index, piece] of pieces.entries())
        yield { content: [thinkingChunk(piece, index === pieces.length - 1)] }
    }
  }
}

/** Calls come whole unless the script asks for fragments; a later fragment has its index, no id and no name. */
function callDeltas(answer: ScriptedAnswer, exchange: Exchange): JsonObject[] {
  const calls = answer.blocks.filter((block) => block.type === 'toolCall')
  if (calls.length === 0) return []
  if (answer.delivery?.deltaChars === undefined) {
    return [{ content: '', tool_calls: calls.map((block, index) => wholeCall(block, index, exchange)) }]
  }
  return calls.flatMap((block, index) => {
    const [first = '', ...rest] = fragments(argumentText(block.arguments), deltaChars(answer))
    const call = wholeCall(block, index, exchange)
    return [
      { content: '', tool_calls: [{ ...call, function: { name: block.name, arguments: first } }] },
      ...rest.map((piece) => ({ content: '', tool_calls: [{ function: { name: '', arguments: piece }, index }] })),
    ]
  })
}

function wholeCall(block: AnswerBlock & { type: 'toolCall' }, index: number, exchange: Exchange): JsonObject {
  const id = block.id ?? alphanumeric(exchange.ids, CALL_ID_CHARS)
  return { id, type: 'function', function: { name: block.name, arguments: argumentText(block.arguments) }, index }
}

function wholeContent(answer: ScriptedAnswer): JsonValue {
  const text = answer.blocks
    .map((block) => (block.type === 'text' ? block.text : block.type === 'refusal' ? block.refusal : ''))
    .join('')
  const thoughts = answer.blocks.flatMap((block) =>
    block.type === 'thinking' ? [thinkingChunk(block.thinking, true)] : [],
  )
  return thoughts.length === 0 ? text : [...thoughts, { type: 'text', text }]
}

function usage(answer: ScriptedAnswer, exchange: Exchange): JsonObject {
  const tokens = tokensOf(answer, exchange)
  return {
    prompt_tokens: tokens.input,
    total_tokens: tokens.input + tokens.output,
    completion_tokens: tokens.output,
    ...(tokens.cacheRead > 0 ? { prompt_tokens_details: { cached_tokens: tokens.cacheRead } } : {}),
  }
}
