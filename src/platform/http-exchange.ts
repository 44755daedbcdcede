import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { deferred } from '../base/async.ts'
import { HttpFailure, type HttpFailureKind, type HttpRequest, type HttpResponse } from '../base/http.ts'
import { errnoOf } from '../base/files.ts'

type Phase = 'connecting' | 'waiting' | 'reading' | 'done'

/** One request and its answer on undici's lowest level, where the phases are distinct and an abort is immediate. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #maxBufferedBytes: number
  readonly #signal: AbortSignal
  readonly #response = deferred<HttpResponse>()
  readonly #chunks: Uint8Array[] = []
  #bufferedBytes = 0
  #phase: Phase = 'connecting'
  #failure: unknown
  #controller: Dispatcher.DispatchController | undefined
  #timer: NodeJS.Timeout | undefined
  #wake: (() => void) | undefined
  /** As the signal says, which is slow to ask for each piece of an answer. */
  #isAborted = false
  /**
   * From the abort on nothing more is handed out. Closing the connection and unwinding the reader takes about a
   * millisecond and comes after what the one who aborted has to say in the same breath.
   */
  readonly #onAbort = (): void => {
    this.#isAborted = true
    setImmediate(() => this.#fail(this.#signal.reason))
  }

  constructor(request: HttpRequest, maxBufferedBytes: number, signal: AbortSignal) {
    this.#request = request
    this.#maxBufferedBytes = maxBufferedBytes
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Also between an abort and what follows from it. */
  get #isOver(): boolean {
    return this.#phase === 'done' || this.#isAborted
  }

  get response(): Promise<HttpResponse> {
    return this.#response.promise
  }

  send(agent: Dispatcher, url: URL): void {
    this.#startTimer(this.#request.connectTimeoutMs, 'connect-timeout')
    const { method, headers, body = null } = this.#request
    try {
      agent.dispatch({ origin: url.origin, path: url.pathname + url.search, method, headers, body }, this)
    } catch (error) {
      this.#fail(new HttpFailure('invalid', 'the request cannot be sent', errnoOf(error)))
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // Given up while the connection was being made: nothing may be sent on it.
    if (this.#isOver) return controller.abort(new Error('given up'))
    this.#phase = 'waiting'
    this.#startTimer(this.#request.firstByteTimeoutMs, 'first-byte-timeout')
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational answers announce the real one.
    if (status < 200 || this.#isOver) return
    this.#phase = 'reading'
    this.#startTimer(this.#request.idleTimeoutMs, 'idle-timeout')
    this.#response.resolve({
      status,
      headers: toHeaders(headers),
      body: { [Symbol.asyncIterator]: () => this.#read() },
    })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return
    this.#timer?.refresh()
    this.#chunks.push(chunk)
    this.#bufferedBytes += chunk.length
    if (this.#bufferedBytes > this.#maxBufferedBytes) {
      controller.pause()
      // The silence that follows is ours.
      clearTimeout(this.#timer)
    }
    this.#wake?.()
  }

  onResponseEnd(): void {
    this.#finish()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // An abort while the connection was being made ends it: the caller gets its own reason, not that end.
    this.#fail(this.#isAborted ? this.#signal.reason : toFailure(error, this.#phase))
  }

  /** Not a generator: its `return` would wait behind a read under way, and so could never end it. */
  #read(): AsyncIterator<Uint8Array, undefined> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.#close()
        return { done: true, value: undefined }
      },
    }
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) {
        this.#bufferedBytes -= chunk.length
        if (this.#bufferedBytes === 0) this.#resume()
        return { done: false, value: chunk }
      }
      if (this.#failure !== undefined) throw this.#failure
      if (this.#phase === 'done') return { done: true, value: undefined }
      await this.#nextChunk()
    }
  }

  #nextChunk(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #resume(): void {
    if (this.#phase !== 'reading' || this.#controller?.paused !== true) return
    this.#startTimer(this.#request.idleTimeoutMs, 'idle-timeout')
    this.#controller.resume()
  }

  #startTimer(delayMs: number, kind: HttpFailureKind): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#fail(new HttpFailure(kind, `no answer within ${delayMs} ms`)), delayMs)
  }

  #fail(reason: unknown): void {
    if (this.#phase === 'done') return
    this.#failure = reason ?? new Error('aborted')
    // What was already received but not read is of no use to a caller that gave up.
    if (this.#isAborted) this.#chunks.length = 0
    this.#response.reject(this.#failure)
    this.#finish()
    this.#controller?.abort(new Error('given up'))
  }

  /** The reader left before the end. */
  #close(): void {
    this.#chunks.length = 0
    if (this.#phase === 'done') return
    this.#finish()
    this.#controller?.abort(new Error('closed by the reader'))
  }

  #finish(): void {
    this.#phase = 'done'
    clearTimeout(this.#timer)
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#wake?.()
  }
}

function toHeaders(raw: IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(raw)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) headers.append(name, item)
    }
  }
  return headers
}

function toFailure(error: Error, phase: Phase): HttpFailure {
  if (error instanceof HttpFailure) return error
  const code = errnoOf(error)
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return new HttpFailure('connect-timeout', 'no connection in time', code)
  if (phase === 'connecting') return new HttpFailure('connect', 'the connection could not be made', code)
  // Its message would quote what came; the name tells enough.
  if (error.name === 'HTTPParserError') return new HttpFailure('invalid', 'the answer is not HTTP', code)
  return new HttpFailure('reset', 'the connection ended before the answer did', code)
}
