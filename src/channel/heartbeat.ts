import type { Clock, Timer } from '../base/clock.ts'
import type { Socket } from '../base/sockets.ts'

export interface HeartbeatOptions {
  readonly pingMs: number
  /** Without any sign of life for this long the peer counts as dead. Armed from the start, not from the first pong. */
  readonly deadAfterMs: number
}

/** Pings a socket and terminates it when nothing comes back; a half-open connection has no other end. */
export class Heartbeat {
  readonly #clock: Clock
  readonly #socket: Socket
  readonly #options: HeartbeatOptions
  #lastSign: number
  #timer: Timer | undefined

  constructor(clock: Clock, socket: Socket, options: HeartbeatOptions) {
    this.#clock = clock
    this.#socket = socket
    this.#options = options
    this.#lastSign = clock.monotonic()
    this.#arm()
  }

  /** Any frame or pong. */
  sawLife(): void {
    this.#lastSign = this.#clock.monotonic()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = this.#clock.after(this.#options.pingMs, () => {
      if (this.#clock.monotonic() - this.#lastSign >= this.#options.deadAfterMs) return this.#socket.terminate()
      this.#socket.ping()
      this.#arm()
    })
  }
}
