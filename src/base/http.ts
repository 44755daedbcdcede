import type { Socket } from './sockets.ts'

/** Serves HTTP and WebSocket upgrades on one address. */
export interface HttpServers {
  listen(options: ListenOptions): Promise<HttpListener>
}

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly maxBodyBytes: number
  /** Where another limit holds. */
  bodyLimitAt?(path: string): number | undefined
  /** Bytes of all bodies being read or worked on together. */
  readonly maxBodiesBytes?: number
  readonly maxFrameBytes: number
  /** Bytes of all frames that have not arrived whole, together. */
  readonly maxUnfinishedBytes?: number
  /** PEM texts; with them the same port speaks HTTPS and WSS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** TCP connections beyond this are dropped without an answer. */
  readonly maxConnections?: number
  /** Time for a request to arrive whole, headers and body. */
  readonly requestTimeoutMs?: number
  /** Time `close` leaves to open connections to end by themselves. */
  readonly closeGraceMs?: number
  /**
   * Nothing of the body has been read yet: it comes as the handler reads it, so a refusal on the head costs nothing. A body
   * over its limit fails with `BodyRefused` while it is read. The request's signal aborts when the client goes away.
   */
  handle(request: Request, peer: Peer): Promise<Response>
  /** Decides about a WebSocket before the handshake is answered. */
  upgrade(request: UpgradeRequest): UpgradeDecision
}

export interface Peer {
  readonly address: string
}

export interface UpgradeRequest {
  readonly url: URL
  readonly headers: Headers
  readonly peer: Peer
}

export type UpgradeDecision =
  | { readonly accept: true; opened(socket: Socket): void }
  | {
      readonly accept: false
      readonly status: number
      readonly body: string
      readonly headers?: Readonly<Record<string, string>>
    }

/** A body that cannot be taken; a handler that lets it through has it answered with its status. */
export class BodyRefused extends Error {
  /** 413: this body is too large. 503: all bodies together are; later there may be room. */
  readonly status: 413 | 503

  constructor(status: 413 | 503, message: string) {
    super(message)
    this.name = 'BodyRefused'
    this.status = status
  }
}

/** Bytes held for clients right now. */
export interface HeldBytes {
  readonly bodies: number
  /** Of frames that have not arrived whole. */
  readonly unfinished: number
  /** Written to sockets whose peers have not read them. */
  readonly unsent: number
}

export interface HttpListener {
  readonly port: number
  held(): HeldBytes
  /** Stops taking connections, ends the open ones, resolves when all are gone. */
  close(): Promise<void>
}

/**
 * Outgoing HTTP. Streams both ways; never follows redirects by itself. Fails with an `HttpFailure`; an abort closes the
 * connection and throws the signal's reason.
 */
export interface HttpClient {
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>
  /** Loads what the first request would wait for. */
  prepare?(): Promise<void>
}

export interface HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  readonly connectTimeoutMs: number
  /** Time until the response headers. */
  readonly firstByteTimeoutMs: number
  /** Longest silence between two pieces of the body. */
  readonly idleTimeoutMs: number
  /** Refuse addresses that are not public. Checks literals, every DNS answer and the connected peer. */
  readonly publicOnly?: boolean
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  /** Ending the iteration early closes the connection. */
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * `connect`: no connection (DNS, refused, TLS) · `connect-timeout`, `first-byte-timeout`, `idle-timeout`: as in the
 * request · `reset`: the connection ended before the answer did · `address-refused`: not public, see `publicOnly` ·
 * `invalid`: the request cannot be sent, or the answer is not HTTP.
 */
export type HttpFailureKind =
  | 'connect'
  | 'connect-timeout'
  | 'first-byte-timeout'
  | 'idle-timeout'
  | 'reset'
  | 'address-refused'
  | 'invalid'

/** What went wrong between us and the peer. Its message holds no header and no part of a body. */
export class HttpFailure extends Error {
  readonly kind: HttpFailureKind
  /** The system's code, `ECONNREFUSED`, `ENOTFOUND`, `CERT_HAS_EXPIRED` …, when there is one. */
  readonly code: string | undefined

  constructor(kind: HttpFailureKind, message: string, code?: string) {
    super(message)
    this.name = 'HttpFailure'
    this.kind = kind
    this.code = code
  }
}
