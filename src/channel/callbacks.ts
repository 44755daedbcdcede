import { backoffDelay, type Clock, type Timer } from '../base/clock.ts'
import { FetchRefused } from '../base/fetch-policy.ts'
import { guardedFetch } from '../base/guarded-fetch.ts'
import type { HttpClient } from '../base/http.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'

export interface CallbackOptions {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Hosts of this machine or network that may be called; every public one may. */
  readonly privateHosts: readonly string[]
  readonly limits: CallbackLimits
  /** It was taken: 2xx. */
  onDelivered(id: string): void
}

export interface CallbackLimits {
  /** Being sent at the same time; the others wait for their turn. */
  readonly atOnce: number
  /** Reasons of failures that are remembered for those who look at the run. */
  readonly failures: number
}

export interface CallbackJob {
  /** A newer job of the same id takes the older one's place. */
  readonly id: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** How long after its answer it is still tried, from now on. */
  readonly forMs: number
}

const BACKOFF = { firstMs: 2_000, maxMs: 600_000, jitter: 0 }
const TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 16 * 1024

/** What the address itself is to blame for: trying again cannot help. */
const FINAL = new Set(['invalid-url', 'scheme', 'credentials', 'port', 'address', 'host'])

interface Pending {
  readonly job: CallbackJob
  readonly until: number
  attempts: number
  timer: Timer | undefined
  /** Takes its place when the attempt under way has ended. */
  next: CallbackJob | undefined
  isUnderway: boolean
}

/** Answers on their way to the addresses their senders named: tried until they are taken, or their time has passed. */
export class Callbacks {
  readonly #options: CallbackOptions
  readonly #pending = new Map<string, Pending>()
  readonly #ready: Pending[] = []
  readonly #failures = new Map<string, string>()
  readonly #underway = new Set<Promise<void>>()
  readonly #stop = new AbortController()

  constructor(options: CallbackOptions) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  send(job: CallbackJob): void {
    if (this.#stop.signal.aborted) return
    const older = this.#pending.get(job.id)
    if (older?.isUnderway === true) {
      older.next = job
      return
    }
    if (older !== undefined) this.#drop(older)
    this.#begin(job)
  }

  /** What is not under way yet is not sent any more. */
  cancel(id: string): void {
    const pending = this.#pending.get(id)
    if (pending === undefined) return
    pending.next = undefined
    if (!pending.isUnderway) this.#drop(pending)
  }

  /** Why the latest attempt failed, or why there will be no other. */
  failureOf(id: string): string | undefined {
    return this.#failures.get(id)
  }

  isPending(id: string): boolean {
    return this.#pending.has(id)
  }

  /** Ends attempts under way; what was not taken is tried again after the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    for (const { timer } of this.#pending.values()) timer?.cancel()
    this.#ready.length = 0
    while (this.#underway.size > 0) await Promise.all(this.#underway)
  }

  #begin(job: CallbackJob): void {
    const until = this.#options.clock.monotonic() + job.forMs
    const pending = { job, until, attempts: 0, timer: undefined, next: undefined, isUnderway: false }
    this.#pending.set(job.id, pending)
    this.#enter(pending)
  }

  #drop(pending: Pending): void {
    pending.timer?.cancel()
    const waiting = this.#ready.indexOf(pending)
    if (waiting >= 0) this.#ready.splice(waiting, 1)
    this.#pending.delete(pending.job.id)
  }

  #enter(pending: Pending): void {
    this.#ready.push(pending)
    this.#next()
  }

  #next(): void {
    while (this.#underway.size < this.#options.limits.atOnce) {
      const pending = this.#ready.shift()
      if (pending === undefined) return
      const attempt: Promise<void> = this.#attempt(pending).finally(() => {
        this.#underway.delete(attempt)
        this.#next()
      })
      this.#underway.add(attempt)
    }
  }

  async #attempt(pending: Pending): Promise<void> {
    pending.attempts++
    pending.isUnderway = true
    const refusal = await this.#post(pending.job)
    pending.isUnderway = false
    if (this.#stop.signal.aborted) return
    if (pending.next !== undefined) {
      this.#pending.delete(pending.job.id)
      return this.#begin(pending.next)
    }
    if (refusal === undefined) this.#taken(pending)
    else if (refusal.isFinal) this.#giveUp(pending, refusal.reason)
    else this.#tryLater(pending, refusal.reason)
  }

  #taken({ job }: Pending): void {
    this.#pending.delete(job.id)
    this.#failures.delete(job.id)
    this.#options.onDelivered(job.id)
  }

  /** Undefined when it was taken. */
  async #post({ url, headers, body }: CallbackJob): Promise<Refusal | undefined> {
    const { http, clock, privateHosts } = this.#options
    const request = {
      clock,
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
      privateHosts,
      maxRedirects: 0,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
      oversize: 'cut',
    } as const
    try {
      const { status } = await guardedFetch(http, url, request, this.#stop.signal)
      const isTaken = status >= 200 && status <= 299
      return isTaken ? undefined : { reason: `the server answered ${status}`, isFinal: false }
    } catch (thrown) {
      const refusal = thrown instanceof FetchRefused ? thrown : undefined
      const isFinal = refusal !== undefined && FINAL.has(refusal.reason)
      return { reason: refusal?.message ?? 'the request failed', isFinal }
    }
  }

  #tryLater(pending: Pending, reason: string): void {
    const { clock, ids } = this.#options
    const delayMs = backoffDelay(pending.attempts - 1, BACKOFF, ids)
    if (clock.monotonic() + delayMs > pending.until) return this.#giveUp(pending, reason)
    this.#remember(pending.job.id, reason)
    pending.timer = clock.after(delayMs, () => this.#enter(pending))
  }

  #giveUp({ job, attempts }: Pending, reason: string): void {
    this.#pending.delete(job.id)
    this.#remember(job.id, reason)
    this.#options.log.warn('a callback was given up', { callback: job.id, attempts, reason })
  }

  #remember(id: string, reason: string): void {
    this.#failures.delete(id)
    this.#failures.set(id, reason)
    const [oldest] = this.#failures.size > this.#options.limits.failures ? this.#failures.keys() : []
    if (oldest !== undefined) this.#failures.delete(oldest)
  }
}

interface Refusal {
  readonly reason: string
  /** Trying again cannot help. */
  readonly isFinal: boolean
}
