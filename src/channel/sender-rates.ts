import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { RateLimit } from './rate-limit.ts'

export interface SenderLimits {
  readonly perSecond: number
  readonly burst: number
  /** Senders whose rate is known one by one; of those, the one that asked longest ago is forgotten first. */
  readonly senders: number
}

/** How often each sender of requests may ask: by its account, else by its address. */
export class SenderRates {
  readonly #clock: Clock
  readonly #limits: SenderLimits
  readonly #rates = new Map<string, RateLimit>()

  constructor(clock: Clock, limits: SenderLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Throws `RATE_LIMITED`. */
  take({ account, address }: { readonly account?: string; readonly address: string }): void {
    const name = account === undefined ? `address ${address}` : `account ${account}`
    const rate = this.#rates.get(name) ?? new RateLimit(this.#clock, this.#limits)
    this.#rates.delete(name)
    this.#rates.set(name, rate)
    const [oldest] = this.#rates.size > this.#limits.senders ? this.#rates.keys() : []
    if (oldest !== undefined) this.#rates.delete(oldest)
    if (!rate.take()) throw new GatewayError('RATE_LIMITED', 'too many requests; slow down')
  }
}
