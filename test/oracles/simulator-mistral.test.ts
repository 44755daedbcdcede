import { Mistral } from '@mistralai/mistralai'
import { afterEach, expect, test } from 'vitest'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { type Served, serveSimulator, untilAnswered } from '../support/served-simulator.ts'

let served: Served | undefined
afterEach(() => served?.close())

async function client(...script: ScriptedReply[]): Promise<Mistral> {
  served = await serveSimulator({ api: 'mistral-conversations', script, apiKey: 'key-test' })
  return new Mistral({ apiKey: 'key-test', serverURL: served.baseUrl, retryConfig: { strategy: 'none' } })
}

type Messages = Parameters<Mistral['chat']['complete']>[0]['messages']

const model = 'mistral-large-latest'
const hello = { model, messages: [{ role: 'user' as const, content: 'hello' }] }
const parameters = { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] }
const tools = [{ type: 'function' as const, function: { name: 'time', parameters } }]

test('the SDK reads a streamed answer with text and parallel calls, cut at any byte', async () => {
  const mistral = await client({
    blocks: [
      { type: 'text', text: '我看看 🕰️' },
      { type: 'toolCall', name: 'time', arguments: { zone: 'Zürich' } },
      { type: 'toolCall', name: 'time', arguments: { deep: [1, { a: 'ß' }] } },
    ],
    usage: { input: 5, output: 6 },
    delivery: { splitBytes: 3 },
  })
  let text = ''
  const calls: unknown[] = []
  let finish
  let usage
  for await (const { data } of await mistral.chat.stream({ ...hello, tools })) {
    const choice = data.choices[0]
    if (typeof choice?.delta.content === 'string') text += choice.delta.content
    calls.push(...(choice?.delta.toolCalls ?? []).map((call) => call.function.arguments))
    finish = choice?.finishReason
    usage = data.usage
  }
  expect(text).toBe('我看看 🕰️')
  expect(calls).toEqual(['{"zone":"Zürich"}', '{"deep":[1,{"a":"ß"}]}'])
  expect(finish).toBe('tool_calls')
  expect(usage).toMatchObject({ promptTokens: 5, completionTokens: 6, totalTokens: 11 })
})

test('fragmented arguments arrive under their index', async () => {
  const mistral = await client({
    blocks: [{ type: 'toolCall', name: 'time', arguments: { zone: 'Europe/Zürich' } }],
    delivery: { deltaChars: 5 },
  })
  let text = ''
  for await (const { data } of await mistral.chat.stream({ ...hello, tools })) {
    for (const call of data.choices[0]?.delta.toolCalls ?? []) text += call.function.arguments as string
  }
  expect(text).toBe('{"zone":"Europe/Zürich"}')
})

test('thinking comes as chunks, streamed and whole', async () => {
  const blocks = [
    { type: 'thinking' as const, thinking: 'hm' },
    { type: 'text' as const, text: 'hi' },
  ]
  const mistral = await client({ blocks }, { blocks })
  const whole = await mistral.chat.complete(hello)
  expect(whole.choices?.[0]?.message?.content).toMatchObject([
    { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
    { type: 'text', text: 'hi' },
  ])
  const kinds: unknown[] = []
  for await (const { data } of await mistral.chat.stream(hello)) {
    const content = data.choices[0]?.delta.content
    if (Array.isArray(content)) kinds.push(...content.map((chunk) => chunk.type))
  }
  expect(kinds).toEqual(['thinking'])
})

test('a conversation with two rounds of tools goes through', async () => {
  const mistral = await client()
  const messages: Messages = [
    { role: 'user', content: 'remember that Ann is my sister. use time {"zone":"UTC"} then use time {"zone":"CET"}' },
  ]
  const { text, rounds } = await untilAnswered(async () => {
    const { choices } = await mistral.chat.complete({ model, messages, tools })
    const message = choices?.[0]?.message
    const calls = message?.toolCalls ?? []
    if (calls.length === 0) return JSON.stringify(message?.content)
    messages.push({ role: 'assistant', content: message?.content ?? '', toolCalls: calls })
    for (const call of calls) {
      messages.push({ role: 'tool', toolCallId: call.id ?? '', name: call.function.name, content: 'noon' })
    }
    return undefined
  })
  expect(text).toContain('I remember: Ann is my sister')
  expect(rounds).toBe(2)
})

test('refusals carry the service’s status and body', async () => {
  const mistral = await client(
    { refuse: 'rate-limit', retryAfterSeconds: 2 },
    { refuse: 'unavailable' },
    { refuse: 'context-overflow' },
  )
  const ask = (): Promise<unknown> => mistral.chat.complete(hello)
  await expect(ask()).rejects.toMatchObject({ statusCode: 429 })
  await expect(ask()).rejects.toMatchObject({ statusCode: 503 })
  await expect(ask()).rejects.toThrow('too large for model')
  const badId: Messages = [
    ...hello.messages,
    { role: 'assistant', content: '', toolCalls: [{ id: 'call_1', function: { name: 'time', arguments: '{}' } }] },
    { role: 'tool', toolCallId: 'call_1', content: 'noon' },
  ]
  await expect(mistral.chat.complete({ model, messages: badId })).rejects.toThrow(
    'must be a-z, A-Z, 0-9, with a length of 9',
  )
  const afterTool: Messages = [
    ...hello.messages,
    { role: 'assistant', content: '', toolCalls: [{ id: 'aaaaaaaa1', function: { name: 'time', arguments: '{}' } }] },
    { role: 'tool', toolCallId: 'aaaaaaaa1', content: 'noon' },
    { role: 'user', content: 'and?' },
  ]
  await expect(mistral.chat.complete({ model, messages: afterTool })).rejects.toThrow(
    "Unexpected role 'user' after role 'tool'",
  )
  const stranger = new Mistral({ apiKey: 'wrong', serverURL: served?.baseUrl ?? '', retryConfig: { strategy: 'none' } })
  await expect(stranger.chat.complete(hello)).rejects.toMatchObject({ statusCode: 401 })
})

test('a broken connection in mid-stream reaches the caller', async () => {
  const mistral = await client({
    blocks: [{ type: 'text', text: 'a long answer that never ends well' }],
    delivery: { cutAfterBytes: 400 },
  })
  const read = async (): Promise<void> => {
    for await (const { data } of await mistral.chat.stream(hello)) expect(data.choices).toBeDefined()
  }
  await expect(read()).rejects.toThrow(/./)
})
