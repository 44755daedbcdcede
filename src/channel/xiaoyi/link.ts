import { backoffDelay, stampOf, type Clock } from '../../base/clock.ts'
import { deferred } from '../../base/async.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { type DialOptions, type Socket, type SocketDialer, type Validity, SocketRefused } from '../../base/sockets.ts'
import { GatewayError } from '../../core/errors.ts'
import { describeDialError } from '../dial-error.ts'
import { DIAL_HINTS } from './errors.ts'
import { encodeHeartbeat, encodeInit } from './frames.ts'
import { Pulse } from './pulse.ts'
import type { XiaoyiSettings } from './settings.ts'
import { handshakeHeaders } from './sign.ts'
import { TimerSlot } from './timer-slot.ts'

export type LinkState = 'stopped' | 'connecting' | 'open' | 'waiting' | 'resting' | 'refused'

export interface LinkDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly dialer: SocketDialer
  readonly log: Log
  readonly settings: XiaoyiSettings
  /** Throws to refuse; called before any signed header leaves. */
  readonly checkFingerprint: (link: Link, fingerprint: string, validity: Validity) => void
}

export interface LinkEvents {
  onText(link: Link, text: string): void
  /** A binary frame that is no text. */
  onUndecodable(link: Link): void
  onOpen(link: Link): void
  /** `lost` are terminal frames that the peer has shown no sign of having read. */
  onDown(link: Link, lost: readonly string[]): void
  /** A try to connect failed; `lastError` says why. */
  onFailed?(link: Link): void
  /** Open connections were ended by the service, politely and soon, several times in a row. */
  onFlapping(link: Link): void
  /** For the history that people read: called after every change. */
  onChanged?(link: Link, change: LinkChange): void
}

export interface LinkChange {
  readonly what: 'connecting' | 'open' | 'down' | 'failed' | 'refused' | 'resting' | 'slowed' | 'stopped'
  readonly reason?: string
  /** When it tries again by itself. */
  readonly nextInMs?: number
}

/** A connection younger than this that is closed with 1000 was evicted by another one. */
const SHORT_LIFE_MS = 10_000
const FLAPPING = { closes: 3, withinMs: 30_000 }
const CLOSE_GRACE_MS = 2_000
/** Delays lie between 0.8 and 1.2 of their nominal value. */
const JITTER = 0.2

/** One server: one socket at a time, its heartbeat, its way back. Independent of every other link. */
export class Link {
  readonly index: number
  readonly url: string
  readonly #deps: LinkDeps
  readonly #events: LinkEvents
  readonly #retry: TimerSlot
  readonly #stable: TimerSlot
  readonly #pulse: Pulse
  #state: LinkState = 'stopped'
  #socket: Socket | undefined
  /** Resolves when the socket given up last has really ended. */
  #ended: Promise<void> = Promise.resolve()
  #socketEnded: () => void = () => {}
  #dialing: AbortController | undefined
  /** Counts connections. A frame or close of an older one is ignored. */
  #epoch = 0
  #attempts = 0
  #openedAt = 0
  #changedAt: number
  #evictions: number[] = []
  #minDelayMs = 0
  #lastError: string | undefined

  constructor(index: number, deps: LinkDeps, events: LinkEvents) {
    this.index = index
    this.url = serverOf(deps.settings, index).url
    this.#deps = deps
    this.#events = events
    this.#changedAt = deps.clock.monotonic()
    this.#retry = new TimerSlot(deps.clock)
    this.#stable = new TimerSlot(deps.clock)
    this.#pulse = new Pulse(deps.clock, deps.settings, {
      heartbeat: () => this.#write(encodeHeartbeat(deps.settings.agentId, deps.clock.now())),
      ping: () => this.#socket?.ping(),
      dead: (reason) => this.#dead(reason),
    })
  }

  get state(): LinkState {
    return this.#state
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get lastError(): string | undefined {
    return this.#lastError
  }

  /** Changes with every connection: what was sent on another one may be lost. */
  get epoch(): number {
    return this.#epoch
  }

  /** When it last opened or went down, in monotonic time. */
  get changedAt(): number {
    return this.#changedAt
  }

  /** True when too much is unsent for previews to make sense. */
  get isCongested(): boolean {
    return (this.#socket?.bufferedBytes ?? 0) > this.#deps.settings.limits.maxBufferedBytes
  }

  start(): void {
    if (this.#state === 'stopped') this.#connect()
  }

  /** Tries at once, whatever it was waiting for: after a new configuration or a newly trusted certificate. */
  retryNow(): void {
    if (this.#state === 'waiting' || this.#state === 'refused' || this.#state === 'resting') this.#connect()
  }

  /** A new connection at once, also in place of one that is open; a link that is stopped stays so. */
  reconnect(): void {
    if (!this.isOpen) return this.retryNow()
    const socket = this.#socket
    const lost = this.#pulse.unconfirmed()
    this.#forgetSocket()
    const epoch = ++this.#epoch
    this.#state = 'waiting'
    if (socket !== undefined) this.#closeOrTerminate(socket)
    this.#noteChange('down', 'a new connection was asked for')
    this.#events.onDown(this, lost)
    // One socket at a time: the service would count the old one as a second instance.
    void this.#ended.then(() => {
      if (epoch === this.#epoch) this.#connect()
    })
  }

  /** Stays away for a while; another instance seems to use the same agent id. */
  rest(): void {
    this.#lastError = 'closed by the service again and again: another instance may be connected with this agent id'
    this.#leave('resting')
    this.#retry.set(this.#deps.settings.backoff.slowMs, () => this.#connect())
    this.#noteChange('resting', this.#lastError)
  }

  /** Keeps trying, but not sooner than `delayMs` each time, until a connection proves stable. */
  slowDown(delayMs: number): void {
    this.#minDelayMs = delayMs
    this.#lastError = 'closed by the service again and again: another instance may be connected with this agent id'
    if (this.#state === 'waiting') this.#retry.set(this.#spread(delayMs), () => this.#connect())
    this.#noteChange('slowed', this.#lastError)
  }

  /** Resolves when the socket is gone. */
  stop(): Promise<void> {
    const wasStopped = this.#state === 'stopped'
    this.#leave('stopped')
    if (!wasStopped) this.#noteChange('stopped')
    return this.#ended
  }

  /** Fire and forget: a preview that is lost is made good by the frame after it. */
  write(text: string): void {
    this.#write(text)
  }

  /** For what many tasks have to say in the same moment. */
  writeSoon(text: string): void {
    this.#write(text, 'soon')
  }

  /**
   * A terminal frame. Resolves when it was handed to the system; a peer that then shows no sign of life is given up,
   * and the frame comes back through `onDown`.
   */
  async writeTerminal(text: string): Promise<void> {
    const socket = this.#socket
    if (socket === undefined || !this.isOpen) throw new GatewayError('XIAOYI_LINK_DOWN', 'the link is down')
    const epoch = this.#epoch
    await socket.send(text)
    if (epoch === this.#epoch) this.#pulse.expectPongAfter(text)
  }

  status(): JsonObject {
    const { clock } = this.#deps
    const { lastSeenAt } = this.#pulse
    const nextTryInMs = this.#retry.remainingMs
    return {
      url: withoutQuery(this.url),
      state: this.#state,
      attempts: this.#attempts,
      lastError: this.#lastError ?? null,
      since: stampOf(clock, this.#changedAt),
      lastSeenAt: lastSeenAt === undefined ? null : stampOf(clock, lastSeenAt),
      nextTryInSeconds: nextTryInMs === undefined ? null : Math.ceil(nextTryInMs / 1000),
      nextInMs: nextTryInMs === undefined ? null : Math.ceil(nextTryInMs),
    }
  }

  #connect(): void {
    const { dialer, settings, clock, log } = this.#deps
    const epoch = ++this.#epoch
    const dialing = new AbortController()
    this.#retry.cancel()
    this.#dialing = dialing
    this.#state = 'connecting'
    log.debug('XiaoYi link connects', { link: this.index, attempt: this.#attempts + 1 })
    this.#noteChange('connecting')
    const headers = handshakeHeaders(settings, settings.agentId, clock.now())
    dialer.dial(this.url, { ...this.#dialOptions(), headers }, dialing.signal).then(
      (socket) => this.#opened(socket, epoch),
      (error: unknown) => this.#failed(error, epoch),
    )
  }

  #dialOptions(): DialOptions {
    const { settings } = this.#deps
    const { tls, servername } = serverOf(settings, this.index)
    const base = { maxFrameBytes: settings.limits.maxFrameBytes, timeoutMs: settings.dialTimeoutMs }
    if (tls === 'plain') return base
    return {
      ...base,
      tls: {
        verify: tls === 'verify',
        ...(servername === undefined ? {} : { servername }),
        ...(tls === 'pin'
          ? { checkFingerprint: (seen, validity) => this.#deps.checkFingerprint(this, seen, validity) }
          : {}),
      },
    }
  }

  #opened(socket: Socket, epoch: number): void {
    if (epoch !== this.#epoch) return socket.terminate()
    this.#dialing = undefined
    this.#socket = socket
    this.#state = 'open'
    this.#openedAt = this.#deps.clock.monotonic()
    this.#changedAt = this.#openedAt
    const ended = deferred()
    this.#ended = ended.promise
    this.#socketEnded = () => ended.resolve()
    socket.listen({
      onText: (text) => this.#current(epoch, () => this.#received(text)),
      onPong: () => this.#current(epoch, () => this.#pulse.pong()),
      onUndecodable: () => this.#current(epoch, () => this.#undecodable()),
      onClose: (code) => {
        ended.resolve()
        this.#current(epoch, () => this.#closed(code))
      },
    })
    this.#write(encodeInit(this.#deps.settings.agentId))
    this.#pulse.start()
    this.#stable.set(this.#deps.settings.backoff.stableMs, () => this.#proveStable())
    this.#deps.log.info('XiaoYi link is open', { link: this.index, url: withoutQuery(this.url) })
    this.#noteChange('open')
    this.#events.onOpen(this)
  }

  #received(text: string): void {
    this.#pulse.seen()
    this.#events.onText(this, text)
  }

  #undecodable(): void {
    this.#pulse.seen()
    this.#events.onUndecodable(this)
  }

  #proveStable(): void {
    this.#attempts = 0
    this.#minDelayMs = 0
    this.#lastError = undefined
  }

  #closed(code: number): void {
    const now = this.#deps.clock.monotonic()
    const evicted = code === 1000 && now - this.#openedAt < SHORT_LIFE_MS
    // Had the service read an end before it closed, its pong would have come first. It ignores what follows the end of
    // a task, so an end sent twice costs nothing, and one that is lost leaves a phone waiting.
    this.#down(`closed with ${code}`, this.#pulse.unconfirmed())
    if (!evicted) return
    this.#evictions = [...this.#evictions.filter((at) => now - at <= FLAPPING.withinMs), now]
    if (this.#evictions.length < FLAPPING.closes) return
    this.#evictions = []
    this.#events.onFlapping(this)
  }

  #dead(reason: string): void {
    const socket = this.#socket
    const lost = this.#pulse.unconfirmed()
    this.#down(reason, lost)
    // Not close(): its handshake would wait half a minute for a peer that is gone.
    socket?.terminate()
  }

  #down(reason: string, lost: readonly string[]): void {
    this.#forgetSocket()
    this.#lastError = reason
    this.#deps.log.warn('XiaoYi link is down', { link: this.index, url: withoutQuery(this.url), reason })
    this.#waitForRetry()
    this.#noteChange('down', reason)
    this.#events.onDown(this, lost)
  }

  #failed(error: unknown, epoch: number): void {
    if (epoch !== this.#epoch) return
    this.#dialing = undefined
    this.#lastError = describeDialError(error, this.url, DIAL_HINTS, this.#deps.clock.now())
    const refused = isRefusal(error)
    this.#deps.log.warn('XiaoYi link could not connect', { link: this.index, reason: this.#lastError })
    this.#events.onFailed?.(this)
    if (refused) {
      this.#attempts++
      this.#state = 'refused'
      this.#retry.set(this.#deps.settings.backoff.slowMs, () => this.#connect())
    } else {
      this.#waitForRetry()
      // It may be a captive portal's, gone in a minute; nothing signed is sent before it was checked.
      if (error instanceof GatewayError && error.code === 'XIAOYI_CERTIFICATE_CHANGED') this.#state = 'refused'
    }
    this.#noteChange(this.#state === 'refused' ? 'refused' : 'failed', this.#lastError)
  }

  #noteChange(what: LinkChange['what'], reason?: string): void {
    const nextInMs = this.#retry.remainingMs
    this.#events.onChanged?.(this, {
      what,
      ...(reason === undefined ? {} : { reason }),
      ...(nextInMs === undefined ? {} : { nextInMs: Math.ceil(nextInMs) }),
    })
  }

  #waitForRetry(): void {
    const { backoff } = this.#deps.settings
    const doubling = { firstMs: backoff.firstMs, maxMs: backoff.maxMs, jitter: JITTER }
    const delayMs =
      this.#attempts >= backoff.attempts
        ? this.#spread(backoff.slowMs)
        : backoffDelay(this.#attempts, doubling, this.#deps.ids)
    this.#attempts++
    this.#state = 'waiting'
    this.#retry.set(Math.max(delayMs, this.#minDelayMs), () => this.#connect())
  }

  #spread(delayMs: number): number {
    return backoffDelay(0, { firstMs: delayMs, maxMs: delayMs, jitter: JITTER }, this.#deps.ids)
  }

  #leave(state: 'stopped' | 'resting'): void {
    const socket = this.#socket
    const wasOpen = this.isOpen
    this.#forgetSocket()
    this.#epoch++
    this.#state = state
    if (socket !== undefined) this.#closeOrTerminate(socket)
    if (wasOpen) this.#events.onDown(this, [])
  }

  #closeOrTerminate(socket: Socket): void {
    const ended = this.#socketEnded
    if (!socket.isOpen) return ended()
    const grace = this.#deps.clock.after(CLOSE_GRACE_MS, () => {
      socket.terminate()
      ended()
    })
    void this.#ended.then(() => grace.cancel())
    socket.close(1000, '')
  }

  #forgetSocket(): void {
    this.#dialing?.abort(new GatewayError('XIAOYI_LINK_DOWN', 'the link was stopped'))
    this.#dialing = undefined
    this.#socket = undefined
    this.#changedAt = this.#deps.clock.monotonic()
    this.#retry.cancel()
    this.#stable.cancel()
    this.#pulse.stop()
  }

  #current(epoch: number, action: () => void): void {
    if (epoch === this.#epoch && this.isOpen) action()
  }

  #write(text: string, when: 'now' | 'soon' = 'now'): void {
    this.#socket?.send(text, when).catch(() => {
      // The close that follows is what is acted upon.
    })
  }
}

function serverOf(settings: XiaoyiSettings, index: number): XiaoyiSettings['servers'][number] {
  const server = settings.servers[index]
  if (server === undefined) throw new GatewayError('INTERNAL', 'there is no such XiaoYi server', { index })
  return server
}

/** Waiting helps little against these: the configuration has to change. */
function isRefusal(error: unknown): boolean {
  return error instanceof SocketRefused && (error.status === 401 || error.status === 403)
}

export function withoutQuery(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? ''
}
