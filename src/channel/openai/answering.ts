import type { JsonObject } from '../../base/json.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { ReplyContent } from '../../core/inbound.ts'
import { toFinishedAnswer } from './answer.ts'
import { responseIdOf } from './answer-id.ts'
import { chatCompletion } from './chat-format.ts'
import { isFinal, problemOfReply, toOpenAiProblem } from './errors.ts'
import type { AnswerAddress } from './finder.ts'
import type { ChatRequest } from './request.ts'
import { responseObject, unansweredResponse, type ResponseHead } from './responses-format.ts'

/** What the channel stores with a message to answer it. */
export interface OpenAiReplyTo extends JsonObject {
  readonly api: 'chat' | 'responses'
  readonly model: string
  readonly store: boolean
  readonly previous?: string
  readonly metadata?: JsonObject
}

/** What a request is answered with. */
export type OpenAiAnswer = { readonly key: SessionKey; readonly isRepeat?: boolean } & (
  | { readonly kind: 'json'; readonly status: number; readonly body: JsonObject; readonly isFinal?: boolean }
  | { readonly kind: 'events'; readonly body: ReadableStream<Uint8Array> }
)

export interface AnswerAbout {
  readonly address: AnswerAddress
  /** Seconds. */
  readonly created: number
  readonly key: SessionKey
  readonly replyTo: Partial<OpenAiReplyTo>
}

export function toReplyTo({ api, model, store, previous, metadata }: ChatRequest): OpenAiReplyTo {
  return {
    api,
    model,
    store,
    ...(previous === undefined ? {} : { previous: responseIdOf(previous) }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

export function headOf({ address, created, replyTo }: AnswerAbout): ResponseHead {
  const { model = 'clew', previous = null, store = true, metadata = {} } = replyTo
  return {
    id: `chatcmpl-${address.run.slice('run_'.length)}`,
    address,
    created,
    model,
    previous,
    store,
    metadata: metadata as Readonly<Record<string, string>>,
  }
}

/** A whole answer; undefined content means that there is none yet. */
export function shownAnswer(content: ReplyContent | undefined, about: AnswerAbout): OpenAiAnswer {
  const { key, replyTo } = about
  const head = headOf(about)
  if (content === undefined) return { key, kind: 'json', status: 200, body: unansweredResponse(head, 'in_progress') }
  const answer = content.kind === 'complete' ? toFinishedAnswer(content) : undefined
  if (answer !== undefined) {
    const body = replyTo.api === 'chat' ? chatCompletion(head, answer) : responseObject(head, answer)
    return { key, kind: 'json', status: 200, body }
  }
  const problem = problemOfReply(content)
  const { message = '', code = '' } = problem === undefined ? {} : { message: problem.error, code: problem.code }
  const status = content.kind === 'cancelled' ? 'cancelled' : 'failed'
  return { key, kind: 'json', status: 200, body: unansweredResponse(head, status, { code, message }) }
}

/** The answer to the request itself: a turn that failed is a request that failed. */
export function answerOrProblem(content: ReplyContent, about: AnswerAbout): OpenAiAnswer {
  const problem = problemOfReply(content)
  if (problem === undefined) return shownAnswer(content, about)
  return { key: about.key, kind: 'json', isFinal: isFinal(content), ...toOpenAiProblem(problem) }
}
