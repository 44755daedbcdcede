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
  readonly maxFrameBytes: number
  /** PEM texts; with them the same port speaks HTTPS and WSS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** TCP connections beyond this are dropped without an answer. */
  readonly maxConnections?: number
  /** Time for a request to arrive whole, headers and body. */
  readonly requestTimeoutMs?: number
  /** Time `close` leaves to open connections to end by themselves. */
  readonly closeGraceMs?: number
  /** The body has been read whole and is within its limit. The request's signal aborts when the client goes away. */
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

export interface HttpListener {
  readonly port: number
  /** Stops taking connections, ends the open ones, resolves when all are gone. */
  close(): Promise<void>
}

/**
 * Outgoing HTTP. Streams both ways; never follows redirects by itself. Fails with an `HttpFailure`; an abort closes the
 * connection and throws the signal's reason.
 */
export interface HttpClient {
  request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>
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
