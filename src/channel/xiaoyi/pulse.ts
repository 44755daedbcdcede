import type { Clock } from '../../base/clock.ts'
import type { Intervals } from './settings.ts'
import { TimerSlot } from './timer-slot.ts'

export interface PulseActions {
  heartbeat(): void
  ping(): void
  /** Called once; the pulse has stopped. */
  dead(reason: string): void
}

type PulseIntervals = Pick<Intervals, 'heartbeatMs' | 'pingMs' | 'deadAfterMs' | 'confirmMs'>

/** Terminal frames one silent link can owe us; more are sent all the same, but not repeated. */
const MAX_UNCONFIRMED = 256

/**
 * Whether a connection is alive. Any frame or pong counts; the echo of the application heartbeat is never waited for,
 * because the service does not send it reliably. A terminal frame is followed by a ping: the pong proves that the peer
 * has read everything before it, since a socket keeps its order.
 */
export class Pulse {
  readonly #clock: Clock
  readonly #intervals: PulseIntervals
  readonly #actions: PulseActions
  readonly #heartbeat: TimerSlot
  readonly #ping: TimerSlot
  readonly #deadline: TimerSlot
  readonly #ask: TimerSlot
  readonly #confirm: TimerSlot
  #lastSeenAt: number | undefined
  #unconfirmed: string[] = []
  /** How many of the unconfirmed frames the ping under way covers. */
  #covered = 0
  #pongsSeen = false

  constructor(clock: Clock, intervals: PulseIntervals, actions: PulseActions) {
    this.#clock = clock
    this.#intervals = intervals
    this.#actions = actions
    this.#heartbeat = new TimerSlot(clock)
    this.#ping = new TimerSlot(clock)
    this.#deadline = new TimerSlot(clock)
    this.#ask = new TimerSlot(clock)
    this.#confirm = new TimerSlot(clock)
  }

  /** In monotonic time. */
  get lastSeenAt(): number | undefined {
    return this.#lastSeenAt
  }

  start(): void {
    this.#unconfirmed = []
    this.#covered = 0
    this.#pongsSeen = false
    this.#beat()
    this.#pingLater()
    this.seen()
    // At once, to learn whether this peer answers pings at all.
    this.#actions.ping()
  }

  stop(): void {
    for (const slot of [this.#heartbeat, this.#ping, this.#deadline, this.#ask, this.#confirm]) slot.cancel()
  }

  /** The deadline counts from the opening: a peer that never says anything dies too. */
  seen(): void {
    this.#lastSeenAt = this.#clock.monotonic()
    if (!this.#deadline.isSet) this.#watchDeadline(this.#intervals.deadAfterMs)
  }

  pong(): void {
    this.seen()
    this.#pongsSeen = true
    this.#confirm.cancel()
    this.#unconfirmed.splice(0, this.#covered)
    this.#covered = 0
    if (this.#unconfirmed.length > 0) this.#askSoon()
  }

  expectPongAfter(frame: string): void {
    if (this.#unconfirmed.length >= MAX_UNCONFIRMED) return
    this.#unconfirmed.push(frame)
    if (this.#covered === 0) this.#askSoon()
  }

  /** Terminal frames the peer has shown no sign of having read. */
  unconfirmed(): readonly string[] {
    // A peer that never answered a ping proves nothing by being silent.
    return this.#pongsSeen ? [...this.#unconfirmed] : []
  }

  /** Ends often come together, a task's and the answer to what ended it: one question, after them, serves them all. */
  #askSoon(): void {
    if (!this.#ask.isSet) this.#ask.set(0, () => this.#sendProbe())
  }

  #sendProbe(): void {
    this.#covered = this.#unconfirmed.length
    const askedAt = this.#clock.monotonic()
    this.#actions.ping()
    this.#confirm.set(this.#intervals.confirmMs, () => {
      const silentSince = (this.#lastSeenAt ?? 0) <= askedAt
      if (this.#pongsSeen && silentSince) this.#die('no sign of life after an answer')
    })
  }

  #watchDeadline(delayMs: number): void {
    // One timer per silence instead of one per frame: it looks again when it fires.
    this.#deadline.set(delayMs, () => {
      const leftMs = (this.#lastSeenAt ?? 0) + this.#intervals.deadAfterMs - this.#clock.monotonic()
      if (leftMs > 0) this.#watchDeadline(leftMs)
      else this.#die('no sign of life')
    })
  }

  #beat(): void {
    this.#heartbeat.set(this.#intervals.heartbeatMs, () => {
      this.#actions.heartbeat()
      this.#beat()
    })
  }

  #pingLater(): void {
    this.#ping.set(this.#intervals.pingMs, () => {
      this.#actions.ping()
      this.#pingLater()
    })
  }

  #die(reason: string): void {
    this.stop()
    this.#actions.dead(reason)
  }
}
