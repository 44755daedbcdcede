import { describe, expect, it } from 'vitest'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { callHttp, type Body } from '../support/http-client.ts'
import { MODELS, type ModelName, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import { complete, messageOf, sessionOf, textOf, user, WEATHER } from '../support/openai-client.ts'

const openWorld = worldsOfThisFile()

const says = (text: string): ScriptedReply => ({ blocks: [{ type: 'text', text }] })
const calls = (...names: string[]): ScriptedReply => ({
  blocks: [
    { type: 'text', text: 'Let me look.' },
    ...names.map((name) => ({ type: 'toolCall' as const, name, arguments: {} })),
  ],
})
const bodyOf = (world: ModelWorld): Body => JSON.parse(world.requests.at(-1)?.bodyText ?? '{}') as Body

const EVERY = Object.keys(MODELS) as ModelName[]

interface ToolCall {
  readonly id: string
}
const resultFor = (message: Body, content: string): readonly Body[] =>
  (message['tool_calls'] as ToolCall[]).map(({ id }) => ({ role: 'tool', tool_call_id: id, content }))

describe.each(EVERY)('with %s behind it', (name) => {
  it('the client’s tools and ours make valid requests, over a crash between call and result', async () => {
    const world = await openWorld({ models: [name], verifySignatures: false })
    const tools = { tools: [WEATHER] }
    const isSingle = name === 'local'
    world.enqueue(calls('time'), isSingle ? calls('get_weather') : calls('get_weather', 'time', 'get_weather'))
    const called = await complete(world.gateway, [user('How is it?')], tools)
    const message = messageOf(called)
    expect((message['tool_calls'] as ToolCall[]).length).toBe(isSingle ? 1 : 2)
    await world.restart({ kill: true })
    world.enqueue(says('It is sunny.'))
    const history = [user('How is it?'), message, ...resultFor(message, 'sunny')]
    const answer = await complete(world.gateway, history, tools)
    expect(textOf(answer)).toBe('It is sunny.')
    expect(sessionOf(answer)).toBe(sessionOf(called))
    expect(world.requests.at(-1)?.bodyText).toContain('sunny')
    world.enqueue(says('Bye.'))
    const next = await complete(world.gateway, [...history, messageOf(answer), user('Bye')], {})
    expect(sessionOf(next)).toBe(sessionOf(called))
    expect(world.violations()).toEqual([])
  })

  it('a client that never returns leaves a history that its model takes', async () => {
    const world = await openWorld({ models: [name], verifySignatures: false })
    world.enqueue(calls('get_weather'), says('All right.'), says('On the branch.'))
    const called = await complete(world.gateway, [user('How is it?')], { tools: [WEATHER] })
    const named = { 'x-clew-session': sessionOf(called) }
    expect(textOf(await complete(world.gateway, [user('Never mind')], {}, named))).toBe('All right.')
    const late = [user('How is it?'), messageOf(called), ...resultFor(messageOf(called), 'sunny after all')]
    const answer = await complete(world.gateway, late, { tools: [WEATHER] })
    expect(textOf(answer)).toBe('On the branch.')
    expect(sessionOf(answer)).toBe(sessionOf(called))
    expect(world.requests.at(-1)?.bodyText).toContain('sunny after all')
    expect(world.requests.at(-1)?.bodyText).not.toContain('Never mind')
    expect(world.violations()).toEqual([])
  })

  it('an unknown history with calls becomes a valid request', async () => {
    const world = await openWorld({ models: [name], verifySignatures: false })
    const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }
    const answer = await complete(
      world.gateway,
      [
        user('How is it?'),
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'cloudy' },
        { role: 'assistant', content: 'It is cloudy.' },
        user('And now?'),
      ],
      { tools: [WEATHER] },
    )
    expect(answer.status).toBe(200)
    expect(world.requests.at(-1)?.bodyText).toContain('cloudy')
    expect(world.violations()).toEqual([])
  })
})

describe('settings of a request', () => {
  const settings = { max_tokens: 77, temperature: 0.25, top_p: 0.5, stop: ['END'] }

  it.each([
    ['chat', { max_completion_tokens: 77, temperature: 0.25, top_p: 0.5, stop: ['END'] }],
    ['local', { max_tokens: 77, temperature: 0.25, top_p: 0.5, stop: ['END'] }],
    ['mistral', { max_tokens: 77, temperature: 0.25, top_p: 0.5, stop: ['END'] }],
    ['anthropic', { max_tokens: 77, temperature: 0.25, top_p: 0.5, stop_sequences: ['END'] }],
    ['google', { generationConfig: { maxOutputTokens: 77, temperature: 0.25, topP: 0.5, stopSequences: ['END'] } }],
  ] as const)('reach %s in its own words', async (name, expected) => {
    const world = await openWorld({ models: [name] })
    expect(await complete(world.gateway, [user('x')], settings)).toMatchObject({ status: 200 })
    expect(bodyOf(world)).toMatchObject(expected)
  })

  it.each([
    ['openai', { stop: 'END' }, 'stop'],
    ['anthropic', { response_format: { type: 'json_object' } }, 'response_format'],
  ] as const)('are refused where %s has no field for them', async (name, more, param) => {
    const world = await openWorld({ models: [name] })
    expect(await complete(world.gateway, [user('x')], more)).toMatchObject({ status: 400, body: { error: { param } } })
    expect(world.requests).toEqual([])
  })

  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const json_schema = { name: 'thing', schema, strict: true }
  it.each([
    ['chat', { response_format: { type: 'json_schema', json_schema } }],
    ['mistral', { response_format: { type: 'json_schema', json_schema } }],
    ['openai', { text: { format: { type: 'json_schema', ...json_schema } } }],
    ['google', { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } }],
  ] as const)('bring a schema to %s', async (name, expected) => {
    const world = await openWorld({ models: [name] })
    const response_format = { type: 'json_schema', json_schema }
    expect(await complete(world.gateway, [user('x')], { response_format })).toMatchObject({ status: 200 })
    expect(bodyOf(world)).toMatchObject(expected)
  })

  it.each([
    ['chat', { tool_choice: { type: 'function', function: { name: 'get_weather' } } }],
    ['mistral', { tool_choice: { type: 'function', function: { name: 'get_weather' } } }],
    ['openai', { tool_choice: { type: 'function', name: 'get_weather' } }],
    ['anthropic', { tool_choice: { type: 'tool', name: 'get_weather' } }],
    ['google', { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['get_weather'] } } }],
  ] as const)('demand a tool of %s', async (name, expected) => {
    const world = await openWorld({ models: [name] })
    world.enqueue(calls('get_weather'))
    const tool_choice = { type: 'function', function: { name: 'get_weather' } }
    await complete(world.gateway, [user('x')], { tools: [WEATHER], tool_choice })
    expect(bodyOf(world)).toMatchObject(expected)
  })

  it('choose among configured models, and requests can be rebuilt', async () => {
    const world = await openWorld({ models: ['anthropic', 'chat'] })
    const answer = await complete(world.gateway, [user('x')], { model: `chat/${MODELS.chat.model}`, ...settings })
    expect(answer.body['model']).toBe(`chat/${MODELS.chat.model}`)
    const session = encodeURIComponent(sessionOf(answer))
    expect(await world.gateway.api(`/api/sessions/${session}?request=1`)).toMatchObject({ hashMatches: true })
    const { body } = await callHttp(world.gateway, '/v1/models')
    expect((body['data'] as { id: string }[]).map(({ id }) => id)).toContain(`chat/${MODELS.chat.model}`)
  })
})

describe('pictures', () => {
  const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const shown = user([
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'auto' } },
  ])
  const imagesIn = (world: ModelWorld): readonly number[] =>
    (world.requests.at(-1)?.conversation.turns ?? []).flatMap((turn) => (turn.role === 'user' ? [turn.images] : []))

  it('reach the model once, however often the client sends them', async () => {
    const world = await openWorld({ models: ['anthropic'] })
    const first = await complete(world.gateway, [shown])
    expect(imagesIn(world)).toEqual([1])
    const next = await complete(world.gateway, [shown, messageOf(first), user('And its colour?')])
    expect(sessionOf(next)).toBe(sessionOf(first))
    expect(imagesIn(world)).toEqual([1, 0])
    expect(world.violations()).toEqual([])
  })

  it('come along with a history that is not known', async () => {
    const world = await openWorld({ models: ['anthropic'] })
    await complete(world.gateway, [shown, { role: 'assistant', content: 'A dot.' }, user('Sure?')])
    expect(imagesIn(world)).toEqual([1, 0])
  })

  it('of private addresses are not fetched', async () => {
    const world = await openWorld({ models: ['anthropic'] })
    const part = { type: 'image_url', image_url: { url: 'http://127.0.0.1:9/x.png' } }
    expect(await complete(world.gateway, [user([part])])).toMatchObject({
      status: 400,
      body: { error: { param: 'image_url' } },
    })
  })
})

describe('failures of the model', () => {
  it.each([
    ['authentication', 500, 'MODEL_AUTH', 'false'],
    ['rate-limit', 429, 'rate_limit_exceeded', null],
    ['overloaded', 503, 'MODEL_OVERLOADED', null],
  ] as const)('%s is %i %s', async (refuse, status, code, retry) => {
    const world = await openWorld({ models: ['anthropic'], script: () => ({ refuse }) })
    const answer = await complete(world.gateway, [user('x')])
    expect(answer).toMatchObject({ status, body: { error: { code } } })
    expect(answer.headers.get('x-should-retry')).toBe(retry)
    const streamed = await complete(world.gateway, [user('x')], { stream: true })
    expect(streamed.status).toBe(status)
    expect(streamed.body).toMatchObject({ error: { message: expect.any(String) as string } })
  })

  it('after the first words is the last event of the stream', async () => {
    const world = await openWorld({ models: ['chat'] })
    world.enqueue({
      blocks: [{ type: 'text', text: 'one two three four five' }],
      delivery: { deltaChars: 5, errorAfterEvents: 4 },
    })
    const { status, text } = await complete(world.gateway, [user('x')], { stream: true })
    expect(status).toBe(200)
    expect(text).toMatch(/data: \{"error":\{[^\n]*\n\ndata: \[DONE\]\n\n$/u)
  })
})
