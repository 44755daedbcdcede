import { createHash } from 'node:crypto'
import { agentCard, HTTP_JSON_PATH, JSON_RPC_PATH, type AgentFacts } from '../channel/a2a/agent-card.ts'
import type { A2aCall, DoorDeps } from '../channel/a2a/door.ts'
import { errorInfo } from '../channel/a2a/error-info.ts'
import type { Access } from './access.ts'
import type { Door } from './http.ts'
import { json, showProblem, wrongMethod, type Call, type Route } from './http-routes.ts'
import { identityOf } from './sender-identity.ts'

const AGENT_CARD_PATH = '/.well-known/agent-card.json'

export interface A2aRouteDeps extends DoorDeps {
  readonly access: Access
  readonly facts: AgentFacts
  /** With what only holders of a token may see. */
  readonly extendedFacts: AgentFacts
  /** Where the world reaches us; without it, where the request did. */
  readonly publicUrl?: string
}

/** The A2A protocol. The SDK behind it is loaded with the first request. */
export function createA2aRoutes(deps: A2aRouteDeps): readonly Route[] {
  const jsonRpc = async (call: Call): Promise<Response> => {
    const { answerJsonRpc } = await import('../channel/a2a/door.ts')
    return answerJsonRpc(toA2aCall(call, deps), deps)
  }
  const httpJson = async (call: Call): Promise<Response> => {
    const { answerHttpJson } = await import('../channel/a2a/http-json.ts')
    return answerHttpJson(toA2aCall(call, deps), deps)
  }
  const below = /^\/a2a\/v1\/.+$/u
  return [
    { method: 'POST', path: /^\/a2a$/u, answer: jsonRpc },
    ...['GET', 'POST', 'DELETE'].map((method) => ({ method, path: below, answer: httpJson })),
  ]
}

/** The public card: it holds no secret, and a client must read it to learn that it needs a token. */
export function answerAgentCard(
  { method }: Request,
  url: URL,
  { facts, publicUrl }: Pick<A2aRouteDeps, 'facts' | 'publicUrl'>,
): Response | undefined {
  if (url.pathname !== AGENT_CARD_PATH) return undefined
  if (method !== 'GET' && method !== 'HEAD') return showProblem(wrongMethod('GET, HEAD'))
  const card = agentCard(facts, publicUrl ?? url.origin)
  const etag = `"${createHash('sha256').update(JSON.stringify(card)).digest('base64url').slice(0, 22)}"`
  return json(card, 200, { 'cache-control': 'public, max-age=60', etag })
}

/** Problems that the protocol itself does not know, in the shapes of its two wires. */
export const A2A_DOORS: readonly Door[] = [
  {
    below: `${HTTP_JSON_PATH}/`,
    show: ({ status, error, code, headers }) => {
      const body = {
        code: status,
        status: STATUS_NAMES[status] ?? 'UNKNOWN',
        message: error,
        details: [errorInfo(code)],
      }
      return json({ error: body }, status, { ...challenge(status), ...headers })
    },
  },
  {
    below: JSON_RPC_PATH,
    show: ({ status, error, code, headers }) => {
      const body = { code: -32_000, message: error, data: [errorInfo(code)] }
      return json({ jsonrpc: '2.0', id: null, error: body }, status, { ...challenge(status), ...headers })
    },
  },
]

function challenge(status: number): Readonly<Record<string, string>> {
  return status === 401 ? { 'www-authenticate': 'Bearer' } : {}
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  413: 'OUT_OF_RANGE',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

function toA2aCall({ request, url, principal, peer, caller }: Call, deps: A2aRouteDeps): A2aCall {
  const base = deps.publicUrl ?? url.origin
  return {
    request,
    url,
    caller,
    base,
    sender: { ...identityOf(deps.access, principal, url), address: peer.address },
    card: agentCard(deps.facts, base),
    extendedCard: agentCard(deps.extendedFacts, base),
  }
}
