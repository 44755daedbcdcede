import { createHmac, timingSafeEqual } from 'node:crypto'
import type { UpgradeRequest } from '../../base/http.ts'
import type { Switches } from './switches.ts'

export interface AgentCredentials {
  readonly ak: string
  readonly sk: string
  readonly agentId: string
}

/** The HTTP status of a refusal, or undefined: 401 for a wrong key, signature or clock, 403 for an unknown agent. */
export function refusalOf(
  request: UpgradeRequest,
  agent: AgentCredentials,
  switches: Switches,
  now: number,
): number | undefined {
  if (switches.refuseWith !== undefined) return switches.refuseWith
  if (!isSigned((name) => request.headers.get(name), agent, switches, now)) return 401
  return request.headers.get('x-agent-id') === agent.agentId ? undefined : 403
}

/** The push endpoint's headers carry the same three values under other names. */
export function isSigned(
  header: (name: string) => string | null,
  agent: Pick<AgentCredentials, 'ak' | 'sk'>,
  switches: Switches,
  now: number,
): boolean {
  const timestamp = header('x-ts') ?? ''
  const sentAt = Number(timestamp)
  if (header('x-access-key') !== agent.ak || !/^\d+$/.test(timestamp)) return false
  if (Math.abs(now - sentAt) > switches.signatureWindowMs) return false
  const expected = createHmac('sha256', agent.sk).update(timestamp).digest()
  const given = Buffer.from(header('x-sign') ?? '', 'base64')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
