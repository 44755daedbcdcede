import { sleep, type Clock } from '../base/clock.ts'
import type { HttpClient } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import type { Circuit } from './circuit.ts'
import type { DecodeContext, StreamDecoder } from './decoding.ts'
import type { WireApi } from './encoders.ts'
import { modelError } from './errors.ts'
import type { EncodedRequest, ModelEvent, ModelProvider, ModelRequest } from './provider.ts'
import { retryDelay, type RetryOptions } from './retry.ts'
import type { Prices } from './usage.ts'
import { streamOnce, type WireOptions } from './wire.ts'

/** What one API is, apart from its encoding: where its requests go and how its answers are read. */
export interface HttpProviderOptions {
  readonly name: string
  readonly api: WireApi
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

export interface HttpProviderParts {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
}

/** A model API over HTTP: one request, retried while nothing of the answer has been seen. */
export class HttpProvider implements ModelProvider {
  readonly name: string
  readonly api: WireApi
  readonly #options: HttpProviderOptions
  readonly #parts: HttpProviderParts

  constructor(options: HttpProviderOptions, parts: HttpProviderParts) {
    this.name = options.name
    this.api = options.api
    this.#options = options
    this.#parts = parts
  }

  encode(request: ModelRequest): EncodedRequest {
    return this.#options.encode(request)
  }

  async *stream(request: EncodedRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, undefined> {
    const { clock, ids } = this.#parts
    if (this.#options.missingKey === true) throw noKey(this.name)
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      const context = this.#contextOf(request.model)
      const decoder = this.#options.createDecoder(context)
      try {
        yield* this.#attempt(request, decoder, context, signal)
        signal.throwIfAborted()
        const { name: provider, api } = this
        yield { type: 'end', message: decoder.draft.build({ api, provider, model: request.model }) }
        return
      } catch (thrown) {
        if (signal.aborted) throw signal.reason
        if (!(thrown instanceof GatewayError)) throw thrown
        const delayMs = decoder.draft.visible ? undefined : retryDelay(thrown, attempt, this.#options.retry, ids)
        if (delayMs === undefined) throw withAttempts(thrown, attempt, decoder.draft.visible)
        yield { type: 'retry', attempt, delayMs, code: thrown.code }
        await sleep(clock, delayMs, signal)
      }
    }
  }

  async *#attempt(
    request: EncodedRequest,
    decoder: StreamDecoder,
    context: DecodeContext,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const { circuit, urlOf, headers, wire } = this.#options
    const waitMs = circuit.admit()
    if (waitMs > 0) throw modelError('MODEL_UNAVAILABLE', context, { retryAfterMs: waitMs })
    let reported = false
    try {
      const wireRequest = { url: urlOf(request.model), headers, body: request.body }
      yield* streamOnce(wireRequest, decoder, context, { ...this.#parts, options: wire }, signal)
      circuit.succeeded()
      reported = true
    } catch (thrown) {
      if (!signal.aborted && thrown instanceof GatewayError) {
        circuit.failed(thrown.code)
        reported = true
      }
      throw thrown
    } finally {
      // Also when the reader simply stopped reading.
      if (!reported) circuit.abandoned()
    }
  }

  #contextOf(model: string): DecodeContext {
    const { name: provider, secrets, pricesOf } = this.#options
    return { provider, model, secrets, prices: pricesOf(model), ids: this.#parts.ids }
  }
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
