import { GatewayError } from '../core/errors.ts'
import { type Caller, mayUse } from '../core/inbound.ts'
import type { SessionRow, Storage } from '../storage/storage.ts'

/** The row of a key or of a session id; one that the caller may not see is as if it were not there. */
export async function findSession(
  { sessions }: Pick<Storage, 'sessions'>,
  named: { readonly key?: string; readonly sessionId?: string },
  caller?: Caller,
): Promise<SessionRow> {
  const byId = named.sessionId === undefined ? undefined : await sessions.byId(named.sessionId)
  const key = named.key ?? named.sessionId ?? ''
  const row = byId ?? (await sessions.resolve(key))
  if (row === undefined || !mayUse(caller, row.record))
    throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', { key: key.slice(0, 200) })
  return row
}
