import type { Clock, Timer } from '../../base/clock.ts'
import { deferred } from '../../base/async.ts'
import type { Socket } from '../../base/sockets.ts'
import type { Caller, DeliveryFate } from '../../core/inbound.ts'
import { Heartbeat, type HeartbeatOptions } from '../heartbeat.ts'
import { RateLimit } from '../rate-limit.ts'

export interface ConnectionLimits {
  readonly framesPerSecond: number
  readonly frameBurst: number
  /** Frames of one connection being worked on; beyond it the socket is no longer read. */
  readonly framesInWork: number
  readonly replyBufferBytes: number
  /** Replies written and not confirmed; beyond it the oldest are no longer waited for, only kept in the outbox. */
  readonly unconfirmed: number
  /** Shortest time between two progress frames of one message. */
  readonly progressEveryMs: number
}

export interface ConnectionOptions {
  readonly id: string
  readonly account: string
  readonly caller: Caller
  /** Progress frames for everything on this socket. */
  readonly stream: boolean
  readonly fromDashboard: boolean
  readonly clock: Clock
  readonly limits: ConnectionLimits
  readonly heartbeat: HeartbeatOptions
  /** This client is known to confirm what it gets. */
  readonly confirms?: boolean
  onFrame(connection: Connection, text: string): Promise<void>
  /** A frame beyond the rate: it is not handled, and its sender gets an error. */
  onRateLimited(connection: Connection, text: string): Promise<void>
  onClose(connection: Connection): void
}

const BUSY_TRY_LATER = 1013
/** So many refusals in a row, and the socket is not read for a while: saying no costs more than the flood that asks. */
const REFUSALS_BEFORE_PAUSE = 20
const FLOOD_PAUSE_MS = 100

/** The newest progress of one message; older text that was not sent in time is never sent. */
interface Progress {
  latest: MakeFrame | undefined
  timer: Timer | undefined
  /** A place in the outgoing order is taken; whatever is newest when it comes up is sent. */
  posted: boolean
}

type When = 'now' | 'soon'

/** Makes a frame when its turn has come; undefined when there is nothing to send any more. */
export type MakeFrame = () => Promise<string | undefined>

/** One client's socket: reads within its limits, writes within its buffer, knows which replies were confirmed. */
export class Connection {
  readonly id: string
  readonly account: string
  readonly caller: Caller
  readonly stream: boolean
  /** Binary frames that were no text, of a hub that we dialled. */
  malformedFrames = 0
  readonly fromDashboard: boolean
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #rate: RateLimit
  readonly #heartbeat: Heartbeat
  readonly #progress = new Map<string, Progress>()
  readonly #unconfirmed = new Set<number>()
  readonly #ended = deferred()
  #order: Promise<void> = Promise.resolve()
  #inWork = 0
  #refused = 0
  /** Reasons not to read right now. */
  #pauses = 0
  #floodPause: Timer | undefined
  #confirms: boolean
  #closed = false

  constructor(socket: Socket, options: ConnectionOptions) {
    this.id = options.id
    this.account = options.account
    this.caller = options.caller
    this.stream = options.stream
    this.fromDashboard = options.fromDashboard
    this.#socket = socket
    this.#options = options
    this.#confirms = options.confirms ?? false
    const { clock, limits, heartbeat } = options
    this.#rate = new RateLimit(clock, { perSecond: limits.framesPerSecond, burst: limits.frameBurst })
    this.#heartbeat = new Heartbeat(clock, socket, heartbeat)
  }

  get isOpen(): boolean {
    return !this.#closed && this.#socket.isOpen
  }

  /** Resolves when the socket is gone and the frames being worked on are done. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  listen(): void {
    this.#socket.listen({
      onText: (text) => this.#read(text),
      onPong: () => this.#heartbeat.sawLife(),
      onPing: () => this.#mayAnswerPing(),
      onUndecodable: () => {
        this.#heartbeat.sawLife()
        this.malformedFrames++
      },
      onClose: () => this.#onClose(),
    })
  }

  /**
   * Frames leave in the order of these calls, whatever their making has to wait for. Resolves when the frame is written:
   * false when it was not, because the socket is gone, or its reader so slow that we let it go. One that is written `soon`
   * shares a system call with the others of this turn of the event loop.
   */
  post(make: MakeFrame, when: When = 'now'): Promise<boolean> {
    const made = this.#order.then(make).catch(() => undefined)
    const written = made.then((frame) => (frame === undefined ? false : this.#write(frame, when)))
    this.#order = made.then(() => undefined)
    return written
  }

  send(frame: string): Promise<boolean> {
    return this.post(async () => frame)
  }

  /** Whether a reply with this number was written here and its confirmation may still come. */
  awaits(seq: number): boolean {
    return this.isOpen && this.#unconfirmed.has(seq)
  }

  get hasUnconfirmed(): boolean {
    return this.#unconfirmed.size > 0
  }

  /**
   * Sends a terminal frame. Delivered once written; for a client that confirms, the fate is unknown until it has.
   */
  async sendReply(frame: string, seq: number, messageId: string): Promise<DeliveryFate> {
    this.endProgress(messageId)
    if (!this.isOpen) return 'waiting'
    // Noted before the write: its confirmation may be read before the write is reported.
    if (this.#confirms) this.#expectConfirmation(seq)
    const written = await this.send(frame)
    return written && !this.#confirms ? 'delivered' : 'unknown'
  }

  confirm(seq: number): void {
    this.#confirms = true
    this.#unconfirmed.delete(seq)
  }

  /** Shows the newest state of an answer in the making. Never more often than the limit says, never to a full buffer. */
  showProgress(messageId: string, make: MakeFrame): void {
    const progress = this.#progress.get(messageId) ?? { latest: undefined, timer: undefined, posted: false }
    this.#progress.set(messageId, progress)
    progress.latest = make
    if (progress.timer === undefined) this.#postProgress(progress, 'now')
  }

  /** Puts out what is not shown yet, because something is about to follow it. */
  flushProgress(messageId: string): void {
    const progress = this.#progress.get(messageId)
    if (progress !== undefined) this.#postProgress(progress, 'soon')
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  terminate(): void {
    this.#socket.terminate()
  }

  #postProgress(progress: Progress, when: When): void {
    if (progress.posted || progress.latest === undefined) return
    progress.posted = true
    progress.timer?.cancel()
    progress.timer = this.#options.clock.after(this.#options.limits.progressEveryMs, () => {
      progress.timer = undefined
      this.#postProgress(progress, 'now')
    })
    void this.post(async () => {
      const { latest } = progress
      progress.posted = false
      progress.latest = undefined
      const hasRoom = this.#socket.bufferedBytes <= this.#options.limits.replyBufferBytes / 2
      return hasRoom ? latest?.() : undefined
    }, when)
  }

  /** The answer is there, here or elsewhere: nothing of it is shown any more. */
  endProgress(messageId: string): void {
    const progress = this.#progress.get(messageId)
    if (progress === undefined) return
    progress.latest = undefined
    progress.timer?.cancel()
    this.#progress.delete(messageId)
  }

  #expectConfirmation(seq: number): void {
    this.#unconfirmed.add(seq)
    if (this.#unconfirmed.size <= this.#options.limits.unconfirmed) return
    const [oldest] = this.#unconfirmed
    if (oldest !== undefined) this.#unconfirmed.delete(oldest)
  }

  async #write(frame: string, when: When): Promise<boolean> {
    if (!this.isOpen) return false
    if (this.#socket.bufferedBytes > this.#options.limits.replyBufferBytes) {
      this.close(BUSY_TRY_LATER, 'the client reads too slowly')
      return false
    }
    try {
      await this.#socket.send(frame, when)
      return true
    } catch {
      return false
    }
  }

  #read(text: string): void {
    this.#heartbeat.sawLife()
    const work = this.#rate.take() ? this.#accept(text) : this.#refuse(text)
    this.#inWork++
    if (this.#inWork === this.#options.limits.framesInWork) this.#pause()
    // A frame whose handling fails unforeseen (the journal is gone, for instance) must not be taken for handled.
    void work
      .catch(() => this.terminate())
      .finally(() => {
        this.#inWork--
        if (this.#inWork === this.#options.limits.framesInWork - 1) this.#resume()
        if (this.#closed && this.#inWork === 0) this.#ended.resolve()
      })
  }

  #accept(text: string): Promise<void> {
    this.#refused = 0
    return this.#options.onFrame(this, text)
  }

  /** A ping costs as much as a frame, and its answer waits in the same buffer as replies. */
  #mayAnswerPing(): boolean {
    this.#heartbeat.sawLife()
    if (!this.#rate.take()) {
      this.#countRefusal()
      return false
    }
    this.#refused = 0
    if (this.#socket.bufferedBytes <= this.#options.limits.replyBufferBytes) return true
    this.close(BUSY_TRY_LATER, 'the client reads too slowly')
    return false
  }

  #refuse(text: string): Promise<void> {
    this.#countRefusal()
    return this.#options.onRateLimited(this, text)
  }

  #countRefusal(): void {
    this.#refused++
    if (this.#refused >= REFUSALS_BEFORE_PAUSE && this.#floodPause === undefined) {
      this.#refused = 0
      this.#pause()
      this.#floodPause = this.#options.clock.after(FLOOD_PAUSE_MS, () => {
        this.#floodPause = undefined
        this.#resume()
      })
    }
  }

  #pause(): void {
    this.#pauses++
    if (this.#pauses === 1) this.#socket.pause()
  }

  #resume(): void {
    this.#pauses--
    if (this.#pauses === 0 && !this.#closed) this.#socket.resume()
  }

  #onClose(): void {
    this.#closed = true
    this.#heartbeat.stop()
    this.#floodPause?.cancel()
    for (const messageId of [...this.#progress.keys()]) this.endProgress(messageId)
    this.#options.onClose(this)
    if (this.#inWork === 0) this.#ended.resolve()
  }
}
