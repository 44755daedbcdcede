import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/core/message.ts'
import { catalogueIds, modelInfo } from '../../../src/provider/catalogue.ts'
import { MODEL_ROWS } from '../../../src/provider/catalogue-data.ts'
import { endpointOf } from '../../../src/provider/endpoint.ts'
import type { ProviderConfig } from '../../../src/provider/provider-config.ts'
import type { ModelProvider } from '../../../src/provider/provider.ts'
import { createProviders, type Providers } from '../../../src/provider/registry.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { collect, fixture } from '../../support/provider-streams.ts'
import { StreamHttp } from '../../support/stream-http.ts'

const demo: ModelProvider = {
  name: 'demo',
  api: 'demo',
  encode: ({ model }) => ({ model, body: '' }),
  async *stream(request) {
    const { model } = request
    yield {
      type: 'end',
      message: {
        role: 'assistant',
        content: [],
        api: 'demo',
        provider: 'demo',
        model,
        usage: NO_USAGE,
        stopReason: 'stop',
      },
    }
  },
}

function providers(configs: Readonly<Record<string, ProviderConfig>>, http = new StreamHttp()): Providers {
  const extra = [{ provider: demo, models: { demo: modelInfo('demo') } }]
  return createProviders(configs, { http, clock: new ManualClock(), ids: new SeededIds(), extra })
}

describe('providers', () => {
  it.each([
    ['anthropic', {}, 'anthropic-messages'],
    ['openai', {}, 'openai-responses'],
    ['openai', { api: 'completions' }, 'openai-completions'],
    ['google', {}, 'google-generative-ai'],
    ['gemini', {}, 'google-generative-ai'],
    ['mistral', {}, 'mistral-conversations'],
    ['deepseek', {}, 'openai-completions'],
    ['my-local', { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:11434/v1' }, 'openai-completions'],
    ['proxy', { type: 'anthropic', baseUrl: 'http://proxy' }, 'anthropic-messages'],
    ['unnamed', { baseUrl: 'http://x' }, 'openai-completions'],
  ] as const)('%s %j speaks %s', (name, config, api) => {
    const { provider, model, ref } = providers({ [name]: config }).resolve(`${name}/some/model`)
    expect([provider.api, provider.name, model, ref]).toEqual([api, name, 'some/model', `${name}/some/model`])
  })

  it('refuse an entry that says too little, and an address that is none', () => {
    expect(() => providers({ mystery: {} })).toThrow(/providers\.mystery needs a "type"/)
    expect(() => providers({ mine: { type: 'openai-compatible' } })).toThrow(/baseUrl/)
    expect(() => providers({ mine: { baseUrl: 'file:///etc/passwd' } })).toThrow(/not an http or https address/)
  })

  it('ask a known provider to think in its own way, whether its type was written down or not', () => {
    for (const config of [{}, { type: 'openai-compatible' }] as const) {
      const { provider } = providers({ deepseek: config }).resolve('deepseek/deepseek-v4-pro')
      const messages = [{ role: 'user' as const, content: '?', timestamp: 0 }]
      const request = {
        model: 'deepseek-v4-pro',
        system: '',
        messages,
        tools: [],
        maxOutputTokens: 9,
        thinkingLevel: 'high',
      }
      expect(JSON.parse(provider.encode(request).body)).toMatchObject({ thinking: { type: 'enabled' } })
    }
  })

  it('take built providers, whose name alone stands for their model', () => {
    const { provider, model, ref } = providers({}).resolve('demo')
    expect([provider, model, ref]).toEqual([demo, 'demo', 'demo/demo'])
  })

  it('name what is configured when a model is unknown', () => {
    expect(() => providers({ anthropic: {} }).resolve('openai/gpt-5')).toThrow(/Configured providers: anthropic, demo/)
    expect(() => providers({ anthropic: {} }).resolve('anthropic/')).toThrow(/no model/)
  })

  it('list the catalogue of the vendors and the models a user described', () => {
    const list = providers({
      anthropic: { apiKey: 'k' },
      home: { baseUrl: 'http://x', models: { llama: { contextWindow: 8192, prices: { input: 1 } } } },
    }).list()
    expect(list.find(({ ref }) => ref === 'home/llama')?.info).toMatchObject({
      contextWindow: 8192,
      prices: { input: 1, output: 0 },
      known: false,
    })
    expect(list.filter(({ provider }) => provider === 'anthropic').length).toBe(catalogueIds('anthropic').length)
    expect(list.filter(({ provider }) => provider === 'home')).toHaveLength(1)
  })

  it('list the models the configuration asks, and a vendor’s behind another address too', () => {
    const list = createProviders(
      { home: { baseUrl: 'http://x' }, proxy: { type: 'google', baseUrl: 'http://y' }, empty: { baseUrl: 'http://z' } },
      { http: new StreamHttp({}), clock: new ManualClock(), ids: new SeededIds(), asked: ['home/llama', 'demo'] },
    )
    const refs = list.list().map(({ ref }) => ref)
    expect(refs).toContain('home/llama')
    expect(refs.filter((ref) => ref.startsWith('proxy/')).length).toBe(catalogueIds('google').length)
    expect(list.resolve('home').ref).toBe('home/llama')
    expect([...list.names()]).toEqual(['home', 'proxy', 'empty'])
  })

  it('cost what the catalogue or the user says', async () => {
    const http = new StreamHttp({ body: fixture('anthropic-text') })
    const clock = new ManualClock()
    const config = {
      anthropic: {
        apiKey: 'k',
        models: { 'model-1': { prices: { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 } } },
      },
    }
    const { provider } = createProviders(config, { http, clock, ids: new SeededIds() }).resolve('anthropic/model-1')
    const { message } = await collect({ provider, clock })
    expect(message?.usage.cost).toEqual({
      input: (25 * 2) / 1e6,
      output: (15 * 10) / 1e6,
      cacheRead: (2000 * 0.2) / 1e6,
      cacheWrite: (100 * 2.5) / 1e6,
      total: expect.closeTo((25 * 2 + 15 * 10 + 2000 * 0.2 + 100 * 2.5) / 1e6, 12),
    })
  })

  it('send configured headers, the key in the header of its API, and stay at the configured address', async () => {
    const http = new StreamHttp({ body: fixture('google-text') })
    const clock = new ManualClock()
    const config = {
      g: { type: 'google', apiKey: 'the-key', baseUrl: 'http://sim:1/v1beta/', headers: { 'x-team': 'blue' } },
    } as const
    const { provider } = createProviders(config, { http, clock, ids: new SeededIds() }).resolve('g/model-1')
    await collect({ provider, clock })
    expect(http.requests[0]).toMatchObject({
      method: 'POST',
      url: 'http://sim:1/v1beta/models/model-1:streamGenerateContent?alt=sse',
      headers: { 'x-goog-api-key': 'the-key', 'x-team': 'blue', 'content-type': 'application/json' },
    })
  })
})

describe('addresses', () => {
  it.each([
    ['anthropic-messages', undefined, 'https://api.anthropic.com/v1/messages'],
    ['anthropic-messages', 'http://h:1', 'http://h:1/v1/messages'],
    ['anthropic-messages', 'http://h:1/v1/', 'http://h:1/v1/messages'],
    ['openai-responses', undefined, 'https://api.openai.com/v1/responses'],
    ['openai-completions', 'http://h/api/paas/v4', 'http://h/api/paas/v4/chat/completions'],
    ['openai-completions', 'http://h/v1beta/openai/', 'http://h/v1beta/openai/chat/completions'],
    ['openai-completions', 'http://h/openai?api-version=2', 'http://h/openai/v1/chat/completions?api-version=2'],
    ['google-generative-ai', 'http://h', 'http://h/v1beta/models/m%2Fx:streamGenerateContent?alt=sse'],
    ['mistral-conversations', 'http://h/v1', 'http://h/v1/chat/completions'],
  ] as const)('%s at %s is %s', (api, base, expected) => {
    expect(endpointOf(api, base, 'p')('m/x')).toBe(expected)
  })
})

describe('the catalogue', () => {
  it.each([
    ['claude-sonnet-4-5-20250929', 200_000, 64_000],
    ['anthropic/claude-opus-4.6', 1_000_000, 128_000],
    ['gpt-5-2025-08-07', 400_000, 128_000],
    ['gemini-2.5-pro', 1_048_576, 65_536],
  ])('finds %s under its dated and its vendor names', (id, contextWindow, maxOutputTokens) => {
    expect(modelInfo(id)).toMatchObject({ contextWindow, maxOutputTokens, known: true })
  })

  it.each(['claude-next-9', 'gemini-7-ultra', 'gpt-7', 'llama3.2:3b', ''])('guesses carefully about %s', (id) => {
    const info = modelInfo(id)
    expect(info.known).toBe(false)
    expect(info.maxOutputTokens).toBeLessThan(info.contextWindow)
    expect(info.prices).toEqual({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 })
  })

  it('lets a user override every field', () => {
    const info = modelInfo('gpt-5', { contextWindow: 1, images: false, prices: { output: 3 } })
    expect(info).toMatchObject({ contextWindow: 1, images: false, known: true, prices: { input: 1.25, output: 3 } })
  })

  it('holds sane rows', () => {
    for (const [provider, rows] of Object.entries(MODEL_ROWS)) {
      for (const [id, [contextWindow, maxOutput, , ...prices]] of Object.entries(rows)) {
        expect(maxOutput, `${provider}/${id}`).toBeLessThanOrEqual(contextWindow)
        expect(prices.every((price) => price >= 0 && price < 1000)).toBe(true)
      }
    }
  })
})
