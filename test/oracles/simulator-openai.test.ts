import OpenAI, { AuthenticationError, InternalServerError, RateLimitError } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnswerBlock, ScriptedReply, SimulatedApi } from '../../src/simulator/provider/script.ts'
import { type Served, serveSimulator, untilAnswered } from '../support/served-simulator.ts'

let served: Served | undefined
afterEach(() => served?.close())

async function client(api: SimulatedApi, ...script: ScriptedReply[]): Promise<OpenAI> {
  served = await serveSimulator({ api, script, apiKey: 'sk-test' })
  return new OpenAI({ baseURL: served.baseUrl, apiKey: 'sk-test', maxRetries: 0 })
}

/** Output items are sent back as they came; only the types of kinds we never see differ. */
function replayed(output: OpenAI.Responses.ResponseOutputItem[]): OpenAI.Responses.ResponseInput {
  return output as OpenAI.Responses.ResponseInput
}

const schema = { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] }
const ASK = 'remember that Ann is my sister. use time {"zone":"UTC"} then use time {"zone":"CET"}'
const blocks: AnswerBlock[] = [
  { type: 'thinking', thinking: 'zwei Uhren 🕰️' },
  { type: 'text', text: '我看看 🕰️' },
  { type: 'toolCall', name: 'time', arguments: { zone: 'Zürich' } },
  { type: 'toolCall', name: 'time', arguments: { zone: 'UTC', deep: [1, { a: 'ß' }] } },
]
const delivery = { splitBytes: 3, deltaChars: 4 }

describe('Responses', () => {
  const hello = { model: 'gpt-5.1', input: 'hello' }
  const tools = [{ type: 'function' as const, name: 'time', parameters: schema, strict: false }]

  test('the SDK reads a streamed answer with reasoning, text and parallel calls, cut at any byte', async () => {
    const usage = { input: 100, output: 20, cacheRead: 30, reasoning: 5 }
    const openai = await client('openai-responses', { blocks, usage, delivery })
    const stream = openai.responses.stream({ ...hello, tools })
    const numbers: number[] = []
    stream.on('event', (event) => void numbers.push((event as { sequence_number: number }).sequence_number))
    const response = await stream.finalResponse()
    expect(numbers).toEqual(numbers.map((_, index) => index))
    expect(response.output.map((item) => item.type)).toEqual(['reasoning', 'message', 'function_call', 'function_call'])
    expect(response.output_text).toBe('我看看 🕰️')
    expect(response.output[3]).toMatchObject({ arguments: '{"zone":"UTC","deep":[1,{"a":"ß"}]}' })
    expect(response.usage).toMatchObject({
      input_tokens: 100,
      output_tokens: 20,
      input_tokens_details: { cached_tokens: 30 },
      output_tokens_details: { reasoning_tokens: 5 },
    })
  })

  test('a stateless conversation with tools and reasoning items goes through', async () => {
    const openai = await client('openai-responses', {
      blocks: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'toolCall', name: 'time', arguments: { zone: 'UTC' } },
      ],
    })
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: ASK }]
    const { text, rounds } = await untilAnswered(async () => {
      const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content']
      const response = await openai.responses.create({ model: 'gpt-5.1', input, tools, store: false, include })
      input.push(...replayed(response.output))
      const calls = response.output.filter((item) => item.type === 'function_call')
      for (const call of calls) input.push({ type: 'function_call_output', call_id: call.call_id, output: 'noon' })
      return calls.length === 0 ? response.output_text : undefined
    })
    expect(text).toContain('I remember: Ann is my sister')
    expect(rounds).toBe(2)
  })

  test('an item replayed without its reasoning is refused as the service refuses it', async () => {
    const openai = await client('openai-responses', {
      blocks: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'hi' },
      ],
    })
    const { output } = await openai.responses.create(hello)
    const input = [
      { role: 'user' as const, content: 'hello' },
      ...replayed(output.slice(1)),
      { role: 'user' as const, content: 'and?' },
    ]
    await expect(openai.responses.create({ model: 'gpt-5.1', input })).rejects.toThrow(
      "without its required 'reasoning' item",
    )
    const lonely = [
      { role: 'user' as const, content: 'hello' },
      ...replayed(output.slice(0, 1)),
      { role: 'user' as const, content: 'and?' },
    ]
    await expect(openai.responses.create({ model: 'gpt-5.1', input: lonely })).rejects.toThrow(
      'without its required following item',
    )
  })

  test('a refusal, a length stop and an error event are told apart', async () => {
    const openai = await client(
      'openai-responses',
      { blocks: [{ type: 'refusal', refusal: 'I cannot.' }] },
      { blocks: [{ type: 'text', text: 'half a' }], stop: 'length' },
      { blocks: [{ type: 'text', text: 'never' }], delivery: { errorAfterEvents: 3 } },
    )
    const refused = await openai.responses.stream(hello).finalResponse()
    expect(refused.output[0]).toMatchObject({ content: [{ type: 'refusal', refusal: 'I cannot.' }] })
    const cut = await openai.responses.stream(hello).finalResponse()
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    await expect(openai.responses.stream(hello).finalResponse()).rejects.toThrow(/./)
  })
})

describe('Chat Completions', () => {
  const hello = { model: 'gpt-4.1', messages: [{ role: 'user' as const, content: 'hello' }] }
  const tools = [{ type: 'function' as const, function: { name: 'time', parameters: schema } }]

  test('the SDK reads a streamed answer with text and parallel calls, cut at any byte, with usage', async () => {
    const openai = await client('openai-completions', {
      blocks,
      usage: { input: 9, output: 8, cacheRead: 7 },
      delivery,
    })
    const stream = openai.chat.completions.stream({ ...hello, tools, stream_options: { include_usage: true } })
    const completion = await stream.finalChatCompletion()
    const message = completion.choices[0]?.message
    expect(message?.content).toBe('我看看 🕰️')
    expect(message?.tool_calls?.map((call) => (call.type === 'function' ? call.function.arguments : ''))).toEqual([
      '{"zone":"Zürich"}',
      '{"zone":"UTC","deep":[1,{"a":"ß"}]}',
    ])
    expect(completion.choices[0]?.finish_reason).toBe('tool_calls')
    expect(completion.usage).toMatchObject({
      prompt_tokens: 9,
      completion_tokens: 8,
      prompt_tokens_details: { cached_tokens: 7 },
    })
  })

  test('a conversation with two rounds of tools goes through', async () => {
    const openai = await client('openai-completions')
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: ASK }]
    const { text, rounds } = await untilAnswered(async () => {
      const { choices } = await openai.chat.completions.create({ model: 'gpt-4.1', messages, tools })
      const { content = null, tool_calls: calls } = choices[0]?.message ?? {}
      messages.push({ role: 'assistant', content, ...(calls === undefined ? {} : { tool_calls: calls }) })
      for (const call of calls ?? []) messages.push({ role: 'tool', tool_call_id: call.id, content: 'noon' })
      return calls === undefined ? (content ?? '') : undefined
    })
    expect(text).toContain('time answered: noon')
    expect(text).toContain('I remember: Ann is my sister')
    expect(rounds).toBe(2)
  })

  test('refusals become the SDK’s error classes with the service’s words', async () => {
    const openai = await client(
      'openai-completions',
      { refuse: 'rate-limit', retryAfterSeconds: 3 },
      { refuse: 'quota' },
      { refuse: 'server-error' },
      { refuse: 'overloaded' },
      { refuse: 'context-overflow' },
    )
    const ask = (): Promise<unknown> => openai.chat.completions.create(hello)
    await expect(ask()).rejects.toBeInstanceOf(RateLimitError)
    await expect(ask()).rejects.toMatchObject({ status: 429, code: 'insufficient_quota' })
    await expect(ask()).rejects.toBeInstanceOf(InternalServerError)
    await expect(ask()).rejects.toMatchObject({ status: 503 })
    await expect(ask()).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' })
    const orphan = {
      ...hello,
      messages: [...hello.messages, { role: 'tool' as const, tool_call_id: 'a', content: 'noon' }],
    }
    await expect(openai.chat.completions.create(orphan)).rejects.toMatchObject({
      status: 400,
      param: 'messages.[1].role',
    })
    const stranger = new OpenAI({ baseURL: served?.baseUrl, apiKey: 'sk-wrong', maxRetries: 0 })
    await expect(stranger.chat.completions.create(hello)).rejects.toBeInstanceOf(AuthenticationError)
    expect((await openai.models.list()).data[0]?.id).toBe('simulated-openai-completions')
  })

  test('an error chunk and a broken connection in mid-stream reach the caller', async () => {
    const answer = { blocks: [{ type: 'text' as const, text: 'a long answer that never ends well' }] }
    const openai = await client(
      'openai-completions',
      { ...answer, delivery: { errorAfterEvents: 2 } },
      { ...answer, delivery: { cutAfterBytes: 500 } },
    )
    const read = async (): Promise<void> => {
      for await (const chunk of await openai.chat.completions.create({ ...hello, stream: true }))
        expect(chunk.choices).toBeDefined()
    }
    await expect(read()).rejects.toThrow(/./)
    await expect(read()).rejects.toThrow(/./)
  })
})
