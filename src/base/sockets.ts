/**
 * One WebSocket connection of texts. A peer that we dialled may send its text as binary frames, which some services do; a
 * client that dialled us may not. Handlers are set once, before the first frame is read.
 */
export interface Socket {
  readonly bufferedBytes: number
  readonly isOpen: boolean
  /**
   * Resolves when the frame has been handed to the operating system; rejects when the socket is gone. `soon` lets it
   * wait for more that is sent in the same turn of the event loop, to leave together; the order stays.
   */
  send(text: string, when?: 'now' | 'soon'): Promise<void>
  ping(): void
  /** Stop reading; the peer feels it as back-pressure. */
  pause(): void
  resume(): void
  /** Polite close with the closing handshake. */
  close(code: number, reason: string): void
  /** Immediate end, for peers that no longer answer. */
  terminate(): void
  listen(handlers: SocketHandlers): void
}

export interface SocketHandlers {
  onText(text: string): void
  onPong(): void
  /** Whether the ping is to be answered. Without it every one is, as long as little waits to be sent. */
  onPing?(): boolean
  /** A binary frame that is not UTF-8 text, on a socket that we dialled; it is dropped and the socket stays. */
  onUndecodable?(): void
  /** Exactly once. 1006 when there was no closing handshake. */
  onClose(code: number, reason: string): void
}

export interface SocketDialer {
  /** Rejects with a `SocketRefused` when the peer answers the handshake with an HTTP status. */
  dial(url: string, options: DialOptions, signal: AbortSignal): Promise<Socket>
}

export interface DialOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly maxFrameBytes: number
  readonly timeoutMs: number
  readonly tls?: {
    readonly verify: boolean
    readonly servername?: string
    /** Called with the peer's SHA-256 fingerprint before any header is sent; throwing refuses the connection. */
    readonly checkFingerprint?: (fingerprint: string, validity: Validity) => void
  }
}

/** When a certificate counts, in Unix ms. */
export interface Validity {
  readonly from: number
  readonly to: number
}

export class SocketRefused extends Error {
  readonly status: number
  /** The peer's `Date` header in Unix ms, to recognise a clock that is off. */
  readonly peerTime: number | undefined
  constructor(status: number, peerTime?: number) {
    super(`the peer refused the connection with status ${status}`)
    this.name = 'SocketRefused'
    this.status = status
    this.peerTime = peerTime
  }
}
