import type { Clock } from '../base/clock.ts'
import { randomBytes, randomUUID } from 'node:crypto'
import type { Ids } from '../base/ids.ts'

/** The time of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Math.floor(performance.now()),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return { cancel: () => clearTimeout(timer) }
  },
}

/** Asking the system for four random bytes costs as much as for thousands; each digit is given out once. */
const STOCK_DIGITS = 4096
let stock = ''

/** Randomness of this machine, fit for secrets. */
export const systemIds: Ids = {
  uuid: () => randomUUID(),
  hex(length) {
    if (stock.length < length) stock = randomBytes(Math.max(STOCK_DIGITS, length + 1) >> 1).toString('hex')
    const digits = stock.slice(0, length)
    stock = stock.slice(length)
    return digits
  },
  fraction: () => Math.random(),
}
