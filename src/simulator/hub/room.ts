import type { Socket } from '../../base/sockets.ts'

/** What a peer is to a room. */
export type HubRole = 'bridge' | 'client'

/** The bounds of one room. */
export interface RoomLimits {
  /** Frames of the bridge kept for a client that is not there yet; the oldest go first. */
  readonly heldFrames: number
  readonly heldBytes: number
  /** Bytes waiting for a slow reader before it is let go. */
  readonly bufferBytes: number
}

const REPLACED = 4001
const BUSY_TRY_LATER = 1013

/** Everybody under one uid: one bridge, any number of clients. Frames cross from one side to the other, never back. */
export class Room {
  readonly #limits: RoomLimits
  readonly #clients = new Set<Socket>()
  #bridge: Socket | undefined
  #held: string[] = []
  #heldBytes = 0
  #dropped = 0

  constructor(limits: RoomLimits) {
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#bridge === undefined && this.#clients.size === 0 && this.#held.length === 0
  }

  get connections(): number {
    return this.#clients.size + (this.#bridge === undefined ? 0 : 1)
  }

  /** Frames without a receiver that were too many to keep. */
  get dropped(): number {
    return this.#dropped
  }

  enter(role: HubRole, socket: Socket): void {
    if (role === 'client') {
      this.#clients.add(socket)
      const held = this.#held
      this.#held = []
      this.#heldBytes = 0
      for (const text of held) this.#send(socket, text)
      return
    }
    // The one that came last is the one that lives: the older may be half-open and will never say so.
    this.#bridge?.close(REPLACED, 'another bridge connected under this uid')
    this.#bridge = socket
  }

  leave(role: HubRole, socket: Socket): void {
    if (role === 'client') this.#clients.delete(socket)
    else if (this.#bridge === socket) this.#bridge = undefined
  }

  /** False when the other side has no connection and the frame is lost. */
  relay(from: HubRole, text: string): boolean {
    if (from === 'client') {
      if (this.#bridge?.isOpen !== true) return false
      this.#send(this.#bridge, text)
      return true
    }
    const present = [...this.#clients].filter((socket) => socket.isOpen)
    for (const socket of present) this.#send(socket, text)
    if (present.length === 0) this.#hold(text)
    return true
  }

  #hold(text: string): void {
    this.#held.push(text)
    this.#heldBytes += text.length
    while (this.#held.length > this.#limits.heldFrames || this.#heldBytes > this.#limits.heldBytes) {
      this.#heldBytes -= this.#held.shift()?.length ?? 0
      this.#dropped++
    }
  }

  #send(socket: Socket, text: string): void {
    if (!socket.isOpen) return
    if (socket.bufferedBytes > this.#limits.bufferBytes) {
      socket.close(BUSY_TRY_LATER, 'reads too slowly')
      return
    }
    socket.send(text).catch(() => undefined)
  }
}
