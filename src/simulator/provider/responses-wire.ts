import type { JsonObject, JsonValue } from '../../base/json.ts'
import { OPENAI_ERRORS, openAiRefusal } from './openai-errors.ts'
import { bearerKey, checkOpenAi, openAiHeaders, openAiModels, openAiRoute } from './openai-host.ts'
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
  type Route,
  tokensOf,
} from './wire.ts'
import { type AnswerBlock, type ScriptedAnswer, stopOf } from './script.ts'

export const responsesWire: ApiWire = {
  api: 'openai-responses',
  route: openAiRoute,
  keyOf: bearerKey,
  check: checkOpenAi,
  refuse: openAiRefusal,

  errorFrame(kind, exchange, events) {
    const { code, message } = OPENAI_ERRORS[kind]
    const at = { sequence_number: events }
    if (kind !== 'server-error') {
      return namedEvent('error', JSON.stringify({ type: 'error', ...at, code, message, param: null }))
    }
    // A failure of the service itself ends the response instead of breaking off the stream.
    const route: Route = { endpoint: 'generate', model: '', stream: true, api: 'openai-responses' }
    const response = {
      ...envelope(route, exchange),
      status: 'failed',
      output: [],
      error: { code, message },
      usage: null,
    }
    return namedEvent('response.failed', JSON.stringify({ type: 'response.failed', ...at, response }))
  },

  *frames(answer, route, exchange): Iterable<Frame> {
    const numbered = counter()
    const items = outputItems(answer, exchange)
    const base = envelope(route, exchange)
    const started = { ...base, status: 'in_progress', output: [], usage: null }
    yield numbered('response.created', { response: started })
    yield numbered('response.in_progress', { response: started })
    for (const [index, { item, block }] of items.entries())
      yield* itemFrames(numbered, item, block, index, deltaChars(answer), exchange)
    const response = {
      ...base,
      ...ending(answer),
      output: items.map(({ item }) => item),
      usage: usage(answer, exchange),
    }
    yield numbered(response.status === 'incomplete' ? 'response.incomplete' : 'response.completed', { response })
  },

  complete(answer, route, exchange) {
    const output = outputItems(answer, exchange).map(({ item }) => item)
    return { ...envelope(route, exchange), ...ending(answer), output, usage: usage(answer, exchange) }
  },

  countTokens: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  models: openAiModels,
  headers: openAiHeaders,
}

type Numbered = (type: string, data: JsonObject) => Frame

function counter(): Numbered {
  let next = 0
  return (type, data) => ({ text: namedEvent(type, JSON.stringify({ type, sequence_number: next++, ...data })) })
}

function envelope(route: Route, exchange: Exchange): JsonObject {
  const body = toJsonObject(exchange.body)
  const echo = (key: string, fallback: JsonValue): JsonValue => body[key] ?? fallback
  return {
    id: `resp_${exchange.ids.hex(48)}`,
    object: 'response',
    created_at: Math.floor(exchange.clock.now() / 1000),
    background: false,
    error: null,
    incomplete_details: null,
    instructions: echo('instructions', null),
    max_output_tokens: echo('max_output_tokens', null),
    model: route.model,
    parallel_tool_calls: echo('parallel_tool_calls', true),
    previous_response_id: echo('previous_response_id', null),
    prompt_cache_key: echo('prompt_cache_key', null),
    reasoning: echo('reasoning', { effort: null, summary: null }),
    service_tier: 'default',
    store: echo('store', true),
    temperature: echo('temperature', 1),
    text: echo('text', { format: { type: 'text' } }),
    tool_choice: echo('tool_choice', 'auto'),
    tools: echo('tools', []),
    top_p: echo('top_p', 1),
    truncation: echo('truncation', 'disabled'),
    user: null,
    metadata: echo('metadata', {}),
  }
}

function ending(answer: ScriptedAnswer): { status: string; incomplete_details: JsonValue } {
  if (stopOf(answer) === 'length') return { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
  return { status: 'completed', incomplete_details: null }
}

function usage(answer: ScriptedAnswer, exchange: Exchange): JsonObject {
  const tokens = tokensOf(answer, exchange)
  return {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: tokens.cacheRead, cache_write_tokens: tokens.cacheWrite },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: tokens.reasoning },
    total_tokens: tokens.input + tokens.output,
  }
}

interface OutputItem {
  readonly block: AnswerBlock
  readonly item: FinishedItem
}

interface FinishedItem extends JsonObject {
  readonly id: string
}

/** The finished items. One that follows reasoning shares its digits, which is how it is recognised on replay. */
function outputItems(answer: ScriptedAnswer, exchange: Exchange): OutputItem[] {
  let reasoning: string | undefined
  return answer.blocks.map((block) => {
    const item = finishedItem(block, reasoning, exchange)
    reasoning = block.type === 'thinking' ? item.id : undefined
    return { block, item }
  })
}

function finishedItem(block: AnswerBlock, reasoning: string | undefined, exchange: Exchange): FinishedItem {
  const { seals, ids } = exchange
  if (block.type === 'thinking') {
    const summary = block.thinking === '' ? [] : [{ type: 'summary_text', text: block.thinking }]
    return {
      id: seals.itemIds('rs', undefined),
      type: 'reasoning',
      encrypted_content: block.signature ?? seals.seal(),
      summary,
    }
  }
  if (block.type === 'toolCall') {
    return {
      id: seals.itemIds('fc', reasoning),
      type: 'function_call',
      status: 'completed',
      arguments: argumentText(block.arguments),
      call_id: block.id ?? `call_${alphanumeric(ids, 24)}`,
      name: block.name,
    }
  }
  return {
    id: seals.itemIds('msg', reasoning),
    type: 'message',
    status: 'completed',
    content: [finishedPart(block)],
    role: 'assistant',
  }
}

function finishedPart(block: AnswerBlock & { type: 'text' | 'refusal' }): JsonObject {
  return block.type === 'text'
    ? { type: 'output_text', annotations: [], logprobs: [], text: block.text }
    : { type: 'refusal', refusal: block.refusal }
}

function* itemFrames(
  numbered: Numbered,
  item: FinishedItem,
  block: AnswerBlock,
  index: number,
  size: number,
  exchange: Exchange,
): Iterable<Frame> {
  const at = { item_id: item.id, output_index: index }
  const delta = (type: string, piece: string, more: JsonObject): Frame =>
    numbered(type, { ...at, ...more, delta: piece, obfuscation: alphanumeric(exchange.ids, 8) })
  if (block.type === 'thinking') {
    yield numbered('response.output_item.added', { output_index: index, item: { ...item, summary: [] } })
    if (block.thinking !== '') yield* summaryFrames(numbered, at, block.thinking, size, delta)
  } else if (block.type === 'toolCall') {
    const text = argumentText(block.arguments)
    yield numbered('response.output_item.added', {
      output_index: index,
      item: { ...item, status: 'in_progress', arguments: '' },
    })
    for (const piece of fragments(text, size)) yield delta('response.function_call_arguments.delta', piece, {})
    yield numbered('response.function_call_arguments.done', { ...at, name: block.name, arguments: text })
  } else {
    yield numbered('response.output_item.added', {
      output_index: index,
      item: { ...item, status: 'in_progress', content: [] },
    })
    yield* messageFrames(numbered, at, block, size, delta)
  }
  yield numbered('response.output_item.done', { output_index: index, item })
}

type Delta = (type: string, piece: string, more: JsonObject) => Frame

function* summaryFrames(numbered: Numbered, at: JsonObject, text: string, size: number, delta: Delta): Iterable<Frame> {
  const place = { ...at, summary_index: 0 }
  yield numbered('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
  for (const piece of fragments(text, size))
    yield delta('response.reasoning_summary_text.delta', piece, { summary_index: 0 })
  yield numbered('response.reasoning_summary_text.done', { ...place, text })
  yield numbered('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } })
}

function* messageFrames(
  numbered: Numbered,
  at: JsonObject,
  block: AnswerBlock & { type: 'text' | 'refusal' },
  size: number,
  delta: Delta,
): Iterable<Frame> {
  const place = { ...at, content_index: 0 }
  const part = finishedPart(block)
  if (block.type === 'text') {
    yield numbered('response.content_part.added', { ...place, part: { ...part, text: '' } })
    for (const piece of fragments(block.text, size))
      yield delta('response.output_text.delta', piece, { content_index: 0, logprobs: [] })
    yield numbered('response.output_text.done', { ...place, text: block.text, logprobs: [] })
  } else {
    yield numbered('response.content_part.added', { ...place, part: { ...part, refusal: '' } })
    for (const piece of fragments(block.refusal, size))
      yield delta('response.refusal.delta', piece, { content_index: 0 })
    yield numbered('response.refusal.done', { ...place, refusal: block.refusal })
  }
  yield numbered('response.content_part.done', { ...place, part })
}
