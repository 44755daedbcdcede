import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import type { HttpClient } from '../../src/base/http.ts'
import type { AssistantMessage } from '../../src/core/message.ts'
import type { ProviderConfig } from '../../src/provider/provider-config.ts'
import type { EncodedRequest, ModelEvent, ModelProvider } from '../../src/provider/provider.ts'
import { createProviders } from '../../src/provider/registry.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

export const KEY = 'sk-canary-4f9a1c7e2b8d6053'

export type Family = 'anthropic' | 'responses' | 'completions' | 'google' | 'mistral'

export const FAMILIES: readonly Family[] = ['anthropic', 'responses', 'completions', 'google', 'mistral']

export const CONFIGS: Readonly<Record<Family, ProviderConfig>> = {
  anthropic: { type: 'anthropic', apiKey: KEY },
  responses: { type: 'openai-responses', apiKey: KEY },
  completions: { type: 'openai-completions', apiKey: KEY },
  google: { type: 'google', apiKey: KEY },
  mistral: { type: 'mistral', apiKey: KEY },
}

/** A recorded stream from `test/fixtures/provider`. */
export function fixture(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/provider/${name}.sse`, import.meta.url))
}

export interface Setup {
  readonly provider: ModelProvider
  readonly clock: ManualClock
}

export function setUp(family: Family, http: HttpClient, config: ProviderConfig = {}): Setup {
  const clock = new ManualClock()
  const providers = createProviders(
    { [family]: { ...CONFIGS[family], ...config } },
    { http, clock, ids: new SeededIds(7) },
  )
  return { provider: providers.resolve(`${family}/model-1`).provider, clock }
}

export const REQUEST: EncodedRequest = { model: 'model-1', body: '{}' }

export type Finished = Omit<AssistantMessage, 'timestamp'>

export interface Outcome {
  readonly events: readonly ModelEvent[]
  readonly message?: Finished
  readonly error?: unknown
}

/** Reads a stream to its end, moving the clock on whenever it waits. */
export async function collect(setup: Setup, signal = new AbortController().signal): Promise<Outcome> {
  const events: ModelEvent[] = []
  const state = { settled: false }
  const reading = (async (): Promise<Outcome> => {
    try {
      for await (const event of setup.provider.stream(REQUEST, signal)) events.push(event)
    } catch (error) {
      return { events, error }
    }
    const last = events.at(-1)
    return { events, ...(last?.type === 'end' ? { message: last.message } : {}) }
  })().finally(() => {
    state.settled = true
  })
  for (let turns = 0; !state.settled && turns < 10_000; turns++) {
    await turn()
    if (!state.settled && setup.clock.pending > 0) await setup.clock.advance(60_000)
  }
  return reading
}

export function textOfEvents(
  events: readonly ModelEvent[],
  type: 'text-delta' | 'thinking-delta' = 'text-delta',
): string {
  return events.map((event) => (event.type === type ? event.delta : '')).join('')
}
