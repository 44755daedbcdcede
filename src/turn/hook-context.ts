import type { HookContext } from '../hook/hook.ts'
import type { TurnDeps } from './deps.ts'

export function hookContext({
  session,
  sessionId,
  run,
  models,
}: Pick<TurnDeps, 'session' | 'sessionId' | 'run' | 'models'>): HookContext {
  return { session, sessionId, run, model: models[0].name }
}
