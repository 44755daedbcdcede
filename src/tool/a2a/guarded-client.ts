import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import type { Client } from '@a2a-js/sdk/client'
import type { Clock } from '../../base/clock.ts'
import { guardedFetch } from '../../base/guarded-fetch.ts'
import type { HttpClient } from '../../base/http.ts'
import type { RemoteAgent } from './a2a-tool.ts'

const MAX_ANSWER_BYTES = 8 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 60_000

export interface GuardedClientDeps {
  readonly http: HttpClient
  readonly clock: Clock
}

/** A client of another agent that reaches nothing but public addresses, and the host it was configured for. */
export async function openGuardedClient(
  deps: GuardedClientDeps,
  agent: RemoteAgent,
  signal: AbortSignal,
): Promise<Client> {
  const fetchImpl = guardedFetchOf(deps, agent, signal)
  const legacyCompat = { enabled: true }
  const factory = new ClientFactory({
    transports: [
      new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
      new RestTransportFactory({ fetchImpl, legacyCompat }),
    ],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
  })
  return factory.createFromUrl(agent.url)
}

/** The token goes to the configured origin only: a card may point anywhere. */
function guardedFetchOf({ http, clock }: GuardedClientDeps, agent: RemoteAgent, signal: AbortSignal): typeof fetch {
  const own = new URL(agent.url)
  const privateHosts = agent.private ? [own.hostname] : []
  const port = own.port === '' ? [] : [Number(own.port)]
  return async (input, init) => {
    const request = new Request(input, init)
    const isOwn = new URL(request.url).origin === own.origin
    const token = isOwn && agent.token !== undefined ? { authorization: `Bearer ${agent.token}` } : {}
    const method = request.method === 'POST' ? 'POST' : 'GET'
    const { status, headers, bytes } = await guardedFetch(
      http,
      request.url,
      {
        clock,
        method,
        headers: { ...Object.fromEntries(request.headers), ...token },
        ...(method === 'POST' ? { body: await request.text() } : {}),
        privateHosts,
        ports: [80, 443, ...port],
        maxRedirects: 0,
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: REQUEST_TIMEOUT_MS,
      },
      AbortSignal.any([signal, request.signal]),
    )
    const body = status === 204 ? null : Buffer.from(bytes)
    return new Response(body, { status, headers })
  }
}
