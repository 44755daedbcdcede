import type { Clock } from '../../base/clock.ts'
import type { JsonObject } from '../../base/json.ts'
import type { LinkChange, LinkDeps } from './link.ts'
import { Link } from './link.ts'
import type { XiaoyiSettings } from './settings.ts'
import { TimerSlot } from './timer-slot.ts'

export interface LinksEvents {
  onText(link: Link, text: string): void
  /** A binary frame that is no text. */
  onUndecodable(link: Link): void
  /** A link opened, or tasks of a lost link may now use another one: whatever waits should try again. */
  onRoutes(): void
  onOpen?(link: Link): void
  onDown?(link: Link): void
  onFailed?(link: Link): void
  onChanged?(link: Link, change: LinkChange): void
}

interface HeldFrame {
  readonly preferred: number
  readonly text: string
  readonly expiresAt: number
}

/** When one link must stay although it flaps, it comes back no sooner than this. */
const FLAPPING_DELAY_MS = 60_000

/** All links of one agent: which of them should be up, and which of them takes a frame. */
export class Links {
  readonly #links: readonly Link[]
  readonly #settings: XiaoyiSettings
  readonly #clock: Clock
  readonly #events: LinksEvents
  readonly #reroute: TimerSlot
  readonly #standby: TimerSlot
  #held: HeldFrame[] = []
  #dropped = 0
  #running = false

  constructor(deps: LinkDeps, events: LinksEvents) {
    this.#settings = deps.settings
    this.#clock = deps.clock
    this.#events = events
    this.#reroute = new TimerSlot(deps.clock)
    this.#standby = new TimerSlot(deps.clock)
    const linkEvents = {
      onText: (link: Link, text: string) => events.onText(link, text),
      onUndecodable: (link: Link) => events.onUndecodable(link),
      onOpen: (link: Link) => {
        this.#changed()
        events.onOpen?.(link)
      },
      onDown: (link: Link, lost: readonly string[]) => {
        this.#wentDown(link, lost)
        events.onDown?.(link)
      },
      onFailed: (link: Link) => events.onFailed?.(link),
      onFlapping: (link: Link) => this.#handleFlapping(link),
      onChanged: (link: Link, change: LinkChange) => events.onChanged?.(link, change),
    }
    const used = deps.settings.links === 'primary-only' ? 1 : deps.settings.servers.length
    this.#links = Array.from({ length: used }, (_, index) => new Link(index, deps, linkEvents))
  }

  get anyOpen(): boolean {
    return this.#links.some((link) => link.isOpen)
  }

  indexOf(url: string): number | undefined {
    const index = this.#links.findIndex((link) => link.url === url)
    return index < 0 ? undefined : index
  }

  start(): void {
    this.#running = true
    for (const link of this.#settings.links === 'dual' ? this.#links : this.#links.slice(0, 1)) link.start()
    this.#superviseStandby()
  }

  retryNow(): void {
    for (const link of this.#links) link.retryNow()
  }

  /** How many links that makes; those that are stopped on purpose are not counted. */
  reconnect(): number {
    const used = this.#links.filter((link) => link.state !== 'stopped')
    for (const link of used) link.reconnect()
    return used.length
  }

  async stop(): Promise<void> {
    this.#running = false
    this.#reroute.cancel()
    this.#standby.cancel()
    this.#held = []
    await Promise.all(this.#links.map((link) => link.stop()))
  }

  /**
   * The link a frame goes to: the one its task came from; when that is down for longer than `rerouteAfterMs`, or was
   * given up on purpose, another, best the one its session last spoke on. Undefined: hold it.
   */
  route(preferred: number, sessionLink?: number): Link | undefined {
    const own = this.#links[preferred]
    if (own?.isOpen === true) return own
    const open = this.#links.filter((link) => link.isOpen)
    const other = open.find((link) => link.index === sessionLink) ?? open[0]
    if (own === undefined || own.state === 'stopped' || own.state === 'resting') return other
    const downForMs = this.#clock.monotonic() - own.changedAt
    return downForMs >= this.#settings.rerouteAfterMs ? other : undefined
  }

  /** Sends a frame that is not stored: control answers and the ends of tasks that were never accepted. */
  post(preferred: number, text: string): void {
    const link = this.route(preferred)
    if (link === undefined) return this.#hold(preferred, text)
    link.writeTerminal(text).catch(() => this.#hold(preferred, text))
  }

  #hold(preferred: number, text: string): void {
    if (!this.#running) return
    const { maxHeldFrames, heldFrameTtlMs } = this.#settings.limits
    this.#held.push({ preferred, text, expiresAt: this.#clock.monotonic() + heldFrameTtlMs })
    if (this.#held.length <= maxHeldFrames) return
    this.#held.shift()
    this.#dropped++
  }

  status(): JsonObject {
    const resting = this.#links.some((link) => link.state === 'resting')
    return {
      links: this.#links.map((link) => link.status()),
      mode: this.#settings.links,
      degraded: resting,
      heldFrames: this.#held.length,
      droppedFrames: this.#dropped,
    }
  }

  #wentDown(link: Link, lost: readonly string[]): void {
    for (const text of lost) this.post(link.index, text)
    this.#watchReroute()
    this.#superviseStandby()
    if (link.state === 'stopped' || link.state === 'resting') this.#changed()
  }

  /** Looks again at the moment a link has been down for long enough that its tasks may leave it. */
  #watchReroute(): void {
    const { rerouteAfterMs } = this.#settings
    const left = this.#links.flatMap((link) => (link.isOpen ? [] : [this.#left(link, rerouteAfterMs)]))
    const next = Math.min(...left.filter((ms) => ms > 0))
    if (!this.#running || !Number.isFinite(next)) return
    this.#reroute.set(next, () => {
      this.#changed()
      this.#watchReroute()
    })
  }

  #changed(): void {
    if (!this.#running) return
    this.#flushHeld()
    this.#superviseStandby()
    this.#events.onRoutes()
  }

  #flushHeld(): void {
    const now = this.#clock.monotonic()
    const held = this.#held
    this.#held = []
    for (const frame of held) {
      if (frame.expiresAt <= now) this.#dropped++
      else if (this.route(frame.preferred) === undefined) this.#held.push(frame)
      else this.post(frame.preferred, frame.text)
    }
  }

  /** Two links that evict each other deliver nothing: one link stays, the one that flaps rests. The first never rests alone. */
  #handleFlapping(link: Link): void {
    const others = this.#links.filter((other) => other !== link)
    if (others.some((other) => other.state !== 'resting' && other.state !== 'stopped')) return link.rest()
    if (link.index === 0) return link.slowDown(FLAPPING_DELAY_MS)
    link.rest()
    this.#links[0]?.retryNow()
    this.#links[0]?.slowDown(FLAPPING_DELAY_MS)
  }

  /** `failover`: a later link runs while all earlier ones are down, and until one of them has proved stable. */
  #superviseStandby(): void {
    if (!this.#running || this.#settings.links !== 'failover') return
    const { rerouteAfterMs, failbackAfterMs } = this.#settings
    let nextLookMs = Number.POSITIVE_INFINITY
    this.#links.forEach((link, index) => {
      const earlier = this.#links.slice(0, index)
      if (earlier.length === 0) return
      const downLeft = Math.max(
        ...earlier.map((other) => (other.isOpen ? Infinity : this.#left(other, rerouteAfterMs))),
      )
      const stableLeft = Math.min(
        ...earlier.map((other) => (other.isOpen ? this.#left(other, failbackAfterMs) : Infinity)),
      )
      if (link.state === 'stopped' && downLeft <= 0) link.start()
      else if (link.state !== 'stopped' && stableLeft <= 0) void link.stop()
      else nextLookMs = Math.min(nextLookMs, link.state === 'stopped' ? downLeft : stableLeft)
    })
    if (Number.isFinite(nextLookMs)) this.#standby.set(nextLookMs, () => this.#superviseStandby())
  }

  #left(link: Link, durationMs: number): number {
    return link.changedAt + durationMs - this.#clock.monotonic()
  }
}
