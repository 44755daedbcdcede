import type { Config } from '../config/config.ts'
import type { Agent } from './agent.ts'
import type { Platform } from './platform.ts'

/**
 * Loads what messages will need before the first one is taken: a module cannot be loaded in slices, and one that comes
 * with a message keeps everybody else waiting. A gateway with nothing but the demo model needs none of it.
 */
export async function loadAhead(
  {
    agent,
    config,
  }: { readonly agent: Pick<Agent, 'counter' | 'providers'>; readonly config: Pick<Config, 'model' | 'providers'> },
  { http }: Pick<Platform, 'http'>,
): Promise<void> {
  const isDemo = config.model.every((name) => name === 'demo') && Object.keys(config.providers).length === 0
  if (isDemo) return
  await http.prepare?.()
  const { counter, providers } = agent
  const models = [...config.model, ...providers.list().map(({ ref }) => ref)].filter((name) => name !== 'demo')
  const isCounted = models.some((name) => {
    const { provider, model } = providers.resolve(name)
    return counter.knowsVocabularyOf({ provider: provider.name, api: provider.api, model })
  })
  if (isCounted) await counter.load()
}
