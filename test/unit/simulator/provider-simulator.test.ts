import { expect, test } from 'vitest'
import {
  createProviderSimulator,
  type ProviderSimulator,
  type SimulatorOptions,
} from '../../../src/simulator/provider/simulator.ts'
import type { SimulatedApi } from '../../../src/simulator/provider/script.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

/** A prime, so that the cuts fall on all kinds of places. */
const CUT_STRIDE = 37
const CANARY = 'sk-canary-8d1f'

function simulate(api: SimulatedApi, options: Partial<SimulatorOptions> = {}): ProviderSimulator {
  return createProviderSimulator({ api, clock: new ManualClock(), ids: new SeededIds(1), ...options })
}

const REQUESTS: Readonly<Record<SimulatedApi, { path: string; body: Record<string, unknown> }>> = {
  'anthropic-messages': {
    path: '/v1/messages',
    body: { model: 'claude-haiku-4-5', max_tokens: 64, stream: true, messages: [{ role: 'user', content: 'hello' }] },
  },
  'openai-responses': { path: '/v1/responses', body: { model: 'gpt-5.1', stream: true, input: 'hello' } },
  'openai-completions': {
    path: '/v1/chat/completions',
    body: { model: 'gpt-4.1', stream: true, messages: [{ role: 'user', content: 'hello' }] },
  },
  'google-generative-ai': {
    path: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
  },
  'mistral-conversations': {
    path: '/v1/chat/completions',
    body: { model: 'mistral-large-latest', stream: true, messages: [{ role: 'user', content: 'hello' }] },
  },
}

function request(api: SimulatedApi, change: Record<string, unknown> = {}, key: string | undefined = CANARY): Request {
  const { path, body } = REQUESTS[api]
  const headers: Record<string, string> = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
  if (key !== undefined && key !== '') {
    headers['x-api-key'] = key
    headers['x-goog-api-key'] = key
    headers.authorization = `Bearer ${key}`
  }
  return new Request(`http://simulator${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ ...body, ...change }),
  })
}

const APIS = Object.keys(REQUESTS) as SimulatedApi[]

test.each(APIS)('%s: the same script and ids give the same bytes', async (api) => {
  const script = [
    {
      blocks: [
        { type: 'text' as const, text: 'hi' },
        { type: 'toolCall' as const, name: 'time', arguments: {} },
      ],
    },
  ]
  const [first, second] = await Promise.all(
    [simulate(api, { script }), simulate(api, { script })].map(async (one) => (await one.handle(request(api))).text()),
  )
  expect(first).toBe(second)
  expect(first).not.toBe('')
})

test.each(APIS)('%s: chunk boundaries change nothing but the chunks', async (api) => {
  const blocks = [{ type: 'text' as const, text: '你好 🕰️ straße' }]
  const read = async (splitBytes?: number): Promise<string> => {
    const simulator = simulate(api, { script: [{ blocks, delivery: splitBytes === undefined ? {} : { splitBytes } }] })
    return (await simulator.handle(request(api))).text()
  }
  // Padding and ids draw from the same source as the splitting, so the texts are compared, not the frames.
  const said = (text: string): string =>
    [...text.matchAll(/"(?:text|delta|content)":"([^"]*)"/g)].map((match) => match[1]).join('')
  expect(said(await read(2))).toBe(said(await read()))
})

test.each(APIS)('%s: no key and a wrong key are refused, and no key is ever kept', async (api) => {
  const simulator = simulate(api, { apiKey: CANARY })
  const statuses = []
  for (const key of ['', 'sk-wrong', CANARY]) statuses.push((await simulator.handle(request(api, {}, key))).status)
  expect(statuses[2]).toBe(200)
  expect(statuses.slice(0, 2).every((status) => [400, 401, 403].includes(status))).toBe(true)
  await simulator.handle(new Request(`http://simulator/v1beta/models?key=${CANARY}`))
  expect(JSON.stringify(simulator.requests)).not.toContain(CANARY)
})

test.each(APIS)(
  '%s: a request that breaks a rule is refused with 4xx, kept with its violations, and uses up no script',
  async (api) => {
    const simulator = simulate(api, { script: [{ blocks: [{ type: 'text', text: 'scripted' }] }] })
    const broken = await simulator.handle(request(api, { nonsense: true }))
    expect(broken.status).toBeGreaterThanOrEqual(400)
    expect(broken.status).toBeLessThan(500)
    expect(simulator.requests[0]?.violations[0]?.rule).toContain('unknown-field')
    expect(await (await simulator.handle(request(api))).text()).toContain('scripted')
  },
)

test.each(APIS)('%s: a body that is not JSON and an unknown path are refused', async (api) => {
  const simulator = simulate(api)
  const headers = {
    'x-api-key': 'k',
    'x-goog-api-key': 'k',
    authorization: 'Bearer k',
    'anthropic-version': '2023-06-01',
  }
  const { path } = REQUESTS[api]
  const statuses = [
    (await simulator.handle(new Request(`http://simulator${path}`, { method: 'POST', headers, body: '{"cut' }))).status,
    (await simulator.handle(new Request('http://simulator/v9/nothing', { headers }))).status,
  ]
  expect(statuses.every((status) => status >= 400 && status < 500)).toBe(true)
})

test.each(APIS)('%s: a long history is refused as too long for the model', async (api) => {
  const simulator = simulate(api, { contextTokens: 5 })
  const response = await simulator.handle(request(api))
  expect(response.status).toBe(400)
  expect(await response.text()).toMatch(/too long|context|exceeds the maximum|too large/)
})

test.each(APIS)('%s: what is kept is bounded', async (api) => {
  const simulator = simulate(api, { maxKept: 2, maxKeptBodyChars: 10 })
  for (let round = 0; round < 5; round++) await (await simulator.handle(request(api))).text()
  expect(simulator.requests.map((seen) => seen.index)).toEqual([3, 4])
  expect(simulator.requests.every((seen) => seen.bodyText.length === 10)).toBe(true)
})

test.each(APIS)('%s: silence before headers, before the first byte and between events is the clock’s', async (api) => {
  const clock = new ManualClock()
  const delivery = { headersDelayMs: 1000, firstByteDelayMs: 2000, betweenEventsMs: 10 }
  const simulator = simulate(api, { clock, script: [{ blocks: [{ type: 'text', text: 'hi' }], delivery }] })
  let text: string | undefined
  let hasHeaders = false
  const done = simulator.handle(request(api)).then(async (response) => {
    hasHeaders = true
    text = await response.text()
  })
  await clock.advance(999)
  expect(hasHeaders).toBe(false)
  await clock.advance(1)
  expect(hasHeaders).toBe(true)
  await clock.advance(1999)
  expect(text).toBeUndefined()
  await clock.runUntil(() => text !== undefined)
  await done
  expect(text).toContain('hi')
  expect(simulator.requests[0]?.outcome).toBe('completed')
  expect(clock.pending).toBe(0)
})

test.each(APIS)('%s: a client that leaves in mid-stream is seen, and nothing keeps running', async (api) => {
  const clock = new ManualClock()
  const simulator = simulate(api, {
    clock,
    script: [{ blocks: [{ type: 'text', text: 'a long answer' }], delivery: { betweenEventsMs: 1000 } }],
  })
  const response = await simulator.handle(request(api))
  const reader = response.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  expect(simulator.requests[0]?.outcome).toBe('aborted')
  expect(clock.pending).toBe(0)
})

test.each(APIS)('%s: a stream cut anywhere is a prefix of the whole', async (api) => {
  const blocks = [{ type: 'text' as const, text: '🕰️' }]
  const whole = Buffer.from(await (await simulate(api, { script: [{ blocks }] }).handle(request(api))).arrayBuffer())
  for (let at = 0; at < whole.length; at += CUT_STRIDE) {
    const simulator = simulate(api, { script: [{ blocks, delivery: { cutAfterBytes: at } }] })
    const response = await simulator.handle(request(api))
    const chunks: Uint8Array[] = []
    const reader = response.body?.getReader()
    const read = async (): Promise<void> => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) chunks.push(next.value)
    }
    await expect(read()).rejects.toThrow('breaks the connection')
    expect(Buffer.concat(chunks).equals(whole.subarray(0, at))).toBe(true)
    expect(simulator.requests[0]?.outcome).toBe('cut')
  }
})

test('Anthropic events stand in the service’s order and framing', async () => {
  const script = [{ blocks: [{ type: 'text' as const, text: 'hi' }], delivery: { pingEvery: 2 } }]
  const text = await (await simulate('anthropic-messages', { script }).handle(request('anthropic-messages'))).text()
  const names = [...text.matchAll(/^event: (.+)$/gm)].map((match) => match[1])
  expect(names).toEqual([
    'message_start',
    'content_block_start',
    'ping',
    'content_block_delta',
    'content_block_stop',
    'ping',
    'message_delta',
    'message_stop',
    'ping',
  ])
  expect(text).toContain('event: ping\ndata: {"type": "ping"}\n\n')
})

test('Anthropic demands its version header', async () => {
  const bare = new Request('http://simulator/v1/messages', {
    method: 'POST',
    headers: { 'x-api-key': 'k' },
    body: '{}',
  })
  const response = await simulate('anthropic-messages').handle(bare)
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    type: 'error',
    error: { type: 'invalid_request_error', message: 'anthropic-version: header is required' },
  })
})

test('chat chunks end with usage when asked for, and [DONE]', async () => {
  const simulator = simulate('openai-completions')
  const text = await (
    await simulator.handle(request('openai-completions', { stream_options: { include_usage: true } }))
  ).text()
  const lines = text.trimEnd().split('\n\n')
  expect(lines.at(-1)).toBe('data: [DONE]')
  expect(lines.at(-2)).toContain('"choices":[],"usage":{')
  expect(lines.at(-3)).toContain('"usage":null')
})

test('Google ends its lines with CR LF, and streams an array without alt=sse', async () => {
  const simulator = simulate('google-generative-ai')
  const events = await (await simulator.handle(request('google-generative-ai'))).text()
  expect(events.endsWith('\r\n\r\n')).toBe(true)
  expect(events.replaceAll('\r\n', '')).not.toContain('\n')
  const { body } = REQUESTS['google-generative-ai']
  const plain = new Request('http://simulator/v1beta/models/gemini-2.5-flash:streamGenerateContent?key=k', {
    method: 'POST',
    body: JSON.stringify(body),
  })
  const array: unknown = await (await simulator.handle(plain)).json()
  expect(Array.isArray(array)).toBe(true)
})

test('a compatible server needs no key, shows its reasoning and insists on alternation', async () => {
  const simulator = simulate('openai-completions', {
    dialect: 'compatible',
    script: [{ blocks: [{ type: 'thinking', thinking: 'hm' }] }],
  })
  expect(await (await simulator.handle(request('openai-completions', {}, ''))).text()).toContain(
    '"reasoning_content":"hm"',
  )
  const twice = {
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content: 'b' },
    ],
  }
  const refused = await simulator.handle(request('openai-completions', twice, ''))
  expect(await refused.text()).toContain('Conversation roles must alternate')
})

test('Mistral reports schema faults all at once and in its validator’s form', async () => {
  const response = await simulate('mistral-conversations').handle(
    request('mistral-conversations', { input: 1, seed: 2 }),
  )
  expect(response.status).toBe(422)
  expect(await response.json()).toMatchObject({
    object: 'error',
    message: {
      detail: [
        { type: 'extra_forbidden', loc: ['body', 'input'] },
        { type: 'extra_forbidden', loc: ['body', 'seed'] },
      ],
    },
  })
})

test('with thinking on, the answering model’s tool loops are accepted when they are replayed', async () => {
  const simulator = simulate('anthropic-messages')
  const tools = [{ name: 'time', input_schema: { type: 'object' } }]
  const settings = { stream: false, max_tokens: 4096, tools, thinking: { type: 'enabled', budget_tokens: 1024 } }
  const ask = { role: 'user', content: 'use time' }
  const first = (await (
    await simulator.handle(request('anthropic-messages', { ...settings, messages: [ask] }))
  ).json()) as {
    content: { type: string; id?: string }[]
  }
  expect(first.content.map((block) => block.type)).toEqual(['thinking', 'tool_use'])
  const result = { type: 'tool_result', tool_use_id: first.content[1]?.id, content: 'noon' }
  const messages = [ask, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }]
  expect((await simulator.handle(request('anthropic-messages', { ...settings, messages }))).status).toBe(200)
})

test('of a body beyond the limit only the beginning is kept', async () => {
  const simulator = simulate('openai-responses', { maxKeptBodyChars: 100 })
  await (await simulator.handle(request('openai-responses', { input: 'x'.repeat(1000) }))).text()
  expect(simulator.requests[0]).toMatchObject({ body: undefined, conversation: { turns: [] } })
})
