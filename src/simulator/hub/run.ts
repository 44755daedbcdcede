import type { Clock } from '../../base/clock.ts'
import type { HttpServers } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import { openHub } from './hub.ts'

/** Where the hub listens. */
export interface RunHubOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly servers: HttpServers
  readonly host: string
  readonly port: number
  /** Made up when absent. */
  readonly bridgeToken?: string
  readonly clientToken?: string
  write(line: string): void
}

/** `clew simulate hub`: runs until the signal, after saying how a gateway and a client get in. */
export async function runHub(options: RunHubOptions, signal: AbortSignal): Promise<void> {
  const { clock, ids, servers, host, port, write } = options
  const tokens = {
    bridge: options.bridgeToken ?? ids.hex(32),
    client: options.clientToken ?? ids.hex(32),
  }
  const hub = await openHub({ clock, servers, host, port, tokens })
  write(`the hub listens on ${host}:${hub.port}`)
  write(`  bridge.json   "webhook_url": "${hub.bridgeUrl}", "uid": "my-gateway"`)
  write(`  clients       ${hub.clientUrl}&uid=my-gateway`)
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await hub.close()
}
