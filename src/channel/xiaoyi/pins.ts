import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Validity } from '../../base/sockets.ts'
import { GatewayError } from '../../core/errors.ts'
import type { XiaoyiState } from './state.ts'

/** In Unix ms; empty when nothing is wrong. */
type CertificateFault = { readonly certificateExpiredAt?: number; readonly certificateValidFrom?: number }

/**
 * Certificates of addresses that no name vouches for, trusted on first use. A change is refused until the operator
 * accepts it, since the signed headers that would follow can be replayed by anyone who reads them.
 */
export class Pins {
  readonly #state: XiaoyiState
  readonly #log: Log
  readonly #clock: Clock
  readonly #refused = new Map<string, string>()
  /** Since when the certificate of a URL is out of date, or from when on it counts. */
  readonly #invalid = new Map<string, CertificateFault>()

  constructor({ state, log, clock }: { readonly state: XiaoyiState; readonly log: Log; readonly clock: Clock }) {
    this.#state = state
    this.#log = log
    this.#clock = clock
  }

  check(url: string, seen: string, validity: Validity): void {
    this.#noteValidity(url, validity)
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

  /** What is wrong with the certificate that was taken because it is the pinned one. */
  faultOf(url: string): CertificateFault {
    return this.#invalid.get(url) ?? {}
  }

  /**
   * The fingerprint vouches for the peer, not the date: a service that forgot to renew is still the same one. But people
   * are told, once for each time it begins.
   */
  #noteValidity(url: string, { from, to }: Validity): void {
    const now = this.#clock.now()
    const before = this.#invalid.has(url)
    if (now > to) this.#invalid.set(url, { certificateExpiredAt: to })
    else if (now < from) this.#invalid.set(url, { certificateValidFrom: from })
    else this.#invalid.delete(url)
    if (before || !this.#invalid.has(url)) return
    this.#log.warn('the certificate of a pinned XiaoYi server is out of date, or the clock of this machine is wrong', {
      ...this.#invalid.get(url),
    })
  }

  #pin(url: string, seen: string): void {
    this.#log.info('a XiaoYi server certificate was pinned', { fingerprint: seen })
    this.#state.set('pins', url, seen).catch(() => this.#log.error('the pinned certificate could not be saved'))
  }
}
