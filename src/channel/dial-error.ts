import { GatewayError } from '../core/errors.ts'
import { SocketRefused } from '../base/sockets.ts'

const MIN_SKEW_MS = 60_000

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name is not known: check the address and DNS',
  EAI_AGAIN: 'the name could not be looked up: check the network and DNS',
  ETIMEDOUT: 'there was no answer in time: check the network, a firewall or a proxy',
  ECONNRESET: 'the connection was broken off',
  EHOSTUNREACH: 'there is no way to this machine',
  ENETUNREACH: 'there is no network to it',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: check our clock',
}

/** Those of a certificate, which what a channel can do about it is added to. */
const CERTIFICATE_REASONS: Readonly<Record<string, { readonly reason: string; readonly hint: 'authority' | 'name' }>> =
  {
    DEPTH_ZERO_SELF_SIGNED_CERT: { reason: 'its certificate is self-signed', hint: 'authority' },
    SELF_SIGNED_CERT_IN_CHAIN: { reason: 'its certificate is signed by an unknown authority', hint: 'authority' },
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: { reason: 'its certificate is signed by an unknown authority', hint: 'authority' },
    ERR_TLS_CERT_ALTNAME_INVALID: { reason: 'its certificate is for another name', hint: 'name' },
  }

/** What to do about a refusal, in the words of the configuration of one channel. */
export interface DialHints {
  readonly unauthorized: string
  readonly forbidden: string
  /** For a certificate without a known authority. */
  readonly authority: string
  /** For a certificate of another name. */
  readonly name: string
}

/**
 * Why a connection did not come about, for a person, with the address but nothing of its query. `now` where the peer
 * cares for our clock.
 */
export function describeDialError(error: unknown, url: string, hints: DialHints, now?: number): string {
  const where = hostOf(url)
  if (error instanceof SocketRefused) {
    const skewMs = error.peerTime === undefined || now === undefined ? 0 : now - error.peerTime
    const skew =
      Math.abs(skewMs) > MIN_SKEW_MS ? `; the clock of this machine is off by ${Math.round(skewMs / 1000)} s` : ''
    return `${where} refused with status ${error.status}${statusHint(error.status, hints)}${skew}`
  }
  if (error instanceof GatewayError) return `${where}: ${error.code}: ${error.message}`
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const reason = code === undefined ? undefined : (REASONS[code] ?? certificateReason(code, hints))
  if (code === undefined) return `${where}: connecting failed`
  return reason === undefined ? `${where}: ${code}` : `${where}: ${reason} (${code})`
}

function statusHint(status: number, { unauthorized, forbidden }: DialHints): string {
  if (status === 401) return `: ${unauthorized}`
  if (status === 403) return `: ${forbidden}`
  return status === 404 ? ': check the path of the address' : ''
}

function certificateReason(code: string, hints: DialHints): string | undefined {
  const found = CERTIFICATE_REASONS[code]
  return found === undefined ? undefined : `${found.reason}; ${hints[found.hint]}`
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the address'
}
