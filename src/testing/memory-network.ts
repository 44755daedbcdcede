import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/async.ts'
import {
  BodyRefused,
  HttpFailure,
  type HttpClient,
  type HttpListener,
  type HttpRequest,
  type HttpResponse,
  type HttpServers,
  type ListenOptions,
  type UpgradeRequest,
} from '../base/http.ts'
import { type DialOptions, type Socket, type SocketDialer, type Validity, SocketRefused } from '../base/sockets.ts'
import { type LinkedSocket, linkedSockets } from './linked-sockets.ts'

interface Host {
  readonly options: ListenOptions
  readonly open: Set<Connection>
}

/** Both ends of one dialled connection, for tests that cut, slow or silence it. */
export interface Connection {
  readonly url: string
  readonly client: LinkedSocket
  readonly server: LinkedSocket
}

/**
 * Servers, sockets and HTTP in one process, without ports: what `listen` serves, `dial` and `request` reach under
 * `host:port`. A host that is down refuses like a closed port.
 */
export class MemoryNetwork implements HttpServers, SocketDialer, HttpClient {
  /** The certificate every TLS listener shows. */
  fingerprint = 'AA:'.repeat(31) + 'AA'
  validity: Validity = { from: 0, to: Number.MAX_SAFE_INTEGER }
  /** How long frames of connections opened from now on travel, each way. */
  latencyMs = 0
  /** How far the servers' clocks are ahead of ours, as their refusals tell. */
  peerClockOffsetMs = 0
  /** How many connections were tried, refused ones included: a reconnect storm shows here. */
  readonly attempts: { readonly url: string; readonly at: number }[] = []
  readonly #clock: Clock
  readonly #hosts = new Map<string, Host>()
  readonly #down = new Set<string>()
  #nextPort = 40_000

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Connections that are still open, oldest first. */
  connections(host?: string): readonly Connection[] {
    return [...this.#hosts].flatMap(([name, { open }]) => (host === undefined || host === name ? [...open] : []))
  }

  /** `host:port` refuses new connections until `bringUp`; open ones are not touched. */
  takeDown(host: string): void {
    this.#down.add(host)
  }

  bringUp(host: string): void {
    this.#down.delete(host)
  }

  async listen(options: ListenOptions): Promise<HttpListener> {
    const port = options.port === 0 ? this.#nextPort++ : options.port
    const name = `${options.host}:${port}`
    if (this.#hosts.has(name)) throw Object.assign(new Error(`EADDRINUSE: ${name}`), { code: 'EADDRINUSE' })
    const host: Host = { options, open: new Set() }
    this.#hosts.set(name, host)
    return {
      port,
      held: () => ({
        bodies: 0,
        unfinished: 0,
        unsent: [...host.open].reduce((sum, { server }) => sum + server.bufferedBytes, 0),
      }),
      close: async () => {
        this.#hosts.delete(name)
        for (const connection of host.open) connection.server.close(1001, 'the server stops')
      },
    }
  }

  async dial(url: string, options: DialOptions, signal: AbortSignal): Promise<Socket> {
    this.attempts.push({ url, at: this.#clock.now() })
    const host = this.#reach(url)
    signal.throwIfAborted()
    if (url.startsWith('wss:')) options.tls?.checkFingerprint?.(this.fingerprint, this.validity)
    const decision = host.options.upgrade(upgradeRequest(url, options))
    if (!decision.accept) throw new SocketRefused(decision.status, this.#clock.now() + this.peerClockOffsetMs)
    const [client, server] = linkedSockets({ clock: this.#clock })
    client.delayMs = this.latencyMs
    server.delayMs = this.latencyMs
    const connection: Connection = { url, client, server }
    host.open.add(connection)
    decision.opened(watched(server, () => host.open.delete(connection)))
    return client
  }

  async request(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    signal.throwIfAborted()
    const host = this.#reach(request.url)
    const response = await host.options.handle(
      new Request(request.url, {
        method: request.method,
        headers: request.headers,
        ...(request.body === undefined ? {} : bodyWithin(Buffer.from(request.body), host.options.maxBodyBytes)),
        signal,
      }),
      { address: '127.0.0.1' },
    )
    return { status: response.status, headers: response.headers, body: bodyOf(response, signal) }
  }

  #reach(url: string): Host {
    const { hostname, port, protocol } = new URL(url)
    const standard = protocol === 'wss:' || protocol === 'https:' ? '443' : '80'
    const name = `${hostname}:${port === '' ? standard : port}`
    const host = this.#down.has(name) ? undefined : this.#hosts.get(name)
    if (host === undefined) throw new HttpFailure('connect', `nothing listens at ${name}`, 'ECONNREFUSED')
    return host
  }
}

function bodyWithin(bytes: Buffer<ArrayBuffer>, maxBytes: number): RequestInit {
  if (bytes.length <= maxBytes) return { body: bytes }
  const refusal = new BodyRefused(413, `the body is larger than ${maxBytes} bytes`)
  return { body: new ReadableStream({ pull: (controller) => controller.error(refusal) }), duplex: 'half' }
}

function upgradeRequest(url: string, options: DialOptions): UpgradeRequest {
  return { url: new URL(url), headers: new Headers(options.headers), peer: { address: '127.0.0.1' } }
}

/** The same socket, telling us as well when it ends. */
function watched(socket: LinkedSocket, ended: () => void): Socket {
  const listen = socket.listen.bind(socket)
  socket.listen = (handlers) =>
    listen({
      onText: (text) => handlers.onText(text),
      onPong: () => handlers.onPong(),
      ...(handlers.onPing === undefined ? {} : { onPing: () => handlers.onPing?.() ?? true }),
      onUndecodable: () => handlers.onUndecodable?.(),
      onClose: (code, reason) => {
        ended()
        handlers.onClose(code, reason)
      },
    })
  return socket
}

/** Ends with the signal, as a real connection does; ending the iteration early closes it too. */
async function* bodyOf(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (response.body === null) return
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  const aborted = deferred<never>()
  aborted.promise.catch(() => {})
  const onAbort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const { done, value } = await Promise.race([readPiece(reader), aborted.promise])
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    reader.cancel().catch(() => {})
  }
}

async function readPiece(reader: ReadableStreamDefaultReader<Uint8Array>): ReturnType<typeof reader.read> {
  try {
    return await reader.read()
  } catch {
    throw new HttpFailure('reset', 'the connection ended before the answer did')
  }
}
