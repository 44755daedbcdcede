import type { Clock } from '../../base/clock.ts'
import type { SocketDialer } from '../../base/sockets.ts'
import { describeDialError } from '../dial-error.ts'
import { DIAL_HINTS } from './errors.ts'
import { withoutQuery } from './link.ts'
import type { XiaoyiSettings } from './settings.ts'
import { handshakeHeaders } from './sign.ts'

export interface ProbeResult {
  readonly url: string
  readonly ok: boolean
  /** What to do when it is not. */
  readonly message: string
  /** Of a server whose certificate no name vouches for. */
  readonly fingerprint?: string
}

/** One signed handshake with each server, one after the other, closed at once: whether keys, address and clock are right. */
export async function probeServers(
  settings: XiaoyiSettings,
  deps: { readonly dialer: SocketDialer; readonly clock: Clock },
  signal: AbortSignal,
): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = []
  for (const server of settings.servers) results.push(await probe(server, settings, deps, signal))
  return results
}

async function probe(
  { url, tls, servername }: XiaoyiSettings['servers'][number],
  settings: XiaoyiSettings,
  { dialer, clock }: { readonly dialer: SocketDialer; readonly clock: Clock },
  signal: AbortSignal,
): Promise<ProbeResult> {
  let fingerprint: string | undefined
  const now = clock.now()
  const shown = withoutQuery(url)
  const secured = {
    verify: tls === 'verify',
    ...(servername === undefined ? {} : { servername }),
    checkFingerprint: (seen: string) => void (fingerprint = seen),
  }
  const options = {
    headers: handshakeHeaders(settings, settings.agentId, now),
    maxFrameBytes: settings.limits.maxFrameBytes,
    timeoutMs: settings.dialTimeoutMs,
    ...(tls === 'plain' ? {} : { tls: secured }),
  }
  try {
    const socket = await dialer.dial(url, options, signal)
    socket.listen({ onText: () => undefined, onPong: () => undefined, onClose: () => undefined })
    socket.close(1000, '')
    const pinned = tls === 'pin' && fingerprint !== undefined ? { fingerprint } : {}
    return { url: shown, ok: true, message: 'the service took our signature', ...pinned }
  } catch (error) {
    signal.throwIfAborted()
    return { url: shown, ok: false, message: describeDialError(error, url, DIAL_HINTS, now) }
  }
}
