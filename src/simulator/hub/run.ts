import type { Clock } from '../../base/clock.ts'
import type { HttpServers } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import { visibleLine } from '../../base/text.ts'
import { openHub, type HubNews } from './hub.ts'

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
  const hub = await openHub({ clock, servers, host, port, tokens, onPeer: (news) => write(`* ${describe(news)}`) })
  write(`the hub listens on ${host}:${hub.port}`)
  write(`  bridge.json   "webhook_url": "${hub.bridgeUrl}", "uid": "my-gateway"`)
  write(`  clients       ${hub.clientUrl}&uid=my-gateway`)
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await hub.close()
}

const ROLES = { bridge: 'a gateway', client: 'a client' } as const

function describe(news: HubNews): string {
  if (news.kind === 'refused') return `a connection was refused: ${news.reason}`
  const what = news.kind === 'came' ? 'connected' : 'is gone'
  return `${ROLES[news.role]} ${what} (uid ${visibleLine(news.uid)})`
}
