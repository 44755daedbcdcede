import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, stepCountIs, streamText, tool, type ModelMessage } from 'ai'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BuiltGateway, build, newHome, removeHome } from '../support/built-gateway.ts'

const TOKEN = 'a-token-for-clients-0123456789'
const ASK = 'call get_weather {"city":"Paris"}'

let home = ''
let gateway: BuiltGateway
beforeAll(async () => {
  await build()
  home = await newHome({ listen: { tokens: { sdk: { token: TOKEN, sessions: 'own' } } } })
  gateway = await BuiltGateway.start(home)
})
afterAll(async () => {
  await gateway.stop()
  await removeHome(home)
})

const baseURL = (): string => `http://127.0.0.1:${gateway.port}/v1`

/** Sessions that began since the last look. */
let known = 0
async function newSessions(): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/api/sessions`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  const { total } = (await response.json()) as { total: number }
  const added = total - known
  known = total
  return added
}
afterEach(newSessions)

describe('the openai library', () => {
  const client = (apiKey = TOKEN): OpenAI => new OpenAI({ baseURL: baseURL(), apiKey, maxRetries: 0 })
  const weather = {
    type: 'function',
    function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  } as const

  it('lists models, completes and streams in one conversation', async () => {
    const models = await client().models.list()
    expect(models.data.map(({ id }) => id)).toContain('clew')
    expect(await client().models.retrieve('clew')).toMatchObject({ object: 'model' })
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'I like tea' }]
    const first = await client().chat.completions.create({ model: 'clew', messages, temperature: 0, max_tokens: 500 })
    messages.push(first.choices[0]?.message as OpenAI.ChatCompletionMessage, {
      role: 'user',
      content: 'What did I say?',
    })
    const stream = client().chat.completions.stream({
      model: 'clew',
      messages,
      stream_options: { include_usage: true },
    })
    const last = await stream.finalChatCompletion()
    expect(last.choices[0]?.message.content).toContain('I like tea')
    expect(last.usage?.total_tokens).toBeGreaterThan(0)
    expect(await newSessions()).toBe(1)
  })

  it('runs its tools over a kill -9 of the gateway', async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: ASK }]
    const called = await client().chat.completions.create({ model: 'clew', messages, tools: [weather] })
    const message = called.choices[0]?.message
    const [call] = message?.tool_calls ?? []
    expect(called.choices[0]?.finish_reason).toBe('tool_calls')
    await gateway.kill()
    gateway = await BuiltGateway.start(home)
    messages.push(message as OpenAI.ChatCompletionMessage, {
      role: 'tool',
      tool_call_id: call?.id ?? '',
      content: 'sunny in Paris',
    })
    const answer = await client().chat.completions.create({ model: 'clew', messages, tools: [weather] })
    expect(answer.choices[0]?.message.content).toContain('sunny in Paris')
    expect(await newSessions()).toBe(1)
  })

  it('runs a tool loop of its own', async () => {
    const runner = client().chat.completions.runTools({
      model: 'clew',
      messages: [{ role: 'user', content: ASK }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather',
            parse: JSON.parse as (text: string) => { city: string },
            function: ({ city }: { city: string }) => `rain in ${city}`,
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toContain('rain in Paris')
    expect(await newSessions()).toBe(1)
  })

  it('continues responses, streamed and not, over a kill -9', async () => {
    const first = await client().responses.create({ model: 'clew', input: 'I like milk' })
    expect(first.output_text).toContain('I like milk')
    await gateway.kill()
    gateway = await BuiltGateway.start(home)
    const stream = client().responses.stream({
      model: 'clew',
      input: 'What did I say?',
      previous_response_id: first.id,
    })
    let streamed = ''
    stream.on('response.output_text.delta', ({ delta }) => (streamed += delta))
    const second = await stream.finalResponse()
    expect(second.output_text).toContain('I like milk')
    expect(streamed).toBe(second.output_text)
    expect((await client().responses.retrieve(second.id)).output_text).toBe(second.output_text)
    expect(await newSessions()).toBe(1)
  })

  it('gets errors it has classes for', async () => {
    const ask = { model: 'clew', messages: [{ role: 'user', content: 'x' }] } as const
    await expect(
      client('wrong').chat.completions.create({ ...ask, messages: [...ask.messages] }),
    ).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
    await expect(client().chat.completions.create({ model: 'nobody', messages: [] })).rejects.toMatchObject({
      status: 400,
      param: 'messages',
    })
    const unknown = client().chat.completions.create({ ...ask, messages: [...ask.messages], model: 'nobody/nothing' })
    await expect(unknown).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
    await expect(client().responses.retrieve('resp_nothing')).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })
})

describe('the Vercel AI SDK', () => {
  const provider = () => createOpenAI({ baseURL: baseURL(), apiKey: TOKEN })
  const compatible = () => createOpenAICompatible({ name: 'clew', baseURL: baseURL(), apiKey: TOKEN })
  const tools = {
    get_weather: tool({
      description: 'The weather',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `snow in ${city}`,
    }),
  }

  it.each([
    ['OpenAI’s Responses', () => provider()('clew')],
    ['OpenAI’s Chat Completions', () => provider().chat('clew')],
    ['a compatible provider', () => compatible()('clew')],
  ])('talks, streams and runs tools through %s, in one conversation', async (_, model) => {
    const history: ModelMessage[] = [{ role: 'user', content: 'I like cocoa' }]
    const first = await generateText({ model: model(), messages: history })
    history.push(...first.response.messages, { role: 'user', content: 'What did I say?' })
    const streamed = streamText({ model: model(), messages: history })
    expect(await streamed.text).toContain('I like cocoa')
    history.push(...(await streamed.response).messages, { role: 'user', content: ASK })
    const called = await generateText({ model: model(), messages: history, tools, stopWhen: stepCountIs(3) })
    expect(called.text).toContain('snow in Paris')
    expect(called.usage.totalTokens).toBeGreaterThan(0)
    expect(await newSessions()).toBe(1)
  })
})

describe('LangChain JS', () => {
  const weather = langchainTool(({ city }: { city: string }) => `wind in ${city}`, {
    name: 'get_weather',
    description: 'The weather',
    schema: z.object({ city: z.string() }),
  })

  it.each([
    ['Chat Completions', false],
    ['Responses', true],
  ])('talks, streams and runs tools through %s, in one conversation', async (_, useResponsesApi) => {
    const model = new ChatOpenAI({
      model: 'clew',
      apiKey: TOKEN,
      maxRetries: 0,
      useResponsesApi,
      configuration: { baseURL: baseURL() },
    })
    const first = await model.invoke([new HumanMessage('I like juice')])
    const history = [new HumanMessage('I like juice'), first, new HumanMessage('What did I say?')]
    let streamed = ''
    for await (const chunk of await model.stream(history)) streamed += chunk.text
    expect(streamed).toContain('I like juice')
    const asked = [...history, new AIMessage(streamed), new HumanMessage(ASK)]
    const called = await model.bindTools([weather]).invoke(asked)
    const [call] = called.tool_calls ?? []
    expect(call).toMatchObject({ name: 'get_weather', args: { city: 'Paris' } })
    const result = new ToolMessage({ content: await weather.invoke({ city: 'Paris' }), tool_call_id: call?.id ?? '' })
    const answer = await model.bindTools([weather]).invoke([...asked, called, result])
    expect(answer.text).toContain('wind in Paris')
    expect(await newSessions()).toBe(1)
  })
})
