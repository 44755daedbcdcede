import { sleep } from '../base/clock.ts'
import { NEVER } from '../base/never.ts'
import type { Entry } from '../core/entry.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import type { CountMessages } from '../history/view-tokens.ts'
import type { TurnModel, TurnDeps } from './deps.ts'

/**
 * The count that people read, for this model: with its own vocabulary where there is one. What these entries say is
 * counted before, a little at a time, so that a long conversation holds up no other.
 */
export async function countFor(
  { provider, model }: Pick<TurnModel, 'provider' | 'model'>,
  { counter, clock }: Pick<TurnDeps, 'counter' | 'clock'>,
  entries: readonly Entry[],
): Promise<CountMessages> {
  const target: ModelIdentity = { provider: provider.name, api: provider.api, model }
  if (counter.knowsVocabularyOf(target)) {
    const pause = (): Promise<void> => sleep(clock, 0, NEVER)
    await counter.load(pause)
    const messages = entries.flatMap((entry) => (entry.type === 'message' ? [entry.message] : []))
    await counter.remember(messages, target, pause)
  }
  return (prepared) => counter.countMessages(prepared, target)
}
