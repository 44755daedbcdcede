import type { HookContext } from '../hook/hook.ts'
import type { TurnParts } from './parts.ts'

export function hookContext({
  session,
  sessionId,
  run,
  models,
}: Pick<TurnParts, 'session' | 'sessionId' | 'run' | 'models'>): HookContext {
  return { session, sessionId, run, model: models[0].name }
}
