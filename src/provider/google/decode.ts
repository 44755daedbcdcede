import type { JsonObject } from '../../base/json.ts'
import { AnswerDraft, type TextDraft, type ThinkingDraft } from '../answer-draft.ts'
import { callIdOf, eventObject, otherFields, type DecodeContext, type StreamDecoder } from '../decoding.ts'
import { modelError, providerError } from '../errors.ts'
import { arrayOf, objectOf, textOf } from '../json-object.ts'
import { fromObject } from '../provider-error.ts'
import { count, toUsage } from '../usage.ts'

const PART_FIELDS = new Set(['text', 'thought', 'thoughtSignature', 'functionCall'])
const CANDIDATE_FIELDS = new Set(['content', 'finishReason', 'index', 'safetyRatings', 'avgLogprobs', 'tokenCount'])

const FILTERED = /SAFETY|BLOCKLIST|PROHIBITED_CONTENT|SPII|RECITATION/

/** Every event is a whole response whose parts continue those of the event before. */
export class GoogleDecoder implements StreamDecoder {
  readonly draft = new AnswerDraft()
  /** The stream has no closing event: it ends when the connection does. */
  readonly done = false
  readonly #context: DecodeContext

  constructor(context: DecodeContext) {
    this.#context = context
  }

  take(data: string): void {
    const response = eventObject(data, this.#context)
    if (response === undefined) return
    if (response['error'] !== undefined) throw providerError(fromObject(0, response), this.#context)
    if (typeof response['responseId'] === 'string') this.draft.responseId ??= response['responseId']
    if (typeof response['modelVersion'] === 'string' && response['modelVersion'] !== this.#context.model) {
      this.draft.raw['model'] = response['modelVersion']
    }
    if (response['usageMetadata'] !== undefined) this.#takeUsage(objectOf(response['usageMetadata']))
    const blockReason = objectOf(response['promptFeedback'])['blockReason']
    if (typeof blockReason === 'string') {
      throw modelError('MODEL_CONTENT_FILTERED', this.#context, { reason: blockReason })
    }
    this.#takeCandidate(arrayOf(response['candidates'])[0] ?? {})
  }

  #takeCandidate(candidate: JsonObject): void {
    for (const part of arrayOf(objectOf(candidate['content'])['parts'])) this.#takePart(part)
    Object.assign(this.draft.raw, otherFields(candidate, CANDIDATE_FIELDS))
    const reason = candidate['finishReason']
    if (typeof reason !== 'string' || reason === 'FINISH_REASON_UNSPECIFIED') return
    this.draft.raw['stopReason'] = reason
    if (FILTERED.test(reason)) throw modelError('MODEL_CONTENT_FILTERED', this.#context, { reason })
    // MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER …: there is no answer to use.
    if (reason !== 'STOP' && reason !== 'MAX_TOKENS')
      throw modelError('MODEL_ANSWER_INVALID', this.#context, { reason })
    this.draft.stopReason = reason === 'MAX_TOKENS' ? 'length' : 'stop'
  }

  #takePart(part: JsonObject): void {
    const signature = textOf(part['thoughtSignature'])
    if (part['functionCall'] !== undefined) return this.#takeCall(objectOf(part['functionCall']), signature)
    const extras = otherFields(part, PART_FIELDS)
    if (extras !== undefined) this.#keepPart(extras)
    if (typeof part['text'] !== 'string') return undefined
    const type = part['thought'] === true ? 'thinking' : 'text'
    const last = this.draft.lastBlock
    // A signature may come on a last part without text; it belongs to the block it closes.
    if (part['text'] === '' && last?.type !== type) return this.#keepLateSignature(signature)
    const open = (): TextDraft | ThinkingDraft => (type === 'text' ? this.draft.openText() : this.draft.openThinking())
    const block = last !== undefined && last.type !== 'toolCall' && last.type === type ? last : open()
    this.draft.append(block, part['text'])
    if (signature !== '') block.signature = signature
    return undefined
  }

  /** Older models send no id; one call may also be sent twice under one id. */
  #takeCall(call: JsonObject, signature: string): void {
    const id = callIdOf(textOf(call['id']), this.draft, this.#context.ids)
    const draft = this.draft.openCall(id, textOf(call['name']))
    draft.json.append(JSON.stringify(objectOf(call['args'])))
    if (signature !== '') draft.signature = signature
  }

  #keepLateSignature(signature: string): void {
    if (signature !== '') this.draft.raw['thoughtSignature'] = signature
  }

  /** Executable code and its result, inline data: kept for the transcript, part by part. */
  #keepPart(part: JsonObject): void {
    const parts = this.draft.raw['parts']
    this.draft.raw['parts'] = [...(Array.isArray(parts) ? parts : []), part]
  }

  /** Thoughts are billed as output but counted apart. */
  #takeUsage(usage: JsonObject): void {
    const prompt = count(usage['promptTokenCount']) + count(usage['toolUsePromptTokenCount'])
    const cacheRead = Math.min(prompt, count(usage['cachedContentTokenCount']))
    const output = count(usage['candidatesTokenCount']) + count(usage['thoughtsTokenCount'])
    this.draft.usage = toUsage({ input: prompt - cacheRead, output, cacheRead, cacheWrite: 0 }, this.#context.prices)
  }
}
