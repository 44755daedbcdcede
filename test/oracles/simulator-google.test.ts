import { ApiError, type Content, GoogleGenAI, type Part } from '@google/genai'
import { afterEach, expect, test } from 'vitest'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { type Served, serveSimulator, untilAnswered } from '../support/served-simulator.ts'

let served: Served | undefined
afterEach(() => served?.close())

async function client(...script: ScriptedReply[]): Promise<GoogleGenAI> {
  served = await serveSimulator({ api: 'google-generative-ai', script, apiKey: 'key-test' })
  return new GoogleGenAI({ apiKey: 'key-test', httpOptions: { baseUrl: served.baseUrl } })
}

const model = 'gemini-3-pro-preview'
const parametersJsonSchema = { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] }
const config = { tools: [{ functionDeclarations: [{ name: 'time', parametersJsonSchema }] }] }

test('the SDK reads a streamed answer with thoughts, text and parallel calls, cut at any byte', async () => {
  const google = await client({
    blocks: [
      { type: 'thinking', thinking: 'zwei Uhren 🕰️' },
      { type: 'text', text: '我看看 🕰️' },
      { type: 'toolCall', name: 'time', arguments: { zone: 'Zürich' } },
      { type: 'toolCall', name: 'time', arguments: { deep: [1, { a: 'ß' }] } },
    ],
    usage: { input: 11, output: 12, cacheRead: 3, reasoning: 4 },
    delivery: { splitBytes: 3, deltaChars: 4 },
  })
  const parts: Part[] = []
  let last
  for await (const chunk of await google.models.generateContentStream({ model, contents: 'hello', config })) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
    last = chunk
  }
  const text = (isThought: boolean): string =>
    parts.map((part) => ((part.thought ?? false) === isThought ? (part.text ?? '') : '')).join('')
  expect(text(true)).toBe('zwei Uhren 🕰️')
  expect(text(false)).toBe('我看看 🕰️')
  expect(parts.flatMap((part) => (part.functionCall === undefined ? [] : [part.functionCall.args]))).toEqual([
    { zone: 'Zürich' },
    { deep: [1, { a: 'ß' }] },
  ])
  expect(last?.candidates?.[0]?.finishReason).toBe('STOP')
  expect(last?.usageMetadata).toMatchObject({
    promptTokenCount: 11,
    thoughtsTokenCount: 4,
    cachedContentTokenCount: 3,
    totalTokenCount: 23,
  })
})

test('a conversation with two rounds of tools and returned signatures goes through', async () => {
  const google = await client()
  const contents: Content[] = [
    {
      role: 'user',
      parts: [{ text: 'remember that Ann is my sister. use time {"zone":"UTC"} then use time {"zone":"CET"}' }],
    },
  ]
  const { text, rounds } = await untilAnswered(async () => {
    const answer = await google.models.generateContent({ model, contents, config })
    contents.push(answer.candidates?.[0]?.content ?? {})
    const calls = answer.functionCalls
    if (calls === undefined) return answer.text
    const parts = calls.map(({ id = '', name = '' }) => ({
      functionResponse: { id, name, response: { output: 'noon' } },
    }))
    contents.push({ role: 'user', parts })
    return undefined
  })
  expect(text).toContain('I remember: Ann is my sister')
  expect(rounds).toBe(2)
})

test('a call returned without its signature, or with another, is refused', async () => {
  const google = await client()
  const ask: Content = { role: 'user', parts: [{ text: 'use time' }] }
  const call = { functionCall: { name: 'time', args: { zone: 'UTC' } } }
  const result: Content = {
    role: 'user',
    parts: [{ functionResponse: { name: 'time', response: { output: 'noon' } } }],
  }
  const send = (part: Part): Promise<unknown> =>
    google.models.generateContent({ model, config, contents: [ask, { role: 'model', parts: [part] }, result] })
  await expect(send(call)).rejects.toThrow('missing a thought_signature')
  await expect(send({ ...call, thoughtSignature: 'AAAA' })).rejects.toThrow('Corrupted thought signature')
  await expect(send({ ...call, thoughtSignature: 'skip_thought_signature_validator' })).resolves.toBeDefined()
})

test('refusals become the SDK’s ApiError with the service’s status and words', async () => {
  const google = await client(
    { refuse: 'rate-limit', retryAfterSeconds: 17 },
    { refuse: 'overloaded' },
    { refuse: 'context-overflow' },
  )
  const ask = (): Promise<unknown> => google.models.generateContent({ model, contents: 'hello' })
  const error = await ask().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ApiError)
  expect((error as ApiError).message).toContain('"retryDelay":"17s"')
  await expect(ask()).rejects.toMatchObject({ status: 503 })
  await expect(ask()).rejects.toThrow('exceeds the maximum number of tokens allowed')
  await expect(google.models.generateContent({ model, contents: [{ role: 'user', parts: [] }] })).rejects.toMatchObject(
    { status: 400 },
  )
  const stranger = new GoogleGenAI({ apiKey: 'wrong', httpOptions: { baseUrl: served?.baseUrl ?? '' } })
  await expect(stranger.models.generateContent({ model, contents: 'hello' })).rejects.toThrow('API_KEY_INVALID')
})

test('a blocked answer, a broken connection, counting and the list of models', async () => {
  const google = await client(
    { blocks: [], stop: 'refusal' },
    { blocks: [{ type: 'text', text: 'a long answer that never ends well' }], delivery: { cutAfterBytes: 300 } },
  )
  const blocked = await google.models.generateContent({ model, contents: 'hello' })
  expect(blocked.candidates?.[0]?.finishReason).toBe('SAFETY')
  const read = async (): Promise<void> => {
    for await (const chunk of await google.models.generateContentStream({ model, contents: 'hello' }))
      expect(chunk).toBeDefined()
  }
  await expect(read()).rejects.toThrow(/./)
  expect((await google.models.countTokens({ model, contents: 'hello' })).totalTokens).toBeGreaterThan(0)
  const names: (string | undefined)[] = []
  for await (const entry of await google.models.list()) names.push(entry.name)
  expect(names).toEqual(['models/simulated-google-generative-ai'])
})
