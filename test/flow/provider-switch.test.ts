import { afterEach, describe, expect, it } from 'vitest'
import type { MessageEntry } from '../../src/core/entry.ts'
import type { EntryId } from '../../src/core/ids.ts'
import { toolCallsOf, type AssistantMessage, type Message } from '../../src/core/message.ts'
import { createBudget } from '../../src/history/budget.ts'
import { prepareHistory } from '../../src/history/prepare.ts'
import { systemClock } from '../../src/platform/system.ts'
import { createHttpClient } from '../../src/platform/undici-http-client.ts'
import type { ProviderConfig } from '../../src/provider/provider-config.ts'
import type { ToolSpec } from '../../src/provider/provider.ts'
import { createProviders, type Providers, type ResolvedModel } from '../../src/provider/registry.ts'
import type { SimulatedApi } from '../../src/simulator/provider/script.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { serveSimulator, type Served } from '../support/served-simulator.ts'

interface Stop {
  readonly api: SimulatedApi
  readonly ref: string
  readonly config: ProviderConfig
}

const ROUTE: readonly Stop[] = [
  { api: 'anthropic-messages', ref: 'anthropic/claude-sonnet-4-5', config: { type: 'anthropic' } },
  { api: 'google-generative-ai', ref: 'google/gemini-3-flash-preview', config: { type: 'google' } },
  { api: 'openai-responses', ref: 'openai/gpt-5', config: { type: 'openai-responses' } },
  { api: 'openai-completions', ref: 'chat/gpt-4o', config: { type: 'openai-completions' } },
  { api: 'mistral-conversations', ref: 'mistral/magistral-medium-latest', config: { type: 'mistral' } },
]

const TOOL: ToolSpec = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** A conversation as a transcript holds it; every request is prepared and encoded anew for the model it goes to. */
class Conversation {
  readonly #entries: MessageEntry[] = []

  append(message: Message): void {
    const parentId = this.#entries.at(-1)?.id ?? null
    const id = `e${this.#entries.length}` as EntryId
    this.#entries.push({ type: 'message', id, parentId, timestamp: new Date(0).toISOString(), message })
  }

  async ask({ provider, model, info }: ResolvedModel): Promise<AssistantMessage> {
    const target = { provider: provider.name, api: provider.api, model, acceptsImages: info.images }
    const budget = createBudget({ contextWindow: info.contextWindow })
    const { messages } = prepareHistory({ entries: this.#entries, target, budget, historyLimit: 0, now: 0 })
    const request = {
      model,
      system: 'Be brief.',
      messages,
      tools: [TOOL],
      maxOutputTokens: 4096,
      thinkingLevel: 'medium',
    }
    for await (const event of provider.stream(provider.encode(request), new AbortController().signal)) {
      if (event.type !== 'end') continue
      const answer = { ...event.message, timestamp: 0 }
      this.append(answer)
      return answer
    }
    throw new Error('no answer')
  }
}

async function open(): Promise<{ readonly providers: Providers; readonly services: ReadonlyMap<string, Served> }> {
  const http = createHttpClient()
  const services = new Map<string, Served>()
  const configs: Record<string, ProviderConfig> = {}
  for (const { api, ref, config } of ROUTE) {
    const served = await serveSimulator({ api, profile: 'strict' })
    const [name = ''] = ref.split('/')
    services.set(ref, served)
    configs[name] = { ...config, apiKey: 'sk-test', baseUrl: served.baseUrl, retry: { maxAttempts: 1 } }
    closers.push(() => served.close())
  }
  closers.unshift(() => http.close())
  return { providers: createProviders(configs, { http, clock: systemClock, ids: new SeededIds(3) }), services }
}

describe('one conversation with tools', () => {
  it('goes Anthropic, Google, OpenAI Responses, OpenAI Chat, Mistral, twice round, in the middle of tool loops too', async () => {
    const { providers, services } = await open()
    const conversation = new Conversation()
    const said: string[] = []
    for (let lap = 0; lap < 2; lap++) {
      for (const [at, { ref }] of ROUTE.entries()) {
        const next = ROUTE[(at + 1) % ROUTE.length]?.ref ?? ref
        const text = `lap ${lap}, stop ${at}: how much is it? 世界 👋`
        said.push(text)
        conversation.append({ role: 'user', content: text, timestamp: 0 })
        services.get(ref)?.simulator.enqueue({
          blocks: [
            { type: 'thinking', thinking: `thinking of ${ref}` },
            { type: 'text', text: 'I add.' },
            { type: 'toolCall', name: 'add', arguments: { a: lap, b: at } },
            { type: 'toolCall', name: 'add', arguments: { a: 1, b: 1 } },
          ],
          delivery: { splitBytes: 11 },
        })
        const calling = await conversation.ask(providers.resolve(ref))
        expect(toolCallsOf(calling)).toHaveLength(2)
        for (const call of toolCallsOf(calling)) {
          const content = [{ type: 'text' as const, text: `result of ${call.id.length}` }]
          conversation.append({
            role: 'toolResult',
            toolCallId: call.id,
            toolName: call.name,
            content,
            isError: false,
            timestamp: 0,
          })
        }
        // The results go to the next model: it has to take over the loop of another one.
        services.get(next)?.simulator.enqueue({
          blocks: [
            { type: 'thinking', thinking: 'so' },
            { type: 'text', text: `answer ${said.length}` },
          ],
        })
        const answer = await conversation.ask(providers.resolve(next))
        expect(answer.stopReason).toBe('stop')
      }
    }
    const requests = [...services.values()].flatMap(({ simulator }) => simulator.requests)
    expect(requests).toHaveLength(20)
    expect(requests.flatMap(({ violations }) => violations)).toEqual([])
    const last = services.get(ROUTE[0]?.ref ?? '')?.simulator.requests.at(-1)
    for (const text of said) expect(last?.bodyText).toContain(text)
  })
})
