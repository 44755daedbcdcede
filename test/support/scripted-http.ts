import type { HttpClient, HttpRequest, HttpResponse } from '../../src/base/http.ts'

export interface ScriptedAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Pieces are delivered one by one; a promise among them delays what follows. */
  readonly body?: string | Uint8Array | readonly (string | Uint8Array | Promise<void>)[]
  readonly failure?: Error
}

/** Answers by URL, remembers what was asked, and counts the bodies that were left open. */
export class ScriptedHttp implements HttpClient {
  readonly requests: HttpRequest[] = []
  openBodies = 0
  deliveredBytes = 0
  readonly #answers: Readonly<Record<string, ScriptedAnswer>>

  constructor(answers: Readonly<Record<string, ScriptedAnswer>>) {
    this.#answers = answers
  }

  async request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    signal.throwIfAborted()
    this.requests.push(request)
    const answer = this.#answers[request.url]
    if (answer === undefined) throw new Error(`no answer is scripted for ${request.url}`)
    if (answer.failure !== undefined) throw answer.failure
    this.openBodies++
    return {
      status: answer.status ?? 200,
      headers: new Headers(answer.headers),
      body: this.#body(answer, signal),
    }
  }

  #body(answer: ScriptedAnswer, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const { body = '' } = answer
    const pieces = typeof body === 'string' || body instanceof Uint8Array ? [body] : body
    let next = 0
    let open = true
    const end = (): { done: true; value: undefined } => {
      if (open) this.openBodies--
      open = false
      return { done: true, value: undefined }
    }
    const iterator: AsyncIterator<Uint8Array> = {
      next: async () => {
        for (;;) {
          const piece = pieces[next++]
          if (piece === undefined) return end()
          if (piece instanceof Promise) {
            await Promise.race([piece, aborted(signal)])
            if (signal.aborted) {
              end()
              throw signal.reason
            }
            continue
          }
          const value = typeof piece === 'string' ? new TextEncoder().encode(piece) : piece
          this.deliveredBytes += value.length
          return { done: false, value }
        }
      },
      return: async () => end(),
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
