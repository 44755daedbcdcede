import { createHash } from 'node:crypto'
import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import type { HttpClient } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError, type ErrorCode } from '../core/errors.ts'
import type { Circuit } from './circuit.ts'
import type { DecodeContext, StreamDecoder } from './decoding.ts'
import type { WireApi } from './encoders.ts'
import { modelError } from './errors.ts'
import type { EncodedRequest, ModelEvent, ModelProvider, ModelRequest } from './provider.ts'
import { retryDelay, type RetryOptions } from './retry.ts'
import type { Prices } from './usage.ts'
import { WireAnswer, type WireOptions } from './wire.ts'

/** What one API is, apart from its encoding: where its requests go and how its answers are read. */
export interface HttpProviderOptions {
  readonly name: string
  readonly api: WireApi
  readonly dialect?: 'compatible'
  readonly encode: (request: ModelRequest) => EncodedRequest
  readonly urlOf: (model: string) => string
  readonly headers: Readonly<Record<string, string>>
  readonly createDecoder: (context: DecodeContext) => StreamDecoder
  readonly pricesOf: (model: string) => Prices
  /** Taken out of everything the provider says. */
  readonly secrets: readonly string[]
  /** No key is configured, and the service does not answer without one. */
  readonly missingKey?: boolean
  readonly retry: RetryOptions
  readonly wire: WireOptions
  readonly circuit: Circuit
}

export interface HttpProviderDeps {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
}

/** A model API over HTTP: one request, retried while nothing of the answer has been seen. */
export class HttpProvider implements ModelProvider {
  readonly name: string
  readonly api: WireApi
  readonly dialect?: 'compatible'
  readonly #options: HttpProviderOptions
  readonly #deps: HttpProviderDeps
  #lastFailure: ProviderFailure | undefined

  constructor(options: HttpProviderOptions, deps: HttpProviderDeps) {
    this.name = options.name
    this.api = options.api
    if (options.dialect !== undefined) this.dialect = options.dialect
    this.#options = options
    this.#deps = deps
  }

  get lastFailure(): ProviderFailure | undefined {
    return this.#lastFailure
  }

  encode(request: ModelRequest): EncodedRequest {
    const encoded = this.#options.encode(request)
    return request.cacheKey === undefined ? encoded : { ...encoded, conversation: request.cacheKey }
  }

  async *stream(request: EncodedRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, undefined> {
    const { clock, ids } = this.#deps
    const { circuit } = this.#options
    if (this.#options.missingKey === true) throw noKey(this.name)
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      const context = this.#contextOf(request)
      const decoder = this.#options.createDecoder(context)
      const { draft } = decoder
      let failure = this.#stayAway(context)
      if (failure === undefined) {
        const answer = this.#begin(request, decoder, context, signal)
        let report = (): void => circuit.abandoned()
        try {
          for (let hasMore = true; hasMore;) {
            hasMore = await answer.readMore()
            // One by one: `yield*` waits for each of them twice.
            for (const event of draft.takePreviews()) yield event
          }
          report = () => circuit.succeeded()
        } catch (thrown) {
          if (signal.aborted) throw signal.reason
          if (!(thrown instanceof GatewayError)) throw thrown
          failure = thrown
          this.#lastFailure = lastFailureOf(thrown, clock.now())
          report = () => circuit.failed(thrown.code, sourceOf(thrown, request))
        } finally {
          // Also when the reader simply stopped reading.
          answer.close()
          report()
        }
      }
      signal.throwIfAborted()
      if (failure === undefined) {
        yield { type: 'end', message: draft.build({ api: this.api, provider: this.name, model: request.model }) }
        return
      }
      // Decoded before the error: it belongs to what was visible.
      for (const event of draft.takePreviews()) yield event
      const delayMs = draft.visible ? undefined : retryDelay(failure, attempt, this.#options.retry, ids)
      if (delayMs === undefined) throw withAttempts(failure, attempt, draft.visible)
      yield { type: 'retry', attempt, delayMs, code: failure.code }
      await sleep(clock, delayMs, signal)
    }
  }

  /** While the service seems to be down. */
  #stayAway(context: DecodeContext): GatewayError | undefined {
    const waitMs = this.#options.circuit.admit()
    return waitMs > 0 ? modelError('MODEL_UNAVAILABLE', context, { retryAfterMs: waitMs }) : undefined
  }

  #begin(request: EncodedRequest, decoder: StreamDecoder, context: DecodeContext, signal: AbortSignal): WireAnswer {
    const { urlOf, headers, wire } = this.#options
    const { http, clock } = this.#deps
    const wireRequest = { url: urlOf(request.model), headers, body: request.body }
    return new WireAnswer(wireRequest, decoder, context, { http, clock, options: wire }, signal)
  }

  #contextOf({ model, body }: EncodedRequest): DecodeContext {
    const { name: provider, secrets, pricesOf } = this.#options
    return { provider, model, secrets, sent: body, prices: pricesOf(model), ids: this.#deps.ids }
  }
}

/** What the operator sees of it in the status. */
export interface ProviderFailure {
  readonly at: number
  readonly code: ErrorCode
  readonly status?: number
  readonly reason?: string
  readonly detail?: string
}

function lastFailureOf({ code, facts }: GatewayError, at: number): ProviderFailure {
  const { status, reason, failure, detail } = facts
  const why = typeof reason === 'string' ? reason : failure
  return {
    at,
    code,
    ...(typeof status === 'number' ? { status } : {}),
    ...(typeof why === 'string' ? { reason: why } : {}),
    ...(typeof detail === 'string' ? { detail } : {}),
  }
}

/** Undefined when the call got no answer: then the failure has nothing to do with what was to be sent. */
function sourceOf({ facts }: GatewayError, { conversation, body }: EncodedRequest): string | undefined {
  if (facts['failure'] === 'connect' || facts['failure'] === 'connect-timeout') return undefined
  return conversation ?? createHash('sha256').update(body).digest('hex')
}

function noKey(provider: string): GatewayError {
  const message = `There is no API key for ${provider}. Set providers.${provider}.apiKey in the configuration.`
  return new GatewayError('MODEL_AUTH', message, { provider })
}

function withAttempts(error: GatewayError, attempts: number, visible: boolean): GatewayError {
  const cut = error.code === 'MODEL_STREAM_CUT' && visible
  const message = cut ? `${error.message} What is shown is only a part of it.` : error.message
  return new GatewayError(error.code, message, { ...error.facts, attempts, visible })
}
