import { createHmac, timingSafeEqual } from 'node:crypto'
import type { UpgradeRequest } from '../../base/http.ts'
import type { Switches } from './switches.ts'

export interface AgentCredentials {
  readonly ak: string
  readonly sk: string
  readonly agentId: string
  /** For clients of the API-key tier ("XiaoYi Claw"), which sign nothing; without it they are refused. */
  readonly apiKey?: string
  readonly uid?: string
}

export interface Refusal {
  readonly status: number
  /** For the person at the simulator; the real service says nothing. */
  readonly reason: string
}

/** Undefined when the agent may connect: 401 for a wrong key, signature or clock, 403 for an unknown agent. */
export function refusalOf(
  request: UpgradeRequest,
  agent: AgentCredentials,
  switches: Switches,
  now: number,
): Refusal | undefined {
  if (switches.refuseWith !== undefined) return { status: switches.refuseWith, reason: 'as /refuse says' }
  const fault = faultOf((name) => request.headers.get(name), agent, switches, now)
  if (fault !== undefined) return { status: 401, reason: fault }
  const isKnown = request.headers.get('x-agent-id') === agent.agentId
  return isKnown ? undefined : { status: 403, reason: 'x-agent-id names another agent' }
}

/** The push endpoint's headers carry the same values. */
export function isSigned(
  header: (name: string) => string | null,
  agent: Keys,
  switches: Switches,
  now: number,
): boolean {
  return faultOf(header, agent, switches, now) === undefined
}

type Keys = Omit<AgentCredentials, 'agentId'>

/** A client that shows an API key is of that tier; every other one has to sign. */
function faultOf(
  header: (name: string) => string | null,
  agent: Keys,
  switches: Switches,
  now: number,
): string | undefined {
  return header('x-api-key') === null ? signatureFault(header, agent, switches, now) : apiKeyFault(header, agent)
}

function apiKeyFault(header: (name: string) => string | null, { apiKey, uid }: Keys): string | undefined {
  if (apiKey === undefined) return 'this service has no API key; give it one (--api-key)'
  if (header('x-api-key') !== apiKey) return 'x-api-key is not the one of this service'
  if (header('x-uid') === null || header('x-uid') === '') return 'x-uid is missing'
  if (uid !== undefined && header('x-uid') !== uid) return 'x-uid is not the one of this service'
  return header('x-request-from') === 'openclaw' ? undefined : 'x-request-from is not "openclaw"'
}

function signatureFault(
  header: (name: string) => string | null,
  agent: Keys,
  switches: Switches,
  now: number,
): string | undefined {
  const timestamp = header('x-ts') ?? ''
  if (header('x-access-key') !== agent.ak) return 'x-access-key is not the one of this service (ak)'
  if (!/^\d{1,16}$/.test(timestamp)) return 'x-ts is no time in milliseconds'
  const offMs = Number(timestamp) - now
  if (Math.abs(offMs) > switches.signatureWindowMs)
    return `x-ts is off by ${Math.round(offMs / 1000)} s: check the clock`
  const expected = createHmac('sha256', agent.sk).update(timestamp).digest()
  const given = Buffer.from(header('x-sign') ?? '', 'base64')
  const isRight = given.length === expected.length && timingSafeEqual(given, expected)
  return isRight ? undefined : 'x-sign does not fit x-ts (sk)'
}
