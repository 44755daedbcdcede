import { signal } from '@preact/signals'
import { api, query } from './api.ts'

export type FeedState = 'connecting' | 'open' | 'waiting'

type Listener = (data: never) => void

const EVENTS = ['session', 'turn', 'status', 'link', 'log', 'reset'] as const
export type FeedEvent = (typeof EVENTS)[number]

/** The gateway sends a status at least this often; a longer silence means a dead socket (a laptop that slept). */
const SILENCE_MS = 25_000
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 15_000
/** A stream that does not open for so long is asked for on a dead connection of the browser's pool. */
const OPENING_MS = 4_000
const RESYNC_EVERY_MS = 2_000

/** The one event stream of this tab. It reconnects by itself and goes on after the last event it saw. */
class Feed {
  readonly state = signal<FeedState>('connecting')
  readonly retryAt = signal(0)
  /** Counts how often the connection was dead without a close: others of this page are dead too. */
  readonly revived = signal(0)
  readonly #listeners = new Map<FeedEvent, Set<Listener>>()
  #source: EventSource | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #lastId: string | undefined
  #heardAt = 0
  #resyncedAt = 0
  #session: string | undefined
  #logs = false

  start(): void {
    this.#connect()
    setInterval(() => this.#checkSilence(), 2_000)
    for (const name of ['online', 'focus', 'pageshow'] as const) window.addEventListener(name, () => this.#wake())
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.#wake()
    })
  }

  on(event: FeedEvent, listener: Listener): () => void {
    const known = this.#listeners.get(event) ?? new Set()
    known.add(listener)
    this.#listeners.set(event, known)
    return () => known.delete(listener)
  }

  /** Deltas come only for the conversation that is open. */
  watch(session: string | undefined): void {
    if (session === this.#session) return
    this.#session = session
    if (this.#source !== undefined) this.#connect()
  }

  includeLogs(wanted: boolean): void {
    if (wanted === this.#logs) return
    this.#logs = wanted
    if (this.#source !== undefined) this.#connect()
  }

  /** Text was lost on the way: a new stream begins with all of it. At most one per pause. */
  resync(): void {
    if (Date.now() - this.#resyncedAt < RESYNC_EVERY_MS) return
    this.#resyncedAt = Date.now()
    if (this.state.value === 'open') this.#connect()
  }

  reconnectNow(): void {
    this.#failures = 0
    this.#connect()
  }

  #connect(): void {
    clearTimeout(this.#timer)
    this.#source?.close()
    this.state.value = 'connecting'
    const address = `/api/events${query({ session: this.#session, since: this.#lastId, logs: this.#logs })}`
    const source = new EventSource(address)
    this.#source = source
    this.#heardAt = Date.now()
    source.onopen = () => {
      if (source !== this.#source) return
      this.#failures = 0
      this.#heardAt = Date.now()
      this.state.value = 'open'
    }
    source.onerror = () => {
      if (source !== this.#source) return
      this.#retryLater()
      // A stream does not say why it was refused: where a cookie is over, this asks for the token.
      void api.get('/api/me').catch(() => undefined)
    }
    for (const name of EVENTS) source.addEventListener(name, (event) => this.#take(name, event as MessageEvent<string>))
  }

  #take(name: FeedEvent, event: MessageEvent<string>): void {
    this.#heardAt = Date.now()
    if (event.lastEventId !== '') this.#lastId = event.lastEventId
    const data = JSON.parse(event.data) as never
    for (const listener of this.#listeners.get(name) ?? []) listener(data)
  }

  #retryLater(): void {
    this.#source?.close()
    this.#source = undefined
    const pause = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#failures++, 10))
    this.state.value = 'waiting'
    this.retryAt.value = Date.now() + pause
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#connect(), pause)
  }

  #checkSilence(): void {
    const silence = Date.now() - this.#heardAt
    const isDead = this.state.value === 'open' ? silence > SILENCE_MS : silence > OPENING_MS
    if (this.state.value === 'waiting' || !isDead) return
    this.revived.value++
    this.#connect()
  }

  #wake(): void {
    if (this.state.value === 'waiting') this.reconnectNow()
    else this.#checkSilence()
  }
}

export const feed = new Feed()
