import { isIP, type Socket as NetSocket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { decodeUtf8 } from '../base/text.ts'
import { errnoOf } from '../base/files.ts'
import {
  SocketRefused,
  type DialOptions,
  type Socket,
  type SocketDialer,
  type SocketHandlers,
} from '../base/sockets.ts'
import type { ByteBudget } from './byte-budget.ts'

/** The same for both directions. No compression: it costs memory per connection, and our frames are small. */
export const WS_OPTIONS = {
  perMessageDeflate: false,
  /** Pongs to a peer that does not read would pile up; whether to answer is decided for each ping. */
  autoPong: false,
  /** How long a peer may take to answer our close frame before the connection is cut. */
  closeTimeout: 5_000,
}

/** What `ws` found wrong with the peer's bytes, as the close code it answers with. */
const CLOSE_CODE_OF_ERROR: Readonly<Record<string, number>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_INVALID_UTF8: 1007,
}

/** While less than this waits to be sent, pings are answered without asking. */
const PONG_WHILE_BELOW_BYTES = 64 * 1024

export interface WsSocketOptions {
  /** We dialled the peer: its binary frames are read as text. */
  readonly isDialled?: boolean
  /** What this and other sockets may hold of frames that have not arrived whole. */
  readonly unfinished?: ByteBudget
}

/**
 * An open `ws` WebSocket, and the stream it writes to, as our port. Reading starts with `listen`, so no frame can slip
 * past its handlers.
 */
export function toSocket(ws: WebSocket, stream: Duplex, options: WsSocketOptions = {}): Socket {
  return new WsSocket(ws, stream, options)
}

class WsSocket implements Socket {
  readonly #ws: WebSocket
  readonly #stream: Duplex
  #isGathering = false
  #handlers: SocketHandlers | undefined
  #paused = false
  /** We ended it: nothing that still arrives is of interest. */
  #ending = false
  /** `ws` emits every frame of a chunk it has already read, also after a pause; these wait for `resume`. */
  #held: string[] = []
  #closed: { readonly code: number; readonly reason: string } | undefined
  #faultCode: number | undefined
  readonly #isDialled: boolean

  constructor(ws: WebSocket, stream: Duplex, { isDialled = false, unfinished }: WsSocketOptions) {
    this.#ws = ws
    this.#stream = stream
    this.#isDialled = isDialled
    ws.pause()
    if (unfinished !== undefined) this.#countUnfinished(unfinished)
    ws.on('error', (error) => {
      const errno = errnoOf(error)
      if (errno?.startsWith('WS_ERR_')) this.#faultCode = CLOSE_CODE_OF_ERROR[errno] ?? 1002
    })
    ws.on('message', (data, isBinary) => this.#onMessage(data, isBinary))
    ws.on('pong', () => this.#handlers?.onPong())
    ws.on('ping', (payload) => this.#onPing(payload))
    ws.on('close', (code, reason) => {
      // `ws` reports 1006 when it was the one to find a fault; the code it sent to the peer says more.
      this.#closed = { code: code === 1006 ? (this.#faultCode ?? code) : code, reason: reason.toString() }
      this.#deliver()
    })
  }

  get bufferedBytes(): number {
    return this.#ws.bufferedAmount
  }

  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  send(text: string, when: 'now' | 'soon' = 'now'): Promise<void> {
    if (when === 'soon') this.#gather()
    const sending = new Promise<void>((resolve, reject) => {
      this.#ws.send(text, (error) => (error ? reject(error) : resolve()))
    })
    if (when === 'now') this.#release()
    return sending
  }

  ping(): void {
    if (this.isOpen) this.#ws.ping()
    this.#release()
  }

  pause(): void {
    this.#paused = true
    if (this.isOpen) this.#ws.pause()
  }

  resume(): void {
    this.#paused = false
    this.#deliver()
    if (this.#handlers !== undefined && !this.#paused) this.#ws.resume()
  }

  close(code: number, reason: string): void {
    this.#end()
    // A control frame holds 125 bytes, two of them for the code.
    this.#ws.close(code, cutToBytes(reason, 123))
    // A paused socket would never see the peer's answer to the close frame.
    this.#ws.resume()
  }

  terminate(): void {
    this.#end()
    this.#ws.terminate()
  }

  listen(handlers: SocketHandlers): void {
    if (this.#handlers !== undefined) throw new Error('a socket has one listener')
    this.#handlers = handlers
    if (!this.#paused) this.#ws.resume()
    if (this.#closed !== undefined) queueMicrotask(() => this.#deliver())
  }

  /** One system call for all of them: it costs more than the frame, here and at the peer. */
  #gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#stream.cork()
    setImmediate(() => this.#release())
  }

  #release(): void {
    if (!this.#isGathering) return
    this.#isGathering = false
    this.#stream.uncork()
  }

  #end(): void {
    this.#release()
    this.#ending = true
    this.#held = []
  }

  #onMessage(data: WebSocket.RawData, isBinary: boolean): void {
    if (this.#ending) return
    const text = isBinary ? this.#textOfBinary(data) : toText(data)
    if (text === undefined) return
    this.#held.push(text)
    this.#deliver()
  }

  #textOfBinary(data: WebSocket.RawData): string | undefined {
    if (!this.#isDialled) {
      this.close(1003, 'text frames only')
      return undefined
    }
    const text = decodeUtf8(toBytes(data))
    if (text === undefined) this.#handlers?.onUndecodable?.()
    return text
  }

  #onPing(payload: Buffer): void {
    if (this.#ending || !this.isOpen) return
    const isWanted = this.#handlers?.onPing?.() ?? this.bufferedBytes < PONG_WHILE_BELOW_BYTES
    if (isWanted && this.isOpen) this.#ws.pong(payload)
  }

  /**
   * Counts what arrives until a frame is whole; what goes beyond the budget ends this socket, because it is unknown how
   * much more of the frame would come.
   */
  #countUnfinished(budget: ByteBudget): void {
    let bytes = 0
    const settle = (): void => {
      budget.give(bytes)
      bytes = 0
    }
    // Before `ws` looks at the piece: a frame that it completes settles the count.
    this.#stream.prependListener('data', (piece: Buffer) => {
      if (this.#ending) return
      if (budget.take(piece.length)) bytes += piece.length
      else this.#giveUp()
    })
    for (const event of ['message', 'ping', 'pong', 'close']) this.#ws.on(event, settle)
  }

  #giveUp(): void {
    this.close(1013, 'too many unfinished frames')
    setImmediate(() => this.#ws.terminate())
  }

  /** A defect in what one frame sets off ends this connection, visibly, and no other. */
  #hand(handlers: SocketHandlers, text: string): void {
    try {
      handlers.onText(text)
    } catch {
      this.close(1011, 'internal error')
    }
  }

  #deliver(): void {
    const handlers = this.#handlers
    if (handlers === undefined) return
    while (this.#held.length > 0) {
      if (this.#paused) return
      this.#hand(handlers, this.#held.shift() ?? '')
    }
    if (this.#closed === undefined) return
    const { code, reason } = this.#closed
    this.#closed = undefined
    handlers.onClose(code, reason)
  }
}

function toText(data: WebSocket.RawData): string {
  return toBytes(data).toString('utf8')
}

function toBytes(data: WebSocket.RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}

function cutToBytes(text: string, maxBytes: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read)
}

export interface WsDialerOptions {
  /** Certificate authorities (PEM) to trust instead of the system's. */
  readonly ca?: string | readonly string[]
}

export function createWsDialer(dialer: WsDialerOptions = {}): SocketDialer {
  return {
    async dial(url, options, signal) {
      const ending = new AbortController()
      const onAbort = (): void => ending.abort(signal.reason)
      const deadline = setTimeout(
        () =>
          ending.abort(Object.assign(new Error(`no connection within ${options.timeoutMs} ms`), { code: 'ETIMEDOUT' })),
        options.timeoutMs,
      )
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        signal.throwIfAborted()
        const address = new URL(url)
        const secured = address.protocol === 'wss:' ? await secure(address, options, dialer, ending.signal) : undefined
        const { ws, stream } = await handshake(address, options, secured, ending.signal)
        return toSocket(ws, stream, { isDialled: true })
      } finally {
        clearTimeout(deadline)
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}

/** The TLS connection, checked before a single header (they carry signatures) is written to it. */
function secure(url: URL, options: DialOptions, dialer: WsDialerOptions, ending: AbortSignal): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
    const tls = options.tls ?? { verify: true }
    const servername = tls.servername ?? (isIP(host) === 0 ? host : '')
    const socket = connectTls({
      host,
      port: Number(url.port || 443),
      servername,
      rejectUnauthorized: tls.verify,
      ALPNProtocols: ['http/1.1'],
      ...(dialer.ca === undefined ? {} : { ca: typeof dialer.ca === 'string' ? dialer.ca : [...dialer.ca] }),
    })
    const settle = (finish: () => void): void => {
      ending.removeEventListener('abort', onAbort)
      finish()
    }
    const fail = (error: unknown): void => settle(() => (socket.destroy(), reject(error)))
    const onAbort = (): void => fail(ending.reason)
    ending.addEventListener('abort', onAbort, { once: true })
    socket.on('error', fail)
    socket.on('close', () => fail(new Error('the peer closed the connection during the TLS handshake')))
    socket.once('secureConnect', () => {
      try {
        const { fingerprint256, valid_from: from, valid_to: to } = socket.getPeerCertificate()
        tls.checkFingerprint?.(fingerprint256, { from: Date.parse(from), to: Date.parse(to) })
      } catch (error) {
        return fail(error)
      }
      settle(() => resolve(socket))
    })
  })
}

function handshake(
  url: URL,
  options: DialOptions,
  secured: NetSocket | undefined,
  ending: AbortSignal,
): Promise<{ readonly ws: WebSocket; readonly stream: Duplex }> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(url, {
      headers: { ...options.headers },
      maxPayload: options.maxFrameBytes,
      followRedirects: false,
      ...WS_OPTIONS,
      ...(secured === undefined ? {} : { createConnection: () => secured }),
    })
    const onAbort = (): void => {
      reject(ending.reason)
      ws.terminate()
    }
    ending.addEventListener('abort', onAbort, { once: true })
    const settled = (): void => ending.removeEventListener('abort', onAbort)
    // Stays for the socket's life: an error event without a listener would end the process.
    ws.on('error', (error) => {
      settled()
      reject(error)
    })
    ws.once('unexpected-response', (request, response) => {
      settled()
      const peerTime = Date.parse(response.headers.date ?? '')
      reject(new SocketRefused(response.statusCode ?? 0, Number.isNaN(peerTime) ? undefined : peerTime))
      request.destroy()
    })
    let stream: Duplex | undefined
    ws.once('upgrade', (response) => {
      stream = response.socket
    })
    ws.once('open', () => {
      settled()
      // Paused here, in the event itself, because the promise settles after the next chunk may have been read.
      ws.pause()
      if (stream === undefined) reject(new Error('opened without an upgrade'))
      else resolve({ ws, stream })
    })
  })
}
