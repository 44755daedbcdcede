import { isRecord, type JsonObject, type JsonValue } from '../../base/json.ts'
import { openAiErrorObject, openAiRefusal } from './openai-errors.ts'
import { bearerKey, FINISH_REASONS, checkOpenAi, openAiHeaders, openAiModels, openAiRoute } from './openai-host.ts'
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

export const chatWire: ApiWire = {
  api: 'openai-completions',
  route: openAiRoute,
  keyOf: bearerKey,
  check: checkOpenAi,
  refuse: openAiRefusal,

  errorFrame: (kind) => dataEvent(JSON.stringify({ error: openAiErrorObject(kind) })),

  *frames(answer, route, exchange): Iterable<Frame> {
    const reportsUsage = wantsUsage(exchange.body)
    const base = envelope(route, exchange, 'chat.completion.chunk')
    const chunk = (delta: JsonObject, finish: string | null): Frame => {
      const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
      return { text: dataEvent(JSON.stringify({ ...base, choices, ...(reportsUsage ? { usage: null } : {}) })) }
    }
    yield chunk({ role: 'assistant', content: '', refusal: null }, null)
    for (const delta of deltas(answer, exchange)) yield chunk(delta, null)
    yield chunk({}, FINISH_REASONS[stopOf(answer)])
    if (reportsUsage)
      yield { text: dataEvent(JSON.stringify({ ...base, choices: [], usage: usage(answer, exchange) })) }
    yield { text: dataEvent('[DONE]') }
  },

  complete(answer, route, exchange) {
    const calls = answer.blocks.flatMap((block) => (block.type === 'toolCall' ? [wholeCall(block, exchange)] : []))
    const message: JsonObject = {
      role: 'assistant',
      content: textOf(answer, 'text') ?? null,
      refusal: textOf(answer, 'refusal') ?? null,
      annotations: [],
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...(exchange.dialect === 'compatible' ? { reasoning_content: textOf(answer, 'thinking') ?? null } : {}),
    }
    return {
      ...envelope(route, exchange, 'chat.completion'),
      choices: [{ index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[stopOf(answer)] }],
      usage: usage(answer, exchange),
    }
  },

  countTokens: (tokens) => ({ input_tokens: tokens }),
  models: openAiModels,
  headers: openAiHeaders,
}

function wantsUsage(body: unknown): boolean {
  return isRecord(body) && isRecord(body.stream_options) && body.stream_options.include_usage === true
}

function envelope(route: Route, exchange: Exchange, object: string): JsonObject {
  return {
    id: `chatcmpl-${alphanumeric(exchange.ids, 29)}`,
    object,
    created: Math.floor(exchange.clock.now() / 1000),
    model: route.model,
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
  }
}

/** Calls are numbered in their own order; every fragment but the first carries only its number. */
function* deltas(answer: ScriptedAnswer, exchange: Exchange): Iterable<JsonObject> {
  const size = deltaChars(answer)
  let callIndex = 0
  for (const block of answer.blocks) {
    if (block.type === 'text') for (const piece of fragments(block.text, size)) yield { content: piece }
    else if (block.type === 'refusal') for (const piece of fragments(block.refusal, size)) yield { refusal: piece }
    else if (block.type === 'thinking') {
      // OpenAI keeps its reasoning to itself; the servers that imitate it do not.
      const pieces = exchange.dialect === 'compatible' ? fragments(block.thinking, size) : []
      for (const piece of pieces) yield { reasoning_content: piece }
    } else {
      const index = callIndex++
      const call = wholeCall(block, exchange)
      yield { tool_calls: [{ index, ...call, function: { name: block.name, arguments: '' } }] }
      for (const piece of fragments(argumentText(block.arguments), size)) {
        yield { tool_calls: [{ index, function: { arguments: piece } }] }
      }
    }
  }
}

function wholeCall(block: AnswerBlock & { type: 'toolCall' }, exchange: Exchange): JsonObject {
  return {
    id: block.id ?? `call_${alphanumeric(exchange.ids, 24)}`,
    type: 'function',
    function: { name: block.name, arguments: argumentText(block.arguments) },
  }
}

function textOf(answer: ScriptedAnswer, type: 'text' | 'refusal' | 'thinking'): string | undefined {
  const texts = answer.blocks.flatMap((block) => {
    if (block.type !== type) return []
    return [block.type === 'text' ? block.text : block.type === 'refusal' ? block.refusal : block.thinking]
  })
  return texts.length === 0 ? undefined : texts.join('')
}

function usage(answer: ScriptedAnswer, exchange: Exchange): JsonValue {
  const tokens = tokensOf(answer, exchange)
  return {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    total_tokens: tokens.input + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cacheRead, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: tokens.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}
