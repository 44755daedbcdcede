import type { JsonObject } from '../../base/json.ts'
import { dataLine, tokensOf, type AnswerHead, type FinishedAnswer } from './answer.ts'
import { callItemIdOf, messageItemIdOf, responseIdOf } from './answer-id.ts'
import type { AnswerAddress } from './finder.ts'

/** What a response repeats of its request. */
export interface ResponseHead extends AnswerHead {
  readonly address: AnswerAddress
  readonly previous: string | null
  readonly store: boolean
  readonly metadata: Readonly<Record<string, string>>
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

export function responseObject(head: ResponseHead, answer: FinishedAnswer): JsonObject {
  return {
    ...frameOf(head, answer.isCut ? 'incomplete' : 'completed'),
    model: answer.model ?? head.model,
    incomplete_details: answer.isCut ? { reason: 'max_output_tokens' } : null,
    output: outputOf(head, answer),
    usage: usageOf(answer),
  }
}

/** One that has no answer yet, or none at all. */
export function unansweredResponse(head: ResponseHead, status: Status, error: JsonObject | null = null): JsonObject {
  return { ...frameOf(head, status), error, output: [], usage: null }
}

function frameOf({ address, created, model, previous, store, metadata }: ResponseHead, status: Status): JsonObject {
  return {
    id: responseIdOf(address),
    object: 'response',
    created_at: created,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    model,
    parallel_tool_calls: true,
    previous_response_id: previous,
    store,
    metadata,
    temperature: null,
    top_p: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
  }
}

function outputOf({ address }: ResponseHead, { text, calls }: FinishedAnswer): JsonObject[] {
  const message = text === '' && calls.length > 0 ? [] : [messageItem(address, text, 'completed')]
  return [...message, ...calls.map((_, index) => callItem(address, calls, index, 'completed'))]
}

function messageItem(address: AnswerAddress, text: string, status: string): JsonObject {
  const content = status === 'completed' ? [textPart(text)] : []
  return { id: messageItemIdOf(address), type: 'message', status, role: 'assistant', content }
}

function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function callItem(address: AnswerAddress, calls: FinishedAnswer['calls'], index: number, status: string): JsonObject {
  const { id = '', name = '', arguments: given = '' } = calls[index] ?? {}
  return {
    id: callItemIdOf(address, index),
    type: 'function_call',
    status,
    call_id: id,
    name,
    arguments: status === 'completed' ? given : '',
  }
}

function usageOf({ usage }: FinishedAnswer): JsonObject {
  const { prompt, output, cached, total } = tokensOf(usage)
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: total,
  }
}

/** The events of a streamed response, numbered. */
export class ResponseEvents {
  readonly #head: ResponseHead
  #number = 0
  #isOpen = false

  constructor(head: ResponseHead) {
    this.#head = head
  }

  begin(): string {
    const response = unansweredResponse(this.#head, 'in_progress')
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response })
  }

  text(delta: string): string {
    const opening = this.#isOpen ? '' : this.#openMessage()
    return opening + this.#event('response.output_text.delta', { ...this.#part(), delta, logprobs: [] })
  }

  /** `answer.text` is everything that was shown. */
  end(answer: FinishedAnswer): string {
    const { address } = this.#head
    const events: string[] = []
    if (this.#isOpen || answer.calls.length === 0) {
      if (!this.#isOpen) events.push(this.#openMessage())
      events.push(this.#closeMessage(answer.text))
    }
    const first = events.length === 0 ? 0 : 1
    answer.calls.forEach((_, index) => events.push(this.#call(answer.calls, index, first + index)))
    const type = answer.isCut ? 'response.incomplete' : 'response.completed'
    events.push(this.#event(type, { response: responseObject({ ...this.#head, address }, answer) }))
    return events.join('')
  }

  fail(error: JsonObject): string {
    const { message, code } = error['error'] as { message: string; code: string }
    const response = unansweredResponse(this.#head, 'failed', { code, message })
    return this.#event('error', { code, message, param: null }) + this.#event('response.failed', { response })
  }

  #openMessage(): string {
    this.#isOpen = true
    const item = messageItem(this.#head.address, '', 'in_progress')
    return (
      this.#event('response.output_item.added', { output_index: 0, item }) +
      this.#event('response.content_part.added', { ...this.#part(), part: textPart('') })
    )
  }

  #closeMessage(text: string): string {
    const item = messageItem(this.#head.address, text, 'completed')
    return (
      this.#event('response.output_text.done', { ...this.#part(), text, logprobs: [] }) +
      this.#event('response.content_part.done', { ...this.#part(), part: textPart(text) }) +
      this.#event('response.output_item.done', { output_index: 0, item })
    )
  }

  #call(calls: FinishedAnswer['calls'], index: number, outputIndex: number): string {
    const { address } = this.#head
    const place = { item_id: callItemIdOf(address, index), output_index: outputIndex }
    const given = calls[index]?.arguments ?? ''
    const begun = callItem(address, calls, index, 'in_progress')
    const done = callItem(address, calls, index, 'completed')
    return (
      this.#event('response.output_item.added', { output_index: outputIndex, item: begun }) +
      this.#event('response.function_call_arguments.delta', { ...place, delta: given }) +
      this.#event('response.function_call_arguments.done', { ...place, arguments: given }) +
      this.#event('response.output_item.done', { output_index: outputIndex, item: done })
    )
  }

  #part(): JsonObject {
    return { item_id: messageItemIdOf(this.#head.address), output_index: 0, content_index: 0 }
  }

  #event(type: string, fields: JsonObject): string {
    return `event: ${type}\n${dataLine({ type, sequence_number: this.#number++, ...fields })}`
  }
}
