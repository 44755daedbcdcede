import { GrowingText } from '../../base/text.ts'
import type { JsonObject } from '../../base/json.ts'
import type { StopReason } from '../../core/message.ts'
import { AnswerDraft, type CallDraft, type TextDraft, type ThinkingDraft } from '../answer-draft.ts'
import { callIdOf, eventObject, otherFields, type DecodeContext, type StreamDecoder } from '../decoding.ts'
import { modelError, providerError } from '../errors.ts'
import { isJsonObject, textOf } from '../json-object.ts'
import { fromObject } from '../provider-error.ts'
import { count, toUsage, type TokenCounts } from '../usage.ts'
import { REASONING_FIELDS, type ReasoningField } from './reasoning-field.ts'

const CHUNK_FIELDS = new Set(['id', 'object', 'created', 'model', 'choices', 'usage', 'error', 'p', 'obfuscation'])
const CHOICE_FIELDS = new Set(['index', 'delta', 'message', 'finish_reason', 'stop_reason', 'usage', 'logprobs'])
const DELTA_FIELDS = new Set<string>(['role', 'content', 'refusal', 'tool_calls', 'function_call', ...REASONING_FIELDS])

/** A call, and the id its fragments carry, which is not always its own. */
interface StreamedCall {
  readonly call: CallDraft
  readonly givenId: string
}

/** Chat Completions as OpenAI, Mistral and every compatible server stream them. */
export class CompletionsDecoder implements StreamDecoder {
  readonly draft = new AnswerDraft()
  done = false
  readonly #context: DecodeContext
  readonly #calls: StreamedCall[] = []
  readonly #callAt = new Map<number, StreamedCall>()
  #text: TextDraft | undefined
  #thinking: ThinkingDraft | undefined

  constructor(context: DecodeContext) {
    this.#context = context
  }

  take(data: string): void {
    if (data.startsWith('[DONE]')) {
      this.draft.stopReason ??= 'stop'
      this.done = true
      return
    }
    const chunk = eventObject(data, this.#context)
    if (chunk === undefined) return
    const { error } = chunk
    if (isJsonObject(error) || typeof error === 'string' || chunk['object'] === 'error') {
      throw providerError(fromObject(0, chunk), this.#context)
    }
    this.#takeChunk(chunk)
  }

  #takeChunk(chunk: JsonObject): void {
    if (this.draft.responseId === undefined && typeof chunk['id'] === 'string' && chunk['id'] !== '') {
      this.draft.responseId = chunk['id']
      this.#keep(otherFields(chunk, CHUNK_FIELDS))
      if (chunk['model'] !== this.#context.model) this.#keep({ model: chunk['model'] })
    }
    if (isJsonObject(chunk['usage'])) this.#takeUsage(chunk['usage'])
    const choice: unknown = Array.isArray(chunk['choices']) ? chunk['choices'][0] : undefined
    if (!isJsonObject(choice)) return
    // Moonshot reports usage here.
    if (isJsonObject(choice['usage'])) this.#takeUsage(choice['usage'])
    const delta = choice['delta'] ?? choice['message']
    if (isJsonObject(delta)) this.#takeDelta(delta)
    this.#keep(otherFields(choice, CHOICE_FIELDS))
    if (typeof choice['finish_reason'] === 'string') this.#finish(choice['finish_reason'])
  }

  #takeDelta(delta: JsonObject): void {
    const { content, refusal, tool_calls: calls } = delta
    const field = reasoningFieldOf(delta)
    if (field !== undefined) this.#appendThinking(textOf(delta[field]), field)
    if (typeof content === 'string') this.#appendText(content)
    else if (Array.isArray(content)) for (const part of content as readonly unknown[]) this.#takePart(part)
    if (typeof refusal === 'string' && refusal !== '') {
      this.#appendText(refusal)
      this.#keep({ refusal: true })
    }
    if (Array.isArray(calls)) {
      const list = calls as readonly unknown[]
      list.forEach((call, at) => {
        if (isJsonObject(call)) this.#takeCall(call, list.length > 1 ? at : undefined)
      })
    }
    this.#keepDeltaExtras(delta)
  }

  /** Mistral streams content as a list of chunks when the model thinks. */
  #takePart(part: unknown): void {
    if (typeof part === 'string') return this.#appendText(part)
    if (!isJsonObject(part)) return undefined
    if (typeof part['text'] === 'string') return this.#appendText(part['text'])
    const { thinking } = part
    if (typeof thinking === 'string') return this.#appendThinking(thinking, undefined)
    if (!Array.isArray(thinking)) return undefined
    for (const item of thinking as readonly unknown[]) {
      if (isJsonObject(item) && typeof item['text'] === 'string') this.#appendThinking(item['text'], undefined)
    }
    return undefined
  }

  #appendText(delta: string): void {
    if (delta === '') return
    this.#thinking = undefined
    this.#text ??= this.draft.openText()
    this.draft.append(this.#text, delta)
  }

  #appendThinking(delta: string, field: string | undefined): void {
    if (delta === '') return
    this.#text = undefined
    this.#thinking ??= this.draft.openThinking()
    this.#thinking.signature = field
    this.draft.append(this.#thinking, delta)
  }

  /**
   * Later fragments carry no id (or `"null"`) and no name: the index tells whose they are. Where a server sends ids and
   * no index, calls that stand in one list are distinguished by their place in it.
   */
  #takeCall(fragment: JsonObject, place: number | undefined): void {
    const fields = isJsonObject(fragment['function']) ? fragment['function'] : {}
    const id = typeof fragment['id'] === 'string' && fragment['id'] !== 'null' ? fragment['id'] : ''
    const name = typeof fields['name'] === 'string' ? fields['name'] : ''
    const index = typeof fragment['index'] === 'number' ? fragment['index'] : id === '' ? undefined : place
    const found = this.#findCall(index, id, name)
    const streamed = found ?? this.#beginCall(id, name)
    const { call } = streamed
    if (found !== undefined && call.name === '' && name !== '') {
      call.name = name
      this.draft.announce(call)
    }
    if (index !== undefined) this.#callAt.set(index, streamed)
    this.#text = undefined
    this.#thinking = undefined
    const { arguments: json } = fields
    if (typeof json === 'string') call.json.append(json)
    else if (isJsonObject(json)) call.json = new GrowingText(JSON.stringify(json))
    if (isJsonObject(fragment['extra_content'])) call.signature = JSON.stringify(fragment['extra_content'])
  }

  #beginCall(id: string, name: string): StreamedCall {
    const call = this.draft.openCall(callIdOf(id, this.draft, this.#context.ids), name)
    const streamed = { call, givenId: id }
    this.#calls.push(streamed)
    return streamed
  }

  #findCall(index: number | undefined, id: string, name: string): StreamedCall | undefined {
    const known = index === undefined ? undefined : this.#callAt.get(index)
    // Ollama and Gemini have sent several complete calls under index 0, each with its own id.
    if (known !== undefined && (id === '' || id === known.givenId || name === '')) return known
    // Some servers give every call the same id; a name under a new index begins a call all the same.
    if (known === undefined && index !== undefined && name !== '') return undefined
    if (id !== '') return this.#calls.find((streamed) => streamed.givenId === id)
    // Without index, id and name it can only go on with the last one.
    return index !== undefined || name !== '' ? undefined : this.#calls.at(-1)
  }

  #takeUsage(usage: JsonObject): void {
    this.draft.usage = toUsage(countsOf(usage), this.#context.prices)
  }

  #finish(reason: string): void {
    this.#keep({ stopReason: reason })
    if (reason === 'content_filter') throw modelError('MODEL_CONTENT_FILTERED', this.#context, { reason })
    if (reason === 'error' || reason === 'network_error') throw modelError('MODEL_FAILED', this.#context, { reason })
    this.draft.stopReason = STOP_REASONS[reason] ?? 'stop'
  }

  /** OpenRouter's `reasoning_details`, citations, audio: small, and a later request may need them. */
  #keepDeltaExtras(delta: JsonObject): void {
    const extras = otherFields(delta, DELTA_FIELDS)
    if (extras === undefined) return
    for (const [name, value] of Object.entries(extras)) {
      const before = this.draft.raw[name]
      this.#keep({ [name]: Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value })
    }
  }

  #keep(fields: JsonObject | undefined): void {
    if (fields !== undefined) Object.assign(this.draft.raw, fields)
  }
}

/** Some servers send two of the fields with the same text. Named one by one: this is asked for each word of an answer. */
function reasoningFieldOf({
  reasoning_content: content,
  reasoning,
  reasoning_text: text,
}: JsonObject): ReasoningField | undefined {
  if (typeof content === 'string' && content !== '') return 'reasoning_content'
  if (typeof reasoning === 'string' && reasoning !== '') return 'reasoning'
  return typeof text === 'string' && text !== '' ? 'reasoning_text' : undefined
}

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  stop: 'stop',
  end: 'stop',
  eos: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'toolUse',
  function_call: 'toolUse',
}

/** Cached tokens are part of `prompt_tokens`; DeepSeek names the hits differently. */
function countsOf(usage: JsonObject): TokenCounts {
  const details = isJsonObject(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {}
  const prompt = count(usage['prompt_tokens'])
  const cacheRead = Math.min(prompt, count(details['cached_tokens'] ?? usage['prompt_cache_hit_tokens']))
  const cacheWrite = Math.min(prompt - cacheRead, count(details['cache_write_tokens']))
  return { input: prompt - cacheRead - cacheWrite, output: count(usage['completion_tokens']), cacheRead, cacheWrite }
}
