import type { ModelIdentity } from '../core/history-rules.ts'
import type { CountMessages } from '../history/view-tokens.ts'
import type { TurnModel, TurnParts } from './parts.ts'

/** The count that people read, for this model: with its own vocabulary where there is one. */
export async function countFor(
  { provider, model }: Pick<TurnModel, 'provider' | 'model'>,
  { counter }: Pick<TurnParts, 'counter'>,
): Promise<CountMessages> {
  const target: ModelIdentity = { provider: provider.name, api: provider.api, model }
  if (counter.knowsVocabularyOf(target)) await counter.load()
  return (messages) => counter.countMessages(messages, target)
}
