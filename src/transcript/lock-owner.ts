import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { IsStale } from '../base/lock-file.ts'
import type { Processes } from '../base/processes.ts'

interface Ports {
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
}

export function ownerText({ clock, ids, processes }: Ports): string {
  const { pid, startedAt, host } = processes.self
  const createdAt = new Date(clock.now()).toISOString()
  return JSON.stringify({ pid, startedAt, host, createdAt, token: ids.hex(16) })
}

/** A lock that is older than this counts as abandoned, even when its owner lives. */
export function staleAfter(staleMs: number, clock: Clock): IsStale {
  return ({ fields, stat }) => clock.now() - (timeOf(fields['createdAt']) ?? stat.modifiedAt) > staleMs
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : value
  return typeof time === 'number' && Number.isFinite(time) ? time : undefined
}
