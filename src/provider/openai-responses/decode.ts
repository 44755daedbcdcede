import { GrowingText } from '../../base/text.ts'
import type { JsonObject } from '../../base/json.ts'
import { AnswerDraft, type BlockDraft, type CallDraft, type TextDraft, type ThinkingDraft } from '../answer-draft.ts'
import { callIdOf, eventObject, otherFields, type DecodeContext, type StreamDecoder } from '../decoding.ts'
import { modelError, providerError } from '../errors.ts'
import { arrayOf, isJsonObject, objectOf, textOf } from '../json-object.ts'
import { fromObject } from '../provider-error.ts'
import { count, toUsage } from '../usage.ts'

const ITEM_FIELDS = new Set(['id', 'type', 'status', 'role', 'content', 'phase', 'call_id', 'name', 'arguments'])

/** Items are distinguished by their place in the output; the finished item decides over the deltas before it. */
export class ResponsesDecoder implements StreamDecoder {
  readonly draft = new AnswerDraft()
  done = false
  readonly #context: DecodeContext
  readonly #items = new Map<number, BlockDraft>()

  constructor(context: DecodeContext) {
    this.#context = context
  }

  take(data: string): void {
    if (data.startsWith('[DONE]')) return undefined
    const event = eventObject(data, this.#context)
    if (event === undefined) return undefined
    const index = typeof event['output_index'] === 'number' ? event['output_index'] : 0
    switch (textOf(event['type'])) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return this.#appendText(index, event)
      case 'response.function_call_arguments.delta':
        return this.#appendArguments(index, event['delta'])
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#appendThinking(index, event['delta'])
      case 'response.reasoning_summary_part.added':
        return this.#separateSummaries(index)
      case 'response.output_item.added':
        return this.#openItem(index, objectOf(event['item']))
      case 'response.output_item.done':
        return this.#closeItem(index, objectOf(event['item']))
      case 'response.created':
        return this.#takeId(objectOf(event['response']))
      case 'response.completed':
      case 'response.incomplete':
        return this.#complete(objectOf(event['response']))
      case 'response.failed':
        throw providerError(fromObject(0, objectOf(event['response'])), this.#context)
      case 'error':
        throw providerError(fromObject(0, event), this.#context)
      default:
        return undefined
    }
  }

  #openItem(index: number, item: JsonObject): void {
    if (this.#items.has(index)) return
    const draft = this.#draftOf(item)
    if (draft !== undefined) this.#items.set(index, draft)
  }

  #draftOf(item: JsonObject): BlockDraft | undefined {
    if (item['type'] === 'message') return this.draft.openText()
    if (item['type'] === 'reasoning') return this.draft.openThinking()
    if (item['type'] !== 'function_call') return undefined
    const id = callIdOf(textOf(item['call_id']), this.draft, this.#context.ids)
    return this.draft.openCall(id, textOf(item['name']))
  }

  #appendText(index: number, event: JsonObject): void {
    const block = this.#items.get(index)
    if (block?.type !== 'text') return
    this.draft.append(block, textOf(event['delta']))
    if (event['type'] === 'response.refusal.delta') this.draft.raw['refusal'] = true
  }

  #appendArguments(index: number, delta: JsonObject[string]): void {
    const block = this.#items.get(index)
    if (block?.type === 'toolCall') block.json.append(textOf(delta))
  }

  #appendThinking(index: number, delta: JsonObject[string]): void {
    const block = this.#items.get(index)
    if (block?.type === 'thinking') this.draft.append(block, textOf(delta))
  }

  #separateSummaries(index: number): void {
    const block = this.#items.get(index)
    if (block?.type === 'thinking' && block.text.length > 0) this.draft.append(block, '\n\n')
  }

  #closeItem(index: number, item: JsonObject): void {
    this.#openItem(index, item)
    const block = this.#items.get(index)
    if (block === undefined) return this.#keepUnknown(item)
    if (block.type === 'text') this.#closeMessage(block, item)
    if (block.type === 'thinking') this.#closeReasoning(block, item)
    if (block.type === 'toolCall') closeCall(block, item)
    return undefined
  }

  #closeMessage(block: TextDraft, item: JsonObject): void {
    const whole = arrayOf(item['content'])
      .map((part) => textOf(part['text'] ?? part['refusal']))
      .join('')
    this.#catchUp(block, whole)
    const { id, phase } = item
    block.signature = JSON.stringify({ v: 1, id, ...(typeof phase === 'string' ? { phase } : {}) })
    block.raw = otherFields(item, ITEM_FIELDS)
  }

  /** The whole item is the signature: it goes back as it came, encrypted content included. */
  #closeReasoning(block: ThinkingDraft, item: JsonObject): void {
    const summary = arrayOf(item['summary'])
      .map((part) => textOf(part['text']))
      .join('\n\n')
    const content = arrayOf(item['content'])
      .map((part) => textOf(part['text']))
      .join('\n\n')
    this.#catchUp(block, summary === '' ? content : summary)
    block.signature = JSON.stringify(item)
  }

  /** Servers that do not stream an item's text have it in the finished item only. */
  #catchUp(block: TextDraft | ThinkingDraft, whole: string): void {
    if (block.text.length === 0) this.draft.append(block, whole)
    else if (whole !== '') block.text = new GrowingText(whole)
  }

  #keepUnknown(item: JsonObject): void {
    const items = this.draft.raw['items']
    this.draft.raw['items'] = [...(Array.isArray(items) ? items : []), item]
  }

  #takeId(response: JsonObject): void {
    if (typeof response['id'] === 'string') this.draft.responseId = response['id']
  }

  #complete(response: JsonObject): void {
    this.#takeId(response)
    arrayOf(response['output']).forEach((item, index) => {
      if (!this.#items.has(index)) this.#closeItem(index, item)
    })
    if (isJsonObject(response['usage'])) this.#takeUsage(response['usage'])
    const { status, service_tier: tier, model } = response
    const reason = objectOf(response['incomplete_details'])['reason'] ?? status ?? 'completed'
    this.draft.raw['stopReason'] = reason
    if (typeof tier === 'string' && tier !== 'default') this.draft.raw['service_tier'] = tier
    if (typeof model === 'string' && model !== this.#context.model) this.draft.raw['model'] = model
    if (reason === 'content_filter') throw modelError('MODEL_CONTENT_FILTERED', this.#context, { reason })
    this.draft.stopReason = status === 'incomplete' ? 'length' : 'stop'
    this.done = true
  }

  #takeUsage(usage: JsonObject): void {
    const input = count(usage['input_tokens'])
    const details = objectOf(usage['input_tokens_details'])
    const cacheRead = Math.min(input, count(details['cached_tokens']))
    const cacheWrite = Math.min(input - cacheRead, count(details['cache_write_tokens']))
    const fresh = input - cacheRead - cacheWrite
    const counts = { input: fresh, output: count(usage['output_tokens']), cacheRead, cacheWrite }
    this.draft.usage = toUsage(counts, this.#context.prices)
  }
}

function closeCall(call: CallDraft, item: JsonObject): void {
  if (typeof item['arguments'] === 'string') call.json = new GrowingText(item['arguments'])
  call.raw = otherFields(item, ITEM_FIELDS)
}
