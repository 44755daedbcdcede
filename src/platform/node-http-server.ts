import { createServer, STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket as NetSocket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { HttpListener, HttpServers, ListenOptions, Peer, UpgradeDecision } from '../base/http.ts'
import { BodyTooLarge, declaresTooMuch, readBody } from './http-body.ts'
import { endResponse, writeResponse } from './http-response.ts'
import { toSocket, WS_OPTIONS } from './ws-sockets.ts'

const DEFAULT_MAX_CONNECTIONS = 10_000
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000
const DEFAULT_CLOSE_GRACE_MS = 1_000

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
  #closing: Promise<void> | undefined

  constructor(options: ListenOptions) {
    this.#options = options
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
    const { maxBodyBytes } = this.#options
    if (declaresTooMuch(incoming, maxBodyBytes)) return this.#refuseBody(incoming, outgoing)
    if (expectsContinue) outgoing.writeContinue()
    const gone = new AbortController()
    outgoing.once('close', () => gone.abort())
    try {
      const body = await readBody(incoming, maxBodyBytes)
      const request = toRequest(incoming, url, body, gone.signal)
      await writeResponse(outgoing, await this.#options.handle(request, peerOf(incoming)))
    } catch (error) {
      if (error instanceof BodyTooLarge) return this.#refuseBody(incoming, outgoing)
      if (outgoing.headersSent) outgoing.destroy()
      else endResponse(outgoing, 500, 'internal error')
    }
  }

  /**
   * The rest of the body is read and thrown away for a while: closing at once would reset the connection, and a client
   * that is still sending would never see the answer.
   */
  #refuseBody(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { maxBodyBytes, closeGraceMs = DEFAULT_CLOSE_GRACE_MS } = this.#options
    let discarded = 0
    incoming.on('data', (chunk: Buffer) => {
      discarded += chunk.length
      if (discarded > 8 * Math.max(maxBodyBytes, 64 * 1024)) incoming.socket.destroy()
    })
    const timer = setTimeout(() => incoming.socket.destroy(), closeGraceMs)
    incoming.once('close', () => clearTimeout(timer))
    endResponse(outgoing, 413, `the body is larger than ${maxBodyBytes} bytes`)
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until `ws` takes over nobody else listens, and an unheard error would end the process.
    const ignore = (): void => undefined
    socket.on('error', ignore)
    const decision = this.#decide(incoming)
    if (!decision.accept) return refuse(socket, decision)
    this.#webSockets.handleUpgrade(incoming, socket, head, (ws) => {
      socket.off('error', ignore)
      // Handed over first: it attaches the error listener.
      const port = toSocket(ws, socket)
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

function toRequest(incoming: IncomingMessage, url: URL, body: Uint8Array | undefined, signal: AbortSignal): Request {
  return new Request(url, {
    method: incoming.method ?? 'GET',
    headers: headersOf(incoming),
    signal,
    ...(body === undefined ? {} : { body }),
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
