import { GrowingText } from '../../base/text.ts'
import type { JsonObject } from '../../base/json.ts'
import type { StopReason } from '../../core/message.ts'
import { AnswerDraft, type BlockDraft } from '../answer-draft.ts'
import { callIdOf, eventObject, otherFields, type DecodeContext, type StreamDecoder } from '../decoding.ts'
import { modelError, providerError } from '../errors.ts'
import { isJsonObject, objectOf, textOf } from '../json-object.ts'
import { fromObject } from '../provider-error.ts'
import { count, toUsage, type TokenCounts } from '../usage.ts'

const MESSAGE_FIELDS = new Set(['id', 'type', 'role', 'model', 'content', 'stop_reason', 'stop_sequence', 'usage'])
const BLOCK_FIELDS = new Set(['type', 'text', 'thinking', 'signature', 'data', 'id', 'name', 'input'])
const DELTA_FIELDS = new Set(['stop_reason'])
const USAGE_FIELDS = new Set([
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation',
  'service_tier',
])

/** pi's text for reasoning that only its maker can read. */
const REDACTED = '[Reasoning redacted]'

export class AnthropicDecoder implements StreamDecoder {
  readonly draft = new AnswerDraft()
  done = false
  readonly #context: DecodeContext
  readonly #blocks = new Map<number, BlockDraft>()
  /** Blocks of types we do not know, as they arrived: kept, never replayed. */
  readonly #unknown = new Map<number, Record<string, JsonObject[string]>>()
  #counts: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

  constructor(context: DecodeContext) {
    this.#context = context
  }

  take(data: string): void {
    const event = eventObject(data, this.#context)
    if (event === undefined) return undefined
    switch (textOf(event['type'])) {
      case 'content_block_delta':
        return this.#takeDelta(numberOf(event['index']), objectOf(event['delta']))
      case 'content_block_start':
        return this.#openBlock(numberOf(event['index']), objectOf(event['content_block']))
      case 'message_start':
        return this.#takeMessage(objectOf(event['message']))
      case 'message_delta':
        return this.#takeMessageDelta(event)
      case 'message_stop':
        this.done = true
        return undefined
      case 'error':
        throw providerError(fromObject(0, event), this.#context)
      default:
        // `content_block_stop`, `ping`, and what is added later: the documentation asks clients to ignore it.
        return undefined
    }
  }

  #takeMessage(message: JsonObject): void {
    if (typeof message['id'] === 'string') this.draft.responseId = message['id']
    if (typeof message['model'] === 'string' && message['model'] !== this.#context.model) {
      this.#keep({ model: message['model'] })
    }
    this.#keep(otherFields(message, MESSAGE_FIELDS))
    this.#takeUsage(objectOf(message['usage']))
  }

  #openBlock(index: number, block: JsonObject): void {
    const draft = this.#draftOf(block)
    if (draft === undefined) {
      this.#unknown.set(index, { ...block })
      this.draft.raw['blocks'] = [...this.#unknown.values()]
      return
    }
    draft.raw = otherFields(block, BLOCK_FIELDS)
    this.#blocks.set(index, draft)
  }

  #draftOf(block: JsonObject): BlockDraft | undefined {
    switch (textOf(block['type'])) {
      case 'text': {
        const text = this.draft.openText()
        this.draft.append(text, textOf(block['text']))
        return text
      }
      case 'thinking': {
        const thinking = this.draft.openThinking()
        this.draft.append(thinking, textOf(block['thinking']))
        if (typeof block['signature'] === 'string' && block['signature'] !== '') thinking.signature = block['signature']
        return thinking
      }
      case 'redacted_thinking':
        return Object.assign(this.draft.openThinking(), {
          text: new GrowingText(REDACTED),
          signature: textOf(block['data']),
          redacted: true,
        })
      case 'tool_use': {
        const id = callIdOf(textOf(block['id']), this.draft, this.#context.ids)
        const call = this.draft.openCall(id, textOf(block['name']))
        // Proxies that do not stream arguments put them here.
        if (isJsonObject(block['input']) && Object.keys(block['input']).length > 0) {
          call.json.append(JSON.stringify(block['input']))
        }
        return call
      }
      default:
        return undefined
    }
  }

  #takeDelta(index: number, delta: JsonObject): void {
    const block = this.#blocks.get(index)
    if (block === undefined) return this.#takeUnknownDelta(this.#unknown.get(index), delta)
    const { text, thinking, signature, partial_json: json } = delta
    if (block.type === 'text' && typeof text === 'string') this.draft.append(block, text)
    else if (block.type === 'thinking' && typeof thinking === 'string') this.draft.append(block, thinking)
    else if (block.type === 'thinking' && typeof signature === 'string') {
      // Whole, as the official clients take it: a signature does not come in pieces.
      block.signature = signature
    } else if (block.type === 'toolCall' && typeof json === 'string') {
      block.json.append(json)
    } else if (isJsonObject(delta['citation'])) {
      const citations = block.raw?.['citations']
      block.raw = { ...block.raw, citations: [...(Array.isArray(citations) ? citations : []), delta['citation']] }
    }
    return undefined
  }

  #takeUnknownDelta(block: Record<string, JsonObject[string]> | undefined, delta: JsonObject): void {
    if (block === undefined) return
    for (const [name, value] of Object.entries(delta)) {
      if (name === 'type') continue
      const before = block[name]
      block[name] = typeof before === 'string' && typeof value === 'string' ? before + value : value
    }
  }

  #takeMessageDelta(event: JsonObject): void {
    const delta = objectOf(event['delta'])
    this.#takeUsage(objectOf(event['usage']))
    this.#keep(otherFields(delta, DELTA_FIELDS))
    const reason = delta['stop_reason']
    if (typeof reason !== 'string') return
    this.#keep({ stopReason: reason })
    if (reason === 'refusal') throw modelError('MODEL_CONTENT_FILTERED', this.#context, { reason })
    this.draft.stopReason = STOP_REASONS[reason] ?? 'stop'
  }

  /** The counts of `message_delta` are cumulative; what it leaves out stays as `message_start` had it. */
  #takeUsage(usage: JsonObject): void {
    const pick = (name: string, before: number): number => (usage[name] == null ? before : count(usage[name]))
    this.#counts = {
      input: pick('input_tokens', this.#counts.input),
      output: pick('output_tokens', this.#counts.output),
      cacheRead: pick('cache_read_input_tokens', this.#counts.cacheRead),
      cacheWrite: pick('cache_creation_input_tokens', this.#counts.cacheWrite),
    }
    this.draft.usage = toUsage(this.#counts, this.#context.prices)
    const rest = otherFields(usage, USAGE_FIELDS)
    if (rest !== undefined) this.#keep({ usage: rest })
  }

  #keep(fields: JsonObject | undefined): void {
    if (fields !== undefined) Object.assign(this.draft.raw, fields)
  }
}

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'toolUse',
}

function numberOf(value: JsonObject[string]): number {
  return typeof value === 'number' ? value : 0
}
