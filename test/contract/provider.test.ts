import { describe, it } from 'vitest'
import { systemClock } from '../../src/platform/system.ts'
import { createHttpClient } from '../../src/platform/undici-http-client.ts'
import type { ProviderConfig } from '../../src/provider/provider-config.ts'
import { createProviders } from '../../src/provider/registry.ts'
import type { SimulatedApi } from '../../src/simulator/provider/script.ts'
import type { SimulatorOptions } from '../../src/simulator/provider/simulator.ts'
import { describeModelProvider, type ProviderUnderTest } from '../../src/testing/contracts/provider.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { serveSimulator } from '../support/served-simulator.ts'

interface Service {
  readonly api: SimulatedApi
  readonly model: string
  readonly config: ProviderConfig
  readonly simulator?: Partial<SimulatorOptions>
}

const SERVICES: Readonly<Record<string, Service>> = {
  'Anthropic Messages': { api: 'anthropic-messages', model: 'claude-sonnet-4-5', config: { type: 'anthropic' } },
  'OpenAI Responses': { api: 'openai-responses', model: 'gpt-5', config: { type: 'openai-responses' } },
  'OpenAI Chat Completions': { api: 'openai-completions', model: 'gpt-4o', config: { type: 'openai-completions' } },
  'a compatible server': {
    api: 'openai-completions',
    model: 'qwen3',
    config: { type: 'openai-compatible' },
    simulator: { dialect: 'compatible' },
  },
  Google: { api: 'google-generative-ai', model: 'gemini-3-flash-preview', config: { type: 'google' } },
  Mistral: { api: 'mistral-conversations', model: 'mistral-large-latest', config: { type: 'mistral' } },
}

for (const [name, service] of Object.entries(SERVICES)) {
  describeModelProvider({ describe, it }, name, () => open(service))
}

/** The adapter over real sockets to a simulator that applies the strict rules to every request. */
async function open({ api, model, config, simulator }: Service): Promise<ProviderUnderTest> {
  const served = await serveSimulator({ api, profile: 'strict', ...simulator })
  const http = createHttpClient()
  const own = { ...config, apiKey: 'sk-test', baseUrl: served.baseUrl, retry: { maxAttempts: 1 } }
  const providers = createProviders({ tested: own }, { http, clock: systemClock, ids: new SeededIds() })
  return {
    provider: providers.resolve(`tested/${model}`).provider,
    model,
    plan: (...replies) => served.simulator.enqueue(...replies),
    idle: async () => {
      while (served.simulator.requests.some(({ outcome }) => outcome === 'running')) await soon()
    },
    close: async () => {
      await http.close()
      await served.close()
    },
  }
}

function soon(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1))
}
