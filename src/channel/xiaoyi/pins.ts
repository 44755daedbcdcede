import type { Log } from '../../base/log.ts'
import { GatewayError } from '../../core/errors.ts'
import type { XiaoyiState } from './state.ts'

/**
 * Certificates of addresses that no name vouches for, trusted on first use. A change is refused until the operator
 * accepts it, since the signed headers that would follow can be replayed by whoever reads them.
 */
export class Pins {
  readonly #state: XiaoyiState
  readonly #log: Log
  readonly #refused = new Map<string, string>()

  constructor(state: XiaoyiState, log: Log) {
    this.#state = state
    this.#log = log
  }

  check(url: string, seen: string): void {
    const pinned = this.#state.get('pins', url)
    if (pinned === seen) {
      this.#refused.delete(url)
      return
    }
    if (pinned === undefined) return this.#pin(url, seen)
    this.#refused.set(url, seen)
    throw new GatewayError(
      'XIAOYI_CERTIFICATE_CHANGED',
      'the certificate is not the one seen before; accept it with: clew channels trust xiaoyi',
      { pinned, seen },
    )
  }

  async trustSeen(): Promise<number> {
    const accepted = [...this.#refused]
    this.#refused.clear()
    await Promise.all(accepted.map(([url, seen]) => this.#state.set('pins', url, seen)))
    return accepted.length
  }

  /** Fingerprint per URL, and the refused one where there is one. */
  status(): Readonly<Record<string, string | { readonly pinned: string; readonly refused: string }>> {
    return Object.fromEntries(
      this.#state.entries('pins').map(([url, pinned]) => {
        const refused = this.#refused.get(url)
        return [url, refused === undefined ? pinned : { pinned, refused }]
      }),
    )
  }

  #pin(url: string, seen: string): void {
    this.#log.info('a XiaoYi server certificate was pinned', { fingerprint: seen })
    this.#state.set('pins', url, seen).catch(() => this.#log.error('the pinned certificate could not be saved'))
  }
}
