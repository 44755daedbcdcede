import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'

/** Who a cookie stands for; the access module says what that one may. */
export interface SignedIn<P> {
  readonly principal: P
  readonly expiresAt: number
}

const CODE_MS = 5 * 60_000
const COOKIE_MS = 12 * 3_600_000
const MAX_CODES = 16
const MAX_COOKIES = 256
export const COOKIE_NAME = 'clew'

/**
 * Codes and cookies of the page, in memory: a restart signs everybody out. A code is good once, for five minutes; a
 * cookie for twelve hours.
 */
export class SignIn<P> {
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #codes = new Map<string, { readonly until: number; readonly principal: P }>()
  readonly #cookies = new Map<string, { readonly until: number; readonly principal: P }>()

  constructor(deps: { readonly clock: Clock; readonly ids: Ids }) {
    this.#clock = deps.clock
    this.#ids = deps.ids
  }

  createCode(principal: P): string {
    const code = this.#ids.hex(32)
    this.#codes.set(digest(code), { until: this.#clock.monotonic() + CODE_MS, principal })
    dropOldest(this.#codes, MAX_CODES)
    return code
  }

  /** The principal a code was made for, once. */
  spend(code: string): P | undefined {
    const name = digest(code)
    const found = this.#codes.get(name)
    this.#codes.delete(name)
    return found !== undefined && found.until > this.#clock.monotonic() ? found.principal : undefined
  }

  createCookie(principal: P): { readonly value: string; readonly maxAgeSeconds: number } {
    const value = this.#ids.hex(64)
    this.#cookies.set(digest(value), { until: this.#clock.monotonic() + COOKIE_MS, principal })
    dropOldest(this.#cookies, MAX_COOKIES)
    return { value, maxAgeSeconds: COOKIE_MS / 1_000 }
  }

  holderOf(headers: Headers): SignedIn<P> | undefined {
    const value = cookieOf(headers)
    const found = value === undefined ? undefined : this.#cookies.get(digest(value))
    const now = this.#clock.monotonic()
    if (found === undefined || found.until <= now) return undefined
    return { principal: found.principal, expiresAt: this.#clock.now() + (found.until - now) }
  }

  signOut(headers: Headers): void {
    const value = cookieOf(headers)
    if (value !== undefined) this.#cookies.delete(digest(value))
  }
}

/** Secrets are looked up by digest, so that the time of a look-up says nothing about them. */
function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function dropOldest(map: Map<string, unknown>, limit: number): void {
  for (const key of map.keys()) {
    if (map.size <= limit) return
    map.delete(key)
  }
}

function cookieOf(headers: Headers): string | undefined {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === COOKIE_NAME && value !== undefined) return value
  }
  return undefined
}
