import type { HookContext } from '../hook/hook.ts'
import type { TurnDeps, TurnModel } from './deps.ts'

/** What every hook is given of the turn; the model is the first one unless the hook is about another. */
export function hookContext(
  { session, sessionId, run, models }: Pick<TurnDeps, 'session' | 'sessionId' | 'run' | 'models'>,
  model: Pick<TurnModel, 'name'> = models[0],
): HookContext {
  return { session, sessionId, run, model: model.name }
}

/**
 * Waits for something that only watches. A stop that arrives meanwhile must not cost what is already there (a tool's
 * result, the model's answer): the next step notices the stop by itself.
 */
export async function ignoreFailureIfAborted(watching: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await watching
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  }
}
