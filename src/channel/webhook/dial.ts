import { sleep } from '../../base/async.ts'
import { backoffDelay, type BackoffOptions, type Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { SocketDialer } from '../../base/sockets.ts'
import type { LinkHistoryRow } from '../channel.ts'
import { describeDialError, type DialHints } from '../dial-error.ts'
import { LinkHistory } from '../link-history.ts'
import type { WebhookChannel } from './channel.ts'

export interface HubLinkOptions {
  readonly dialer: SocketDialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** The hub's address as configured; our uid is added. */
  readonly url: string
  readonly uid: string
  readonly maxFrameBytes: number
  readonly connectTimeoutMs: number
  readonly backoff: BackoffOptions
  /** After this long the connection counts as healthy and the next loss starts with the first delay again. */
  readonly healthyAfterMs: number
  /** Its history has a new row. */
  onChanged?(row: LinkHistoryRow): void
}

const CLOSE_GRACE_MS = 1_000

const HINTS: DialHints = {
  unauthorized: 'check the token in webhook_url',
  forbidden: 'check the token in webhook_url, and uid',
  authority: 'name the file of its authority in NODE_EXTRA_CA_CERTS',
  name: 'use the name of its certificate in webhook_url',
}

/** Keeps one connection to a hub, for ever, until closed. Replies wait in the outbox while it is down. */
export class HubLink {
  readonly #options: HubLinkOptions
  readonly #channel: WebhookChannel
  readonly #stop = new AbortController()
  #state: 'connecting' | 'up' | 'waiting' | 'closed' = 'connecting'
  #attempts = 0
  #lastError = ''
  #malformed = 0
  #running: Promise<void> | undefined
  readonly #history: LinkHistory
  /** Ends the connection, or the pause before the next one. */
  #renew: (() => void) | undefined

  constructor(channel: WebhookChannel, options: HubLinkOptions) {
    this.#channel = channel
    this.#options = options
    this.#history = new LinkHistory(options.clock)
  }

  start(): void {
    this.#running = this.#run()
  }

  status(): JsonObject {
    return {
      url: withoutQuery(this.#options.url),
      state: this.#state,
      attempts: this.#attempts,
      lastError: this.#lastError,
      malformedFrames: this.#malformed,
    }
  }

  history(): readonly LinkHistoryRow[] {
    return this.#history.rows
  }

  /** A new connection at once, also in place of an open one. */
  reconnect(): number {
    if (this.#renew === undefined) return 0
    this.#renew()
    return 1
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('closed'))
    await this.#running
    this.#state = 'closed'
  }

  async #run(): Promise<void> {
    const { clock, ids, backoff, log } = this.#options
    while (!this.#stop.signal.aborted) {
      await this.#connectOnce()
      if (this.#stop.signal.aborted) return
      const delayMs = backoffDelay(this.#attempts, backoff, ids)
      this.#attempts++
      this.#note({ what: this.#state === 'up' ? 'down' : 'failed', reason: this.#lastError, nextInMs: delayMs })
      this.#state = 'waiting'
      log.warn('the hub is not reachable; trying again', { attempt: this.#attempts, delayMs, reason: this.#lastError })
      await this.#pause(delayMs, clock)
    }
  }

  async #pause(delayMs: number, clock: Clock): Promise<void> {
    const renewed = new AbortController()
    this.#renew = () => renewed.abort()
    await sleep(clock, delayMs, AbortSignal.any([this.#stop.signal, renewed.signal])).catch(() => undefined)
    this.#renew = undefined
  }

  #note(change: Omit<LinkHistoryRow, 'at' | 'link'>): void {
    const row = this.#history.add(0, change)
    this.#options.onChanged?.(row)
  }

  async #connectOnce(): Promise<void> {
    const { dialer, clock, uid, maxFrameBytes, connectTimeoutMs, healthyAfterMs, log } = this.#options
    this.#state = 'connecting'
    this.#note({ what: 'connecting' })
    try {
      const socket = await dialer.dial(
        this.#address(),
        { maxFrameBytes, timeoutMs: connectTimeoutMs },
        this.#stop.signal,
      )
      const connection = this.#channel.connect(socket, { account: uid })
      this.#state = 'up'
      this.#note({ what: 'open' })
      this.#renew = () => connection.close(1000, 'a new connection is made')
      log.info('connected to the hub', { attempt: this.#attempts })
      const healthy = clock.after(healthyAfterMs, () => {
        this.#attempts = 0
      })
      const onStop = (): void => {
        connection.close(1000, 'stopping')
        // A hub that does not answer the closing handshake must not hold up the stop.
        clock.after(CLOSE_GRACE_MS, () => connection.terminate())
      }
      this.#stop.signal.addEventListener('abort', onStop, { once: true })
      await connection.ended
      this.#renew = undefined
      this.#malformed += connection.malformedFrames
      this.#stop.signal.removeEventListener('abort', onStop)
      healthy.cancel()
      this.#lastError = 'the connection ended'
    } catch (error) {
      this.#lastError = describeDialError(error, this.#options.url, HINTS)
    }
  }

  #address(): string {
    const url = new URL(this.#options.url)
    url.searchParams.set('uid', this.#options.uid)
    return url.href
  }
}

function withoutQuery(address: string): string {
  const url = new URL(address)
  return `${url.origin}${url.pathname}`
}

/** True when the address is the one we listen on ourselves: then there is nothing to dial. */
export function isOwnAddress(address: string, listen: { readonly host: string; readonly port: number }): boolean {
  if (!URL.canParse(address)) return false
  const url = new URL(address)
  const port = url.port === '' ? (url.protocol === 'wss:' ? 443 : 80) : Number(url.port)
  if (port !== listen.port || url.pathname !== '/ws') return false
  const names = new Set(['localhost', '127.0.0.1', '[::1]'])
  const listensEverywhere = listen.host === '0.0.0.0' || listen.host === '::'
  return url.hostname === listen.host || (names.has(url.hostname) && (names.has(listen.host) || listensEverywhere))
}
