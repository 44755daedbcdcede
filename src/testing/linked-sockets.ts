import type { Clock, Timer } from '../base/clock.ts'
import { decodeUtf8 } from '../base/text.ts'
import type { Socket, SocketHandlers } from '../base/sockets.ts'

/** How the two ends behave. */
export interface LinkedSocketOptions {
  /** Needed for delays and for the time limit of the closing handshake. */
  readonly clock?: Clock
  /** Bytes that `send` takes at once while the peer does not read, like the kernel's buffers. */
  readonly kernelBytes?: number
  /** How long a polite close waits for a silent peer. */
  readonly closeTimeoutMs?: number
}

type Parcel =
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number; readonly done: () => void }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'ping' }
  | { readonly kind: 'pong' }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }

/** Two ends of one connection in memory. What one sends the other receives, in order and never within the same call. */
export function linkedSockets(options: LinkedSocketOptions = {}): readonly [LinkedSocket, LinkedSocket] {
  const left = new LinkedSocket(options)
  const right = new LinkedSocket(options)
  left.connect(right)
  right.connect(left)
  return [left, right]
}

/**
 * A `Socket` with the troubles of a real one. Switches belong to the end that sends: `delayMs` slows its frames down,
 * `silent` lets them vanish (a half-open connection, when both ends are silent).
 */
export class LinkedSocket implements Socket {
  delayMs = 0
  silent = false
  /** Every text this end handed to `send`, delivered or not. */
  readonly sent: string[] = []

  readonly #options: LinkedSocketOptions
  readonly #outgoing: Parcel[] = []
  readonly #early: Parcel[] = []
  readonly #timers = new Set<Timer>()
  #closeTimer: Timer | undefined
  #peer!: LinkedSocket
  #handlers: SocketHandlers | undefined
  #state: 'open' | 'closing' | 'closed' = 'open'
  #paused = false
  #pumping = false
  #buffered = 0
  #waiting: { readonly bytes: number; readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []

  constructor(options: LinkedSocketOptions) {
    this.#options = options
  }

  /** Done once by `linkedSockets`. */
  connect(peer: LinkedSocket): void {
    this.#peer = peer
  }

  get bufferedBytes(): number {
    return this.#buffered
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  send(text: string): Promise<void> {
    if (!this.isOpen) return Promise.reject(new Error('the socket is closed'))
    this.sent.push(text)
    if (this.silent) return Promise.resolve()
    const bytes = Buffer.byteLength(text)
    this.#buffered += bytes
    this.#post({ kind: 'text', text, bytes, done: () => this.#release(bytes) })
    if (this.#buffered <= (this.#options.kernelBytes ?? 65_536)) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiting.push({ bytes, resolve, reject }))
  }

  /** A binary frame: text to a peer that reads it so. */
  sendBytes(bytes: Uint8Array): void {
    if (this.isOpen && !this.silent) this.#post({ kind: 'bytes', bytes })
  }

  ping(): void {
    if (this.isOpen && !this.silent) this.#post({ kind: 'ping' })
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#peer.#pump()
  }

  close(code: number, reason: string): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    if (!this.silent) this.#post({ kind: 'close', code, reason })
    // Reading goes on, or the peer's answer to the close would never be seen.
    this.resume()
    const { clock, closeTimeoutMs = 30_000 } = this.#options
    // Giving up on the answer takes nothing back: what is in the peer's buffers, our close among it, is still read.
    this.#closeTimer = clock?.after(closeTimeoutMs, () => this.#end(1006, '', 'keep-sent'))
  }

  terminate(): void {
    if (this.#state === 'closed') return
    if (!this.silent) queueMicrotask(() => this.#peer.#end(1006, ''))
    queueMicrotask(() => this.#end(1006, ''))
  }

  /** The cable is pulled: both ends learn it at once, frames under way are lost. */
  cut(): void {
    this.#end(1006, '')
    this.#peer.#end(1006, '')
  }

  /** From here on both directions swallow everything, and neither end notices. */
  goHalfOpen(): void {
    this.silent = true
    this.#peer.silent = true
  }

  listen(handlers: SocketHandlers): void {
    this.#handlers = handlers
    if (this.#early.length > 0) queueMicrotask(() => this.#early.splice(0).forEach((parcel) => this.#handle(parcel)))
  }

  #post(parcel: Parcel): void {
    const { clock } = this.#options
    if (this.delayMs > 0 && clock !== undefined) {
      this.#after(clock, this.delayMs, () => this.#enqueue(parcel))
    } else {
      this.#enqueue(parcel)
    }
  }

  #enqueue(parcel: Parcel): void {
    this.#outgoing.push(parcel)
    this.#pump()
  }

  #pump(): void {
    if (this.#pumping || this.#outgoing.length === 0) return
    this.#pumping = true
    queueMicrotask(() => {
      this.#pumping = false
      if (this.#peer.#paused) return
      const parcel = this.#outgoing.shift()
      if (parcel !== undefined) this.#peer.#receive(parcel)
      if (parcel?.kind === 'text') parcel.done()
      this.#pump()
    })
  }

  #receive(parcel: Parcel): void {
    if (this.#state === 'closed') return
    // Behind what came before there was a listener, and is about to be handed to it.
    if (this.#handlers === undefined || this.#early.length > 0) this.#early.push(parcel)
    else this.#handle(parcel)
  }

  #handle(parcel: Parcel): void {
    if (this.#state === 'closed' || this.#handlers === undefined) return
    if (parcel.kind === 'text') {
      if (this.isOpen) this.#handlers.onText(parcel.text)
    } else if (parcel.kind === 'bytes') this.#handleBytes(parcel.bytes, this.#handlers)
    else if (parcel.kind === 'pong') this.#handlers.onPong()
    else if (parcel.kind === 'ping') {
      if (!this.silent && (this.#handlers.onPing?.() ?? true)) this.#post({ kind: 'pong' })
    } else this.#answerClose(parcel.code, parcel.reason)
  }

  #handleBytes(bytes: Uint8Array, handlers: SocketHandlers): void {
    const text = decodeUtf8(Buffer.from(bytes))
    if (text === undefined) handlers.onUndecodable?.()
    else if (this.isOpen) handlers.onText(text)
  }

  #answerClose(code: number, reason: string): void {
    // The end that began to close hears its own code back: that is the closing handshake.
    if (this.#state === 'open' && !this.silent) this.#post({ kind: 'close', code, reason })
    this.#end(code, reason)
  }

  #release(bytes: number): void {
    this.#buffered -= bytes
    while (this.#waiting.length > 0 && this.#buffered <= (this.#options.kernelBytes ?? 65_536)) {
      this.#waiting.shift()?.resolve()
    }
  }

  #end(code: number, reason: string, sent: 'keep-sent' | 'lose-sent' = 'lose-sent'): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#closeTimer?.cancel()
    // After a closing handshake what was sent before it still arrives; a broken connection takes everything with it.
    if (code === 1006 && sent === 'lose-sent') {
      for (const timer of this.#timers) timer.cancel()
      this.#timers.clear()
      this.#outgoing.length = 0
    }
    for (const waiting of this.#waiting.splice(0)) waiting.reject(new Error('the socket was closed'))
    this.#handlers?.onClose(code, reason)
  }

  #after(clock: Clock, delayMs: number, action: () => void): void {
    const timer = clock.after(delayMs, () => {
      this.#timers.delete(timer)
      action()
    })
    this.#timers.add(timer)
  }
}
