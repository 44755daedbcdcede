import type { Clock } from '../base/clock.ts'
import type { FileStat } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { ProcessIdentity, Processes } from '../base/processes.ts'

/** What a lock file says about its owner, as far as it can be read. */
export type OwnerFields = Readonly<Record<string, unknown>>

/** A file without an owner in it has none when it stays like that: the fields are written right after it is created. */
const EMPTY_GRACE_MS = 3_000
export const MAX_OWNER_BYTES = 64 * 1024

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

export function readOwner(bytes: Uint8Array): OwnerFields {
  const fields = parseJson(new TextDecoder().decode(bytes))
  return isRecord(fields) ? fields : {}
}

/** Its owner is dead, or has been away for so long that it counts as dead. */
export function isAbandoned(
  fields: OwnerFields,
  stat: FileStat,
  { clock, processes, staleMs }: Pick<Ports, 'clock' | 'processes'> & { readonly staleMs: number },
): boolean {
  const owner = ownerOf(fields, processes.self)
  const createdAt = timeOf(fields['createdAt'])
  if (owner === undefined || createdAt === undefined) return clock.now() - stat.modifiedAt > EMPTY_GRACE_MS
  return clock.now() - createdAt > staleMs || !processes.isAlive(owner)
}

/** Other programs write pid and time only: then the start time cannot be compared and the pid alone decides. */
function ownerOf({ pid, startedAt, host }: OwnerFields, self: ProcessIdentity): ProcessIdentity | undefined {
  if (typeof pid !== 'number') return undefined
  return {
    pid,
    startedAt: typeof startedAt === 'string' ? startedAt : '',
    host: typeof host === 'string' ? host : self.host,
  }
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : value
  return typeof time === 'number' && Number.isFinite(time) ? time : undefined
}
