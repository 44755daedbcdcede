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
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed; "tls": "pin" trusts it from the first time on',
  SELF_SIGNED_CERT_IN_CHAIN:
    'its certificate is signed by an unknown authority; "tls": "pin" trusts it from the first time on',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its certificate is signed by an unknown authority; "tls": "pin" trusts it from the first time on',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name; set servername, or "tls": "pin"',
}

const STATUS_HINTS: Readonly<Record<number, string>> = {
  401: ': check ak and sk',
  403: ': check agentId',
  404: ': check the path of the address',
}

/**
 * Why a connection did not come about, for a person, with the address but nothing of its query. `now` where the peer
 * cares for our clock.
 */
export function describeDialError(error: unknown, url: string, now?: number): string {
  const where = hostOf(url)
  if (error instanceof SocketRefused) {
    const skewMs = error.peerTime === undefined || now === undefined ? 0 : now - error.peerTime
    const skew =
      Math.abs(skewMs) > MIN_SKEW_MS ? `; the clock of this machine is off by ${Math.round(skewMs / 1000)} s` : ''
    return `${where} refused with status ${error.status}${STATUS_HINTS[error.status] ?? ''}${skew}`
  }
  if (error instanceof GatewayError) return `${where}: ${error.code}: ${error.message}`
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const reason = code === undefined ? undefined : REASONS[code]
  if (code === undefined) return `${where}: connecting failed`
  return reason === undefined ? `${where}: ${code}` : `${where}: ${reason} (${code})`
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the address'
}
