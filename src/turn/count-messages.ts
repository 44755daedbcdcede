import { sleep, NEVER } from '../base/async.ts'
import type { Entry } from '../core/entry.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import { keepWith, keptWith, type KeptKind } from '../core/path-memory.ts'
import type { TokenCounter } from '../core/token-counter.ts'
import type { CountMessages } from '../history/view-tokens.ts'
import type { TurnModel, TurnDeps } from './deps.ts'

/** So many entries of a path were counted beforehand. */
const REMEMBERED: KeptKind<{ readonly counter: TokenCounter; readonly count: number }> = { name: 'remembered' }

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
    const before = keptWith(entries, REMEMBERED)
    const known = before?.counter === counter ? before.count : 0
    const messages = entries.slice(known).flatMap((entry) => (entry.type === 'message' ? [entry.message] : []))
    await counter.remember(messages, target, pause)
    keepWith(entries, REMEMBERED, { counter, count: entries.length })
  }
  return (prepared) => counter.countMessages(prepared, target)
}
