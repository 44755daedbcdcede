import type { Clock } from '../base/clock.ts'

const REFILL_MS = 3_000

export interface WrongTokenLimits {
  /** Wrong tokens of one address that are answered as usual; after them one more every few seconds. */
  readonly burst: number
  /** Addresses that are counted one by one. */
  readonly addresses: number
}

export const WRONG_TOKEN_LIMITS: WrongTokenLimits = { burst: 20, addresses: 10_000 }

interface Allowance {
  left: number
  at: number
}

/** Counts the wrong tokens of each address, so that guessing is slow. */
export class WrongTokens {
  readonly #clock: Clock
  readonly #limits: WrongTokenLimits
  /** The address that was wrong longest ago comes first, and is forgotten first. */
  readonly #byAddress = new Map<string, Allowance>()

  constructor(clock: Clock, limits = WRONG_TOKEN_LIMITS) {
    this.#clock = clock
    this.#limits = limits
  }

  get addresses(): number {
    return this.#byAddress.size
  }

  /** Seconds until this address is listened to again; 0 when it is now. */
  waitSeconds(address: string): number {
    const allowance = this.#byAddress.get(networkOf(address))
    if (allowance === undefined) return 0
    const left = this.#leftOf(allowance)
    return left >= 1 ? 0 : Math.ceil(((1 - left) * REFILL_MS) / 1000)
  }

  note(address: string): void {
    const network = networkOf(address)
    const known = this.#byAddress.get(network)
    const left = known === undefined ? this.#limits.burst : this.#leftOf(known)
    this.#byAddress.delete(network)
    this.#byAddress.set(network, { left: Math.max(0, left - 1), at: this.#clock.monotonic() })
    const [oldest] = this.#byAddress.keys()
    if (this.#byAddress.size > this.#limits.addresses && oldest !== undefined) this.#byAddress.delete(oldest)
  }

  #leftOf({ left, at }: Allowance): number {
    return Math.min(this.#limits.burst, left + (this.#clock.monotonic() - at) / REFILL_MS)
  }
}

/** One machine has a whole /64 of IPv6 addresses to guess from; it counts as one. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length)
  return [...front, ...Array.from({ length: zeros }, () => '0'), ...back].slice(0, 4).join(':')
}
