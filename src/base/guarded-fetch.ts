import type { Clock } from './clock.ts'
import {
  checkUrl,
  FetchRefused,
  isPrivateAllowed,
  NOT_PUBLIC,
  shownUrl,
  URL_POLICY,
  type UrlPolicy,
} from './fetch-policy.ts'
import { type HttpClient, HttpFailure, type HttpResponse } from './http.ts'
import { sniffMediaType } from './media-type.ts'
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

export interface GuardedFetchOptions extends Partial<UrlPolicy> {
  readonly clock: Clock
  /** Sent to the first origin only; a redirect elsewhere does not get them. */
  readonly headers?: Readonly<Record<string, string>>
  readonly accept?: string
  /** `GET` when absent. */
  readonly method?: 'GET' | 'POST'
  /** Sent again to every address a redirect leads to; forbid redirects where that is not meant. */
  readonly body?: string
  /** Of the body, unpacked. */
  readonly maxBytes?: number
  /** What happens beyond it: an error, or the beginning with `cut: true`. */
  readonly oversize?: 'refuse' | 'cut'
  /** For everything together: redirects, headers, body. */
  readonly timeoutMs?: number
  readonly maxRedirects?: number
}

export interface FetchedResource {
  /** Where it was found after redirects, without query and fragment. */
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** From the content itself where it shows, else what the server declared. */
  readonly mediaType: string
  readonly cut: boolean
  readonly redirects: number
}

const DEFAULTS = { maxBytes: 5 * 1024 * 1024, timeoutMs: 30_000, maxRedirects: 3, accept: '*/*' }
const REDIRECTS = [301, 302, 303, 307, 308]

/**
 * The one way to fetch an address a user, a model or a web page named. Every hop is checked by its letters and, through
 * `publicOnly`, at the socket. Fails with a `FetchRefused`; an abort throws the signal's reason. Other statuses than 2xx
 * are answers, not failures.
 */
export async function guardedFetch(
  http: HttpClient,
  address: string,
  options: GuardedFetchOptions,
  signal: AbortSignal,
): Promise<FetchedResource> {
  const timeoutMs = options.timeoutMs ?? DEFAULTS.timeoutMs
  const stop = new AbortController()
  const onAbort = (): void => stop.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = options.clock.after(timeoutMs, () =>
    stop.abort(new FetchRefused('timeout', `there was no complete answer within ${timeoutMs} ms`)),
  )
  try {
    return await new Fetch(http, options, timeoutMs, stop.signal).run(address)
  } catch (error) {
    signal.throwIfAborted()
    throw stop.signal.aborted ? stop.signal.reason : toRefusal(error)
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

class Fetch {
  readonly #http: HttpClient
  readonly #options: GuardedFetchOptions
  readonly #policy: UrlPolicy
  readonly #timeoutMs: number
  readonly #signal: AbortSignal

  constructor(http: HttpClient, options: GuardedFetchOptions, timeoutMs: number, signal: AbortSignal) {
    this.#http = http
    this.#options = options
    this.#policy = {
      ports: options.ports ?? URL_POLICY.ports,
      maxUrlChars: options.maxUrlChars ?? URL_POLICY.maxUrlChars,
      allowHosts: options.allowHosts ?? URL_POLICY.allowHosts,
      privateHosts: options.privateHosts ?? URL_POLICY.privateHosts,
    }
    this.#timeoutMs = timeoutMs
    this.#signal = signal
  }

  async run(address: string): Promise<FetchedResource> {
    const first = checkUrl(address, this.#policy)
    const maxRedirects = this.#options.maxRedirects ?? DEFAULTS.maxRedirects
    let url = first
    for (let redirects = 0; ; redirects++) {
      const response = await this.#request(url, url.origin === first.origin)
      const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null
      if (location === null) return await this.#finish(url, response, redirects)
      await discard(response)
      if (redirects >= maxRedirects) throw new FetchRefused('redirects', `more than ${maxRedirects} redirects`)
      url = this.#next(url, location)
    }
  }

  #request(url: URL, isFirstOrigin: boolean): Promise<HttpResponse> {
    const { headers, accept = DEFAULTS.accept, method = 'GET', body } = this.#options
    return this.#http.request(
      {
        method,
        url: url.href,
        headers: { ...(isFirstOrigin && headers), accept, 'accept-encoding': 'identity' },
        ...(body === undefined ? {} : { body }),
        connectTimeoutMs: this.#timeoutMs,
        firstByteTimeoutMs: this.#timeoutMs,
        idleTimeoutMs: this.#timeoutMs,
        publicOnly: !isPrivateAllowed(url, this.#policy),
      },
      this.#signal,
    )
  }

  #next(from: URL, location: string): URL {
    if (!URL.canParse(location, from.href))
      throw new FetchRefused('invalid-url', 'it redirects to something that is no address')
    const next = checkUrl(new URL(location, from).href, this.#policy)
    if (from.protocol === 'https:' && next.protocol === 'http:') {
      throw new FetchRefused('downgrade', 'it redirects from https to http')
    }
    return next
  }

  async #finish(url: URL, response: HttpResponse, redirects: number): Promise<FetchedResource> {
    const { bytes, cut } = await this.#readBody(response)
    const declared = response.headers.get('content-type') ?? undefined
    return {
      url: shownUrl(url),
      status: response.status,
      headers: response.headers,
      bytes,
      mediaType: sniffMediaType(bytes, declared),
      cut,
      redirects,
    }
  }

  async #readBody(response: HttpResponse): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
    const { maxBytes = DEFAULTS.maxBytes, oversize = 'refuse' } = this.#options
    const tooLarge = (): FetchRefused => new FetchRefused('too-large', `the answer has more than ${maxBytes} bytes`)
    if (oversize === 'refuse' && Number(response.headers.get('content-length') ?? 0) > maxBytes) {
      await discard(response)
      throw tooLarge()
    }
    const arrived = await atMost(response.body, maxBytes)
    if (arrived.cut && oversize === 'refuse') throw tooLarge()
    const pieces = unpacked(arrived.bytes, response.headers.get('content-encoding'))
    if (pieces === undefined) return arrived
    const { bytes, cut } = await atMost(pieces, maxBytes)
    if (cut && oversize === 'refuse') throw tooLarge()
    return { bytes, cut: cut || arrived.cut }
  }
}

/** Ending the iteration ends what it came from: nothing more is downloaded, or unpacked. */
async function atMost(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly cut: boolean }> {
  const taken: Uint8Array[] = []
  let total = 0
  for await (const piece of pieces) {
    taken.push(piece)
    total += piece.length
    if (total > maxBytes) break
  }
  return { bytes: Buffer.concat(taken).subarray(0, maxBytes), cut: total > maxBytes }
}

/** Ends the connection of an answer that will not be read. */
async function discard(response: HttpResponse): Promise<void> {
  await response.body[Symbol.asyncIterator]().return?.()
}

function toRefusal(error: unknown): FetchRefused {
  if (error instanceof FetchRefused) return error
  if (error instanceof HttpFailure) {
    if (error.kind === 'address-refused') return new FetchRefused('address', NOT_PUBLIC)
    if (error.kind.endsWith('timeout')) return new FetchRefused('timeout', 'the server did not answer in time')
  }
  return new FetchRefused('network', 'the server could not be reached or broke off')
}

/** An end that was cut off is no error: as much as there is comes out. */
const ZLIB = { finishFlush: constants.Z_SYNC_FLUSH }
const BROTLI = { finishFlush: constants.BROTLI_OPERATION_FLUSH }

/**
 * What a body holds, for servers that pack although they were asked not to; undefined when it is not packed. Unpacked
 * piece by piece and outside of the event loop, so a small answer that unpacks to gigabytes costs what its reader takes.
 */
export function unpacked(bytes: Uint8Array, encoding: string | null): AsyncIterable<Uint8Array> | undefined {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return undefined
  const unpacker = unpackerOf(name)
  unpacker.end(bytes)
  return pieces(unpacker)
}

function unpackerOf(name: string): ReturnType<typeof createGunzip> {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip(ZLIB)
  if (name === 'deflate') return createInflate(ZLIB)
  if (name === 'br') return createBrotliDecompress(BROTLI)
  throw new FetchRefused('encoding', 'the answer is packed in an unknown way')
}

async function* pieces(unpacker: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* unpacker
  } catch {
    throw new FetchRefused('encoding', 'the packed answer is broken')
  }
}
