import type { JsonObject, JsonValue } from '../../base/json.ts'
import { dataLine, tokensOf, type AnswerHead, type FinishedAnswer } from './answer.ts'

const DONE = 'data: [DONE]\n\n'

/** The body of an answer that is not streamed. */
export function chatCompletion(head: AnswerHead, answer: FinishedAnswer): JsonObject {
  const { text, calls } = answer
  const toolCalls = calls.map(({ id, name, arguments: given }) => toCall(id, name, given))
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(calls.length === 0 ? {} : { tool_calls: toolCalls }),
  }
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: answer.model ?? head.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
    usage: usageOf(answer),
  }
}

function finishReason({ calls, isCut }: FinishedAnswer): string {
  if (calls.length > 0) return 'tool_calls'
  return isCut ? 'length' : 'stop'
}

function toCall(id: string, name: string, given: string): JsonObject {
  return { id, type: 'function', function: { name, arguments: given } }
}

function usageOf({ usage }: FinishedAnswer): JsonObject {
  const { prompt, output, cached, total } = tokensOf(usage)
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

/** The pieces of a streamed answer. */
export class ChatChunks {
  readonly #head: AnswerHead
  readonly #includeUsage: boolean

  constructor(head: AnswerHead, includeUsage: boolean) {
    this.#head = head
    this.#includeUsage = includeUsage
  }

  begin(): string {
    return this.#chunk({ role: 'assistant', content: '' }, null)
  }

  text(delta: string): string {
    return this.#chunk({ content: delta }, null)
  }

  end(answer: FinishedAnswer): string {
    const calls = answer.calls.map(({ id, name, arguments: given }, index) =>
      this.#chunk({ tool_calls: [{ index, ...toCall(id, name, given) }] }, null),
    )
    const last = this.#chunk({}, finishReason(answer))
    const usage = this.#includeUsage ? dataLine({ ...this.#frame(), choices: [], usage: usageOf(answer) }) : ''
    return `${calls.join('')}${last}${usage}${DONE}`
  }

  fail(error: JsonObject): string {
    return `${dataLine(error)}${DONE}`
  }

  #chunk(delta: JsonObject, finishReasonOfIt: JsonValue): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReasonOfIt }]
    return dataLine({ ...this.#frame(), choices, ...(this.#includeUsage ? { usage: null } : {}) })
  }

  #frame(): JsonObject {
    const { id, created, model } = this.#head
    return { id, object: 'chat.completion.chunk', created, model }
  }
}
