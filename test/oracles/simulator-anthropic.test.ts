import Anthropic, {
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from '@anthropic-ai/sdk'
import { afterEach, expect, test } from 'vitest'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { type Served, serveSimulator, untilAnswered } from '../support/served-simulator.ts'

let served: Served | undefined
afterEach(() => served?.close())

async function client(...script: ScriptedReply[]): Promise<Anthropic> {
  served = await serveSimulator({ api: 'anthropic-messages', script, apiKey: 'sk-test' })
  return new Anthropic({ baseURL: served.baseUrl, apiKey: 'sk-test', maxRetries: 0 })
}

const model = 'claude-haiku-4-5'
const hello = { model, max_tokens: 64, messages: [{ role: 'user' as const, content: 'hello' }] }
const tools = [
  {
    name: 'time',
    input_schema: { type: 'object' as const, properties: { zone: { type: 'string' } }, required: ['zone'] },
  },
]

test('the SDK reads a streamed answer with thinking, text and parallel calls, cut at any byte', async () => {
  const anthropic = await client({
    blocks: [
      { type: 'thinking', thinking: 'Zwei Uhren 🕰️ sind besser.' },
      { type: 'text', text: '我看看 🕰️' },
      { type: 'toolCall', name: 'time', arguments: { zone: 'Europe/Zürich', deep: [1, { a: 'ß' }] } },
      { type: 'toolCall', name: 'time', arguments: {} },
    ],
    usage: { input: 10, output: 20, cacheRead: 30, cacheWrite: 40 },
    delivery: { splitBytes: 3, pingEvery: 2, deltaChars: 5 },
  })
  const message = await anthropic.messages.stream({ ...hello, tools }).finalMessage()
  expect(message.content.map((block) => block.type)).toEqual(['thinking', 'text', 'tool_use', 'tool_use'])
  expect(message.content[0]).toMatchObject({ thinking: 'Zwei Uhren 🕰️ sind besser.' })
  expect(message.content[1]).toMatchObject({ text: '我看看 🕰️' })
  expect(message.content[2]).toMatchObject({ input: { zone: 'Europe/Zürich', deep: [1, { a: 'ß' }] } })
  expect(message.content[3]).toMatchObject({ input: {} })
  expect(message.stop_reason).toBe('tool_use')
  expect(message.usage).toMatchObject({
    input_tokens: 10,
    output_tokens: 20,
    cache_read_input_tokens: 30,
    cache_creation_input_tokens: 40,
  })
})

test('a conversation with two rounds of tools and replayed signatures goes through', async () => {
  const anthropic = await client({
    blocks: [
      { type: 'thinking', thinking: 'hm' },
      { type: 'toolCall', name: 'time', arguments: { zone: 'UTC' } },
    ],
  })
  const messages: Anthropic.MessageParam[] = [
    { role: 'user', content: 'remember that Ann is my sister. use time {"zone":"UTC"} then use time {"zone":"CET"}' },
  ]
  const settings = { model, max_tokens: 4096, tools, thinking: { type: 'enabled' as const, budget_tokens: 1024 } }
  const { text, rounds } = await untilAnswered(async () => {
    const answer = await anthropic.messages.create({ ...settings, messages })
    messages.push({ role: 'assistant', content: answer.content })
    if (answer.stop_reason !== 'tool_use') return JSON.stringify(answer.content)
    const results = answer.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'noon' }] : [],
    )
    messages.push({ role: 'user', content: results })
    return undefined
  })
  expect(text).toContain('I remember: Ann is my sister')
  expect(rounds).toBe(2)
})

test('a tampered thinking block is refused as the service refuses it', async () => {
  const anthropic = await client({
    blocks: [
      { type: 'thinking', thinking: 'hm' },
      { type: 'text', text: 'hi' },
    ],
  })
  const answer = await anthropic.messages.create(hello)
  const content = answer.content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'edited' } : block))
  const replay = {
    ...hello,
    messages: [...hello.messages, { role: 'assistant' as const, content }, { role: 'user' as const, content: 'and?' }],
  }
  await expect(anthropic.messages.create(replay)).rejects.toThrow('Invalid `signature` in `thinking` block')
})

test('refusals become the SDK’s error classes with the service’s words', async () => {
  const anthropic = await client(
    { refuse: 'rate-limit', retryAfterSeconds: 7 },
    { refuse: 'overloaded' },
    { refuse: 'server-error' },
    { refuse: 'not-found' },
  )
  const error = await anthropic.messages.create(hello).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(RateLimitError)
  expect((error as RateLimitError).headers?.get('retry-after')).toBe('7')
  await expect(anthropic.messages.create(hello)).rejects.toMatchObject({ status: 529 })
  await expect(anthropic.messages.create(hello)).rejects.toBeInstanceOf(InternalServerError)
  await expect(anthropic.messages.create(hello)).rejects.toBeInstanceOf(NotFoundError)
  const open = {
    ...hello,
    messages: [...hello.messages, { role: 'assistant' as const, content: '' }, { role: 'user' as const, content: '' }],
  }
  await expect(anthropic.messages.create(open)).rejects.toBeInstanceOf(BadRequestError)
  const stranger = new Anthropic({ baseURL: served?.baseUrl, apiKey: 'sk-wrong', maxRetries: 0 })
  await expect(stranger.messages.create(hello)).rejects.toBeInstanceOf(AuthenticationError)
})

test('an error event and a broken connection in mid-stream reach the caller', async () => {
  const answer = { blocks: [{ type: 'text' as const, text: 'a long answer that never ends well' }] }
  const anthropic = await client(
    { ...answer, delivery: { errorAfterEvents: 4 } },
    { ...answer, delivery: { cutAfterBytes: 600 } },
  )
  await expect(anthropic.messages.stream(hello).finalMessage()).rejects.toThrow('Overloaded')
  await expect(anthropic.messages.stream(hello).finalMessage()).rejects.toThrow(/./)
  expect(served?.simulator.requests.map((request) => request.outcome)).toEqual(['completed', 'cut'])
})

test('tokens are counted and models are listed', async () => {
  const anthropic = await client()
  expect((await anthropic.messages.countTokens({ model, messages: hello.messages })).input_tokens).toBeGreaterThan(0)
  expect((await anthropic.models.list()).data.map((entry) => entry.id)).toEqual(['simulated-anthropic-messages'])
})

test('an abort closes the connection and is seen', async () => {
  const anthropic = await client({ blocks: [{ type: 'text', text: 'slow' }], delivery: { firstByteDelayMs: 60_000 } })
  const stream = anthropic.messages.stream(hello)
  stream.on('error', () => undefined)
  while (served?.simulator.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  stream.abort()
  await expect(stream.finalMessage()).rejects.toBeInstanceOf(APIUserAbortError)
  while (served?.simulator.requests[0]?.outcome === 'running') await new Promise((resolve) => setTimeout(resolve, 5))
  expect(served?.simulator.requests[0]?.outcome).toBe('aborted')
})
