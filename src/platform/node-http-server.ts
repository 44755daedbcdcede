import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket as NetSocket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import {
  BodyRefused,
  type HeldBytes,
  type HttpListener,
  type HttpServers,
  type ListenOptions,
  type Peer,
  type UpgradeDecision,
} from '../base/http.ts'
import { ByteBudget } from './byte-budget.ts'
import { hasBody, LazyBody } from './http-body.ts'
import { endResponse, writeResponse } from './http-response.ts'
import { toSocket, WS_OPTIONS } from './ws-sockets.ts'

const DEFAULT_MAX_CONNECTIONS = 10_000
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000
const DEFAULT_CLOSE_GRACE_MS = 1_000
const DEFAULT_MAX_HELD_BYTES = 64 * 1024 * 1024

/** HTTP and WebSocket servers of Node. */
export const nodeHttpServers: HttpServers = {
  async listen(options) {
    const listener = new NodeHttpListener(options)
    await listener.open()
    return listener
  },
}

class NodeHttpListener implements HttpListener {
  readonly #options: ListenOptions
  readonly #server: Server
  readonly #webSockets: WebSocketServer
  readonly #connections = new Set<NetSocket>()
  readonly #bodies: ByteBudget
  readonly #unfinished: ByteBudget
  #closing: Promise<void> | undefined

  constructor(options: ListenOptions) {
    this.#options = options
    this.#bodies = new ByteBudget(options.maxBodiesBytes ?? DEFAULT_MAX_HELD_BYTES)
    this.#unfinished = new ByteBudget(options.maxUnfinishedBytes ?? DEFAULT_MAX_HELD_BYTES)
    this.#server = options.tls === undefined ? createServer() : createSecureServer({ ...options.tls })
    this.#server.maxConnections = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS
    this.#server.requestTimeout = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS
    this.#server.headersTimeout = this.#server.requestTimeout
    this.#webSockets = new WebSocketServer({ noServer: true, maxPayload: options.maxFrameBytes, ...WS_OPTIONS })
    this.#server.on('connection', (socket) => this.#track(socket))
    this.#server.on('request', (request, response) => void this.#answer(request, response, false))
    this.#server.on('checkContinue', (request, response) => void this.#answer(request, response, true))
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.port
  }

  held(): HeldBytes {
    let unsent = 0
    for (const client of this.#webSockets.clients) unsent += client.bufferedAmount
    return { bodies: this.#bodies.held, unfinished: this.#unfinished.held, unsent }
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host: this.#options.host, port: this.#options.port }, () => {
        this.#server.off('error', reject)
        // Later errors (EMFILE on accept) concern one connection; the server goes on.
        this.#server.on('error', () => undefined)
        resolve()
      })
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    for (const client of this.#webSockets.clients) client.close(1001, 'the server is going away')
    const grace = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, this.#options.closeGraceMs ?? DEFAULT_CLOSE_GRACE_MS)
    await closed
    clearTimeout(grace)
  }

  #track(socket: NetSocket): void {
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse, expectsContinue: boolean): Promise<void> {
    const url = urlOf(incoming, this.#options.tls !== undefined)
    if (url === undefined) return endResponse(outgoing, 400, 'malformed request target')
    if (incoming.method === 'TRACE' || incoming.method === 'TRACK') return endResponse(outgoing, 405, 'not supported')
    const gone = new AbortController()
    outgoing.once('close', () => gone.abort())
    const body = hasBody(incoming) ? this.#bodyOf(incoming, outgoing, { url, expectsContinue }) : undefined
    try {
      const request = toRequest(incoming, url, body?.stream, gone.signal)
      const response = await this.#options.handle(request, peerOf(incoming))
      await this.#discardRest(incoming, outgoing, expectsContinue && body?.isStarted !== true)
      await writeResponse(outgoing, response)
    } catch (error) {
      if (outgoing.headersSent) return void outgoing.destroy()
      await this.#discardRest(incoming, outgoing, expectsContinue && body?.isStarted !== true)
      if (error instanceof BodyRefused) endResponse(outgoing, error.status, error.message)
      else endResponse(outgoing, 500, 'internal error')
    } finally {
      body?.release()
    }
  }

  #bodyOf(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    { url, expectsContinue }: { readonly url: URL; readonly expectsContinue: boolean },
  ): LazyBody {
    return new LazyBody(incoming, {
      maxBytes: this.#options.bodyLimitAt?.(url.pathname) ?? this.#options.maxBodyBytes,
      budget: this.#bodies,
      onStart: () => {
        if (expectsContinue) outgoing.writeContinue()
      },
    })
  }

  /**
   * What the handler did not want of the body is read and thrown away, for a while, before the answer is written:
   * answering and closing at once would reset the connection, and a client that is still sending would never see the
   * answer. One that waits for leave to send gets its answer at once.
   */
  async #discardRest(incoming: IncomingMessage, outgoing: ServerResponse, isWaiting: boolean): Promise<void> {
    if (incoming.complete) return
    outgoing.setHeader('connection', 'close')
    const { maxBodyBytes, closeGraceMs = DEFAULT_CLOSE_GRACE_MS } = this.#options
    if (!isWaiting) await discard(incoming, { maxBytes: 8 * Math.max(maxBodyBytes, 64 * 1024), maxMs: closeGraceMs })
    outgoing.once('finish', () => incoming.socket.destroySoon())
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until `ws` takes over there is no other listener, and an unhandled error would end the process.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    const decision = this.#decide(incoming)
    if (!decision.accept) return refuse(socket, decision)
    this.#webSockets.handleUpgrade(incoming, socket, head, (ws) => {
      socket.off('error', ignore)
      // Handed over first: it attaches the error listener.
      const port = toSocket(ws, socket, { unfinished: this.#unfinished })
      try {
        decision.opened(port)
      } catch {
        port.close(1011, 'internal error')
      }
    })
  }

  #decide(incoming: IncomingMessage): UpgradeDecision {
    if (this.#closing !== undefined) return { accept: false, status: 503, body: 'shutting down' }
    const url = urlOf(incoming, this.#options.tls !== undefined)
    if (url === undefined) return { accept: false, status: 400, body: 'malformed request target' }
    if (incoming.headers.upgrade?.toLowerCase() !== 'websocket') {
      return { accept: false, status: 400, body: 'the only upgrade is to websocket' }
    }
    try {
      return this.#options.upgrade({ url, headers: headersOf(incoming), peer: peerOf(incoming) })
    } catch {
      return { accept: false, status: 500, body: 'internal error' }
    }
  }
}

/** Resolves when the body has ended, or was too much or too slow to wait for. */
function discard(
  incoming: IncomingMessage,
  limits: { readonly maxBytes: number; readonly maxMs: number },
): Promise<void> {
  return new Promise((resolve) => {
    let discarded = 0
    const timer = setTimeout(resolve, limits.maxMs)
    const done = (): void => {
      clearTimeout(timer)
      resolve()
    }
    incoming.on('data', (chunk: Buffer) => {
      discarded += chunk.length
      if (discarded > limits.maxBytes) done()
    })
    incoming.once('end', done)
    incoming.once('close', done)
    incoming.resume()
  })
}

/**
 * The Host header is the client's word: only its plain forms are let into a URL, and the path is appended to it as it
 * came, so that `//other.example/x` stays a path.
 */
function urlOf(incoming: IncomingMessage, secure: boolean): URL | undefined {
  const host = incoming.headers.host ?? 'localhost'
  const target = incoming.url ?? ''
  if (!target.startsWith('/') || !/^[\w.-]+(:\d+)?$|^\[[\da-fA-F:.]+\](:\d+)?$/.test(host)) return undefined
  try {
    return new URL(`${secure ? 'https' : 'http'}://${host}${target}`)
  } catch {
    return undefined
  }
}

function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  for (let index = 0; index + 1 < incoming.rawHeaders.length; index += 2) {
    headers.append(incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? '')
  }
  return headers
}

function toRequest(
  incoming: IncomingMessage,
  url: URL,
  body: ReadableStream | undefined,
  signal: AbortSignal,
): Request {
  return new Request(url, {
    method: incoming.method ?? 'GET',
    headers: headersOf(incoming),
    signal,
    ...(body === undefined ? {} : { body, duplex: 'half' as const }),
  })
}

/** A dual-stack socket reports IPv4 peers as `::ffff:…`; checks for loopback want the plain form. */
function peerOf(incoming: IncomingMessage): Peer {
  return { address: (incoming.socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '') }
}

function refuse(socket: Duplex, decision: Extract<UpgradeDecision, { accept: false }>): void {
  const headers = {
    connection: 'close',
    'content-type': decision.body.startsWith('{') ? 'application/json' : 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(decision.body)),
    ...decision.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const status = `HTTP/1.1 ${decision.status} ${STATUS_CODES[decision.status] ?? ''}\r\n`
  socket.once('finish', () => socket.destroy())
  socket.end(`${status}${lines.join('')}\r\n${decision.body}`)
}
