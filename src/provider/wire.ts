import { createParser } from 'eventsource-parser'
import type { Clock } from '../base/clock.ts'
import type { HttpClient, HttpResponse } from '../base/http.ts'
import { loopWork } from '../base/loop-work.ts'
import { GatewayError } from '../core/errors.ts'
import type { StreamDecoder } from './decoding.ts'
import { connectionError, modelError, providerError, type ErrorContext } from './errors.ts'
import { readProviderError } from './provider-error.ts'
import { retryAfterOf } from './retry.ts'

export interface WireOptions {
  readonly connectTimeoutMs: number
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Bytes of one answer. */
  readonly maxAnswerBytes: number
  /** Bytes of one event. */
  readonly maxEventBytes: number
  /** How long a finished stream may take to end, so that its connection can be used again. */
  readonly lingerMs: number
  /** How long after its stop reason an answer may still bring usage; some servers then keep the connection open. */
  readonly tailMs: number
}

export const DEFAULT_WIRE: WireOptions = {
  connectTimeoutMs: 10_000,
  // Reasoning models think for minutes before the first byte of an answer that is not streamed.
  firstByteTimeoutMs: 300_000,
  idleTimeoutMs: 300_000,
  maxAnswerBytes: 64 * 1024 * 1024,
  maxEventBytes: 32 * 1024 * 1024,
  lingerMs: 100,
  tailMs: 5_000,
}

/** Asking again would bring the same. */
const FINAL = { shouldRetry: false }

const MAX_ERROR_BYTES = 64 * 1024

export interface WireRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface WireDeps {
  readonly http: HttpClient
  readonly clock: Clock
  readonly options: WireOptions
}

/**
 * One request and the stream that answers it, fed to the decoder piece by piece as its reader asks for more. Never
 * retries. Not a generator: each piece of an answer would pass through one more of them on its way to the reader.
 */
export class WireAnswer {
  readonly #request: WireRequest
  readonly #decoder: StreamDecoder
  readonly #context: ErrorContext
  readonly #deps: WireDeps
  readonly #signal: AbortSignal
  #body: AsyncIterator<Uint8Array> | undefined
  #feed: Feed = () => undefined
  #started = false

  constructor(
    request: WireRequest,
    decoder: StreamDecoder,
    context: ErrorContext,
    deps: WireDeps,
    signal: AbortSignal,
  ) {
    this.#request = request
    this.#decoder = decoder
    this.#context = context
    this.#deps = deps
    this.#signal = signal
  }

  /**
   * Decodes the next piece; false when the answer is complete. Throws a `GatewayError` when it will not be, whatever the
   * reason; what was decoded before belongs to what is visible.
   */
  async readMore(): Promise<boolean> {
    try {
      const body = (this.#body ??= await this.#open())
      const next = await nextPiece(body, this.#decoder, this.#deps)
      if (next.done === true) {
        if (!this.#decoder.done) this.#feed(undefined)
        this.#checkComplete()
        return false
      }
      this.#started = true
      this.#feed(next.value)
      return true
    } catch (thrown) {
      if (this.#signal.aborted) throw this.#signal.reason
      const error = connectionError(thrown, this.#context, this.#started)
      // The connection may break behind the last word of an answer.
      if (this.#decoder.draft.stopReason !== undefined && isCut(error)) return false
      throw error
    }
  }

  close(): void {
    // Not awaited: after a linger in vain a read is still under way, and it ends with this.
    void this.#body?.return?.()
  }

  async #open(): Promise<AsyncIterator<Uint8Array>> {
    const response = await send(this.#request, this.#deps, this.#signal)
    if (response.status !== 200) throw await refusal(response, this.#context, this.#deps.clock)
    this.#feed = createFeed(response, this.#decoder, this.#context, this.#deps.options)
    return response.body[Symbol.asyncIterator]()
  }

  #checkComplete(): void {
    if (this.#decoder.draft.stopReason === undefined)
      throw modelError('MODEL_STREAM_CUT', this.#context, { failure: 'ended early' })
  }
}

function isCut(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'MODEL_STREAM_CUT'
}

function send(request: WireRequest, deps: WireDeps, signal: AbortSignal): Promise<HttpResponse> {
  const { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = deps.options
  return deps.http.request({ method: 'POST', ...request, connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs }, signal)
}

/**
 * Waits without a limit of its own while an answer is under way. Once it is complete the connection is given a moment
 * to end by itself, because ending it would cost the next request a handshake, and then taken as ended.
 */
function nextPiece(
  body: AsyncIterator<Uint8Array>,
  decoder: StreamDecoder,
  { clock, options }: WireDeps,
): Promise<IteratorResult<Uint8Array, unknown>> {
  const reading = body.next()
  if (decoder.draft.stopReason === undefined) return reading
  const waitMs = decoder.done ? options.lingerMs : options.tailMs
  return new Promise((resolve, reject) => {
    const timer = clock.after(waitMs, () => resolve({ done: true, value: undefined }))
    reading.then(resolve, reject).finally(() => timer.cancel())
  })
}

type Feed = (bytes: Uint8Array | undefined) => void

/** The way from bytes to the decoder. Called with undefined at the end of the body. */
function createFeed(response: HttpResponse, decoder: StreamDecoder, context: ErrorContext, options: WireOptions): Feed {
  const type = response.headers.get('content-type') ?? ''
  const feed = /\bjson\b/i.test(type) ? wholeDocument(decoder) : events(decoder, context, options)
  let total = 0
  return (bytes) => {
    total += bytes?.length ?? 0
    if (total > options.maxAnswerBytes) {
      throw modelError('MODEL_ANSWER_INVALID', context, {
        failure: 'answer too large',
        limit: options.maxAnswerBytes,
        ...FINAL,
      })
    }
    if (/\bhtml\b/i.test(type)) throw modelError('MODEL_ANSWER_INVALID', context, { failure: 'a web page', ...FINAL })
    loopWork('model-answer', () => feed(bytes))
  }
}

function events(decoder: StreamDecoder, context: ErrorContext, options: WireOptions): Feed {
  const text = new TextDecoder()
  const parser = createParser({
    maxBufferSize: options.maxEventBytes,
    onEvent: (event) => {
      if (!decoder.done && event.data !== '') decoder.take(event.data)
    },
    onError: (error) => {
      if (error.type !== 'max-buffer-size-exceeded') return
      throw modelError('MODEL_ANSWER_INVALID', context, {
        failure: 'event too large',
        limit: options.maxEventBytes,
        ...FINAL,
      })
    },
  })
  // An event the connection did not finish is not an event.
  return (bytes) => (bytes === undefined ? undefined : parser.feed(text.decode(bytes, { stream: true })))
}

/** A server that ignores `stream: true` answers with one document. */
function wholeDocument(decoder: StreamDecoder): Feed {
  const text = new TextDecoder()
  let document = ''
  return (bytes) => {
    if (bytes !== undefined) document += text.decode(bytes, { stream: true })
    else decoder.take(document)
  }
}

async function refusal(response: HttpResponse, context: ErrorContext, clock: Clock): Promise<GatewayError> {
  const error = readProviderError(response.status, await readText(response))
  const after = retryAfterOf(response.headers, clock.now())
  const shouldRetry = response.headers.get('x-should-retry')
  const id = response.headers.get('request-id') ?? response.headers.get('x-request-id')
  return providerError(error, context, {
    ...(after === undefined ? {} : { retryAfterMs: after }),
    ...(shouldRetry === 'true' || shouldRetry === 'false' ? { shouldRetry: shouldRetry === 'true' } : {}),
    ...(id !== null && /^[\w-]{1,128}$/.test(id) ? { requestId: id } : {}),
  })
}

async function readText(response: HttpResponse): Promise<string> {
  const text = new TextDecoder()
  let body = ''
  try {
    for await (const bytes of response.body) {
      body += text.decode(bytes, { stream: true })
      if (body.length > MAX_ERROR_BYTES) break
    }
  } catch {
    // The status alone has to do.
  }
  return body
}
