import type { RunId } from '../core/ids.ts'
import type { HookContext } from '../hook/hook.ts'
import type { TurnParts } from './parts.ts'

export function hookContext(
  { session, sessionId }: Pick<TurnParts, 'session' | 'sessionId'>,
  run?: RunId,
): HookContext {
  return { session, sessionId, ...(run === undefined ? {} : { run }) }
}
