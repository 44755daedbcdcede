import { createHmac } from 'node:crypto'
import { backoffDelay } from '../../base/backoff.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { FetchRefused } from '../../base/fetch-policy.ts'
import { guardedFetch } from '../../base/guarded-fetch.ts'
import type { HttpClient } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { RunId } from '../../core/ids.ts'
import type { Callback } from './codec.ts'

export interface CallbackOptions {
  readonly http: HttpClient
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Hosts of this machine or network that may be called; every public one may. */
  readonly privateHosts: readonly string[]
  /** It was taken: 2xx. */
  onDelivered(run: RunId): void
}

export interface CallbackJob extends Callback {
  readonly run: RunId
  /** What is sent: the terminal frame. */
  readonly body: string
  /** How long after its answer it is still tried, from now on. */
  readonly forMs: number
}

const BACKOFF = { firstMs: 2_000, maxMs: 600_000, jitter: 0 }
const TIMEOUT_MS = 15_000
const MAX_AT_ONCE = 32
const MAX_ANSWER_BYTES = 16 * 1024
/** Reasons of failures that are remembered for those who look at the run. */
const MAX_REMEMBERED = 10_000

/** What the address itself is to blame for: trying again cannot help. */
const FINAL = new Set(['invalid-url', 'scheme', 'credentials', 'port', 'address', 'host'])

interface Pending {
  readonly job: CallbackJob
  readonly until: number
  attempts: number
  timer: Timer | undefined
}

/** Answers on their way to the addresses their senders named: tried until they are taken, or a day has passed. */
export class Callbacks {
  readonly #options: CallbackOptions
  readonly #pending = new Map<RunId, Pending>()
  readonly #ready: Pending[] = []
  readonly #failures = new Map<RunId, string>()
  readonly #underway = new Set<Promise<void>>()
  readonly #stop = new AbortController()

  constructor(options: CallbackOptions) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  send(job: CallbackJob): void {
    if (this.#pending.has(job.run) || this.#stop.signal.aborted) return
    const until = this.#options.clock.monotonic() + job.forMs
    const pending: Pending = { job, until, attempts: 0, timer: undefined }
    this.#pending.set(job.run, pending)
    this.#enter(pending)
  }

  /** Why the latest attempt failed, or why there will be no other. */
  failureOf(run: RunId): string | undefined {
    return this.#failures.get(run)
  }

  isPending(run: RunId): boolean {
    return this.#pending.has(run)
  }

  /** Ends attempts under way; what was not taken is tried again after the next start. */
  async close(): Promise<void> {
    this.#stop.abort()
    for (const { timer } of this.#pending.values()) timer?.cancel()
    this.#ready.length = 0
    while (this.#underway.size > 0) await Promise.all(this.#underway)
  }

  #enter(pending: Pending): void {
    this.#ready.push(pending)
    this.#next()
  }

  #next(): void {
    while (this.#underway.size < MAX_AT_ONCE) {
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
    const { run } = pending.job
    pending.attempts++
    try {
      const { status } = await this.#post(pending.job)
      if (status < 200 || status > 299) return this.#tryLater(pending, `the server answered ${status}`)
      this.#pending.delete(run)
      this.#failures.delete(run)
      this.#options.onDelivered(run)
    } catch (thrown) {
      if (this.#stop.signal.aborted) return
      const refusal = thrown instanceof FetchRefused ? thrown : undefined
      const reason = refusal?.message ?? 'the request failed'
      if (refusal !== undefined && FINAL.has(refusal.reason)) this.#giveUp(pending, reason)
      else this.#tryLater(pending, reason)
    }
  }

  #post({ url, secret, body, run }: CallbackJob): Promise<{ readonly status: number }> {
    const { http, clock, privateHosts } = this.#options
    const signature = secret === undefined ? {} : { 'x-clew-signature': signatureOf(body, secret) }
    return guardedFetch(
      http,
      url,
      {
        clock,
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json; charset=utf-8', 'x-clew-delivery': run, ...signature },
        privateHosts,
        maxRedirects: 0,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
        oversize: 'cut',
      },
      this.#stop.signal,
    )
  }

  #tryLater(pending: Pending, reason: string): void {
    const { clock, ids } = this.#options
    const delayMs = backoffDelay(pending.attempts - 1, BACKOFF, ids)
    if (clock.monotonic() + delayMs > pending.until) return this.#giveUp(pending, reason)
    this.#remember(pending.job.run, reason)
    pending.timer = clock.after(delayMs, () => this.#enter(pending))
  }

  #giveUp({ job, attempts }: Pending, reason: string): void {
    this.#pending.delete(job.run)
    this.#remember(job.run, reason)
    this.#options.log.warn('a callback was given up', { run: job.run, attempts, reason })
  }

  #remember(run: RunId, reason: string): void {
    this.#failures.delete(run)
    this.#failures.set(run, reason)
    const [oldest] = this.#failures.size > MAX_REMEMBERED ? this.#failures.keys() : []
    if (oldest !== undefined) this.#failures.delete(oldest)
  }
}

export function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}
