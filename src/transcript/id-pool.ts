import type { Ids } from '../base/ids.ts'

const POOL_DIGITS = 1024

/** Short random ids cut from long ones: asking the system for four bytes costs as much as for five hundred. */
export class IdPool {
  readonly #ids: Ids
  #digits = ''
  #at = 0

  constructor(ids: Ids) {
    this.#ids = ids
  }

  hex(length: number): string {
    if (this.#at + length > this.#digits.length) {
      this.#digits = this.#ids.hex(POOL_DIGITS)
      this.#at = 0
    }
    this.#at += length
    return this.#digits.slice(this.#at - length, this.#at)
  }

  uuid(): string {
    return this.#ids.uuid()
  }
}
