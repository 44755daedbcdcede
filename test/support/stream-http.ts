import { HttpFailure, type HttpClient, type HttpRequest, type HttpResponse } from '../../src/base/http.ts'

/** One answer of a server that exists only in the test. */
export interface ScriptedAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** The body comes in pieces of this size. */
  readonly chunkBytes?: number
  /** What happens behind the last byte. `hang` waits for the abort. */
  readonly ending?: 'end' | 'reset' | 'hang'
  /** No answer at all. */
  readonly failure?: HttpFailure
  /** Headers never come; waits for the abort. */
  readonly silent?: boolean
}

export class StreamHttp implements HttpClient {
  readonly requests: HttpRequest[] = []
  /** Bodies that were neither read to their end nor closed. */
  open = 0
  readonly #answers: ScriptedAnswer[]

  constructor(...answers: readonly ScriptedAnswer[]) {
    this.#answers = [...answers]
  }

  async request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    signal.throwIfAborted()
    this.requests.push(request)
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]
    if (answer === undefined) throw new Error('the script has no answer')
    if (answer.failure !== undefined) throw answer.failure
    if (answer.silent === true) await aborted(signal)
    const headers = new Headers({ 'content-type': 'text/event-stream; charset=utf-8', ...answer.headers })
    return { status: answer.status ?? 200, headers, body: this.#body(answer, signal) }
  }

  async *#body(answer: ScriptedAnswer, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    this.open++
    try {
      const bytes =
        typeof answer.body === 'string' ? new TextEncoder().encode(answer.body) : (answer.body ?? new Uint8Array())
      const size = Math.max(1, answer.chunkBytes ?? bytes.length)
      for (let at = 0; at < bytes.length; at += size) {
        signal.throwIfAborted()
        yield bytes.subarray(at, at + size)
      }
      if (answer.ending === 'reset') throw new HttpFailure('reset', 'the connection ended', 'ECONNRESET')
      if (answer.ending === 'hang') await aborted(signal)
    } finally {
      this.open--
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
