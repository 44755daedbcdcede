import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import { collect, fixture, setUp, textOfEvents, type Family, type Outcome } from '../../support/provider-streams.ts'
import { StreamHttp } from '../../support/stream-http.ts'

async function decode(family: Family, name: string, chunkBytes?: number): Promise<Outcome> {
  const http = new StreamHttp({ body: fixture(name), ...(chunkBytes === undefined ? {} : { chunkBytes }) })
  return collect(setUp(family, http, { retry: { maxAttempts: 1 } }))
}

function codeOf(outcome: Outcome): string | undefined {
  return outcome.error instanceof GatewayError ? outcome.error.code : undefined
}

describe('Anthropic Messages', () => {
  it('decodes text with usage, cache counts and the raw stop reason', async () => {
    const { events, message } = await decode('anthropic', 'anthropic-text')
    expect(textOfEvents(events)).toBe('Hello, 世界 👋!')
    expect(message).toMatchObject({
      role: 'assistant',
      api: 'anthropic-messages',
      provider: 'anthropic',
      model: 'model-1',
      responseId: 'msg_01XFDUDYJgAACzvnptvVoYEL',
      content: [{ type: 'text', text: 'Hello, 世界 👋!' }],
      stopReason: 'stop',
      usage: { input: 25, output: 15, cacheRead: 2000, cacheWrite: 100, totalTokens: 2140 },
      raw: { stopReason: 'end_turn', model: 'claude-sonnet-4-5-20250929' },
    })
  })

  it('keeps thinking, its signature and redacted thinking whole, next to parallel calls with fragmented arguments', async () => {
    const { events, message } = await decode('anthropic', 'anthropic-thinking-tools', 7)
    expect(message?.content).toEqual([
      {
        type: 'thinking',
        thinking: 'The user wants two cities.',
        thinkingSignature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+8Kq9fQ',
      },
      {
        type: 'thinking',
        thinking: '[Reasoning redacted]',
        thinkingSignature: 'EmwKAhgBEgy3va3pzix',
        redacted: true,
      },
      { type: 'text', text: "I'll look it up." },
      {
        type: 'toolCall',
        id: 'toolu_01A09q90qw90lq917835lq9',
        name: 'get_weather',
        arguments: { city: 'Paris', days: 3 },
        raw: { caller: { type: 'direct' } },
      },
      { type: 'toolCall', id: 'toolu_01B09q90qw90lq917835lq9', name: 'get_time', arguments: {} },
    ])
    expect(message?.stopReason).toBe('toolUse')
    expect(events.filter((event) => event.type === 'tool-call-start')).toEqual([
      { type: 'tool-call-start', index: 0, name: 'get_weather' },
      { type: 'tool-call-start', index: 1, name: 'get_time' },
    ])
  })

  it('reads CRLF line ends like LF', async () => {
    expect((await decode('anthropic', 'anthropic-crlf', 3)).message).toEqual(
      (await decode('anthropic', 'anthropic-text')).message,
    )
  })

  it('reports an error event inside the stream as what it says', async () => {
    const outcome = await decode('anthropic', 'anthropic-error')
    expect(codeOf(outcome)).toBe('MODEL_OVERLOADED')
    expect(textOfEvents(outcome.events)).toBe('Half an ans')
  })

  it('reports a refusal as a filtered answer', async () => {
    expect(codeOf(await decode('anthropic', 'anthropic-refusal'))).toBe('MODEL_CONTENT_FILTERED')
  })

  it('keeps blocks and citations it does not know in raw', async () => {
    const { message } = await decode('anthropic', 'anthropic-server-tool')
    expect(message?.raw?.['blocks']).toEqual([
      { type: 'server_tool_use', id: 'srvtoolu_01', name: 'web_search', input: {}, partial_json: '{"query":"x"}' },
    ])
    expect(message?.content).toEqual([
      {
        type: 'text',
        text: 'Found it.',
        raw: { citations: [{ type: 'web_search_result_location', url: 'https://example.com', cited_text: 'c' }] },
      },
    ])
  })
})

describe('OpenAI Chat Completions', () => {
  it('decodes text and usage that comes in a chunk of its own', async () => {
    const { events, message } = await decode('completions', 'completions-text')
    expect(textOfEvents(events)).toBe('Hello 世界 👋')
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'Hello 世界 👋' }],
      stopReason: 'stop',
      usage: { input: 93, output: 46, cacheRead: 1024, cacheWrite: 0, totalTokens: 1163 },
    })
  })

  it('joins fragmented arguments of parallel calls by index', async () => {
    const { message } = await decode('completions', 'completions-tools', 11)
    expect(message).toMatchObject({
      stopReason: 'toolUse',
      content: [
        { type: 'toolCall', id: 'call_DdmO9pD3xa9XTPNJ32zg2hcA', name: 'get_weather', arguments: { city: 'Paris' } },
        { type: 'toolCall', id: 'call_R0xwTfqFmrCDb2sYSGDmMGl5', name: 'get_time', arguments: { tz: 'UTC' } },
      ],
    })
  })

  it('takes reasoning_content as thinking and remembers its field, past null deltas and comments', async () => {
    const { events, message } = await decode('completions', 'completions-reasoning')
    expect(textOfEvents(events, 'thinking-delta')).toBe('Let me think.')
    expect(message).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'Let me think.', thinkingSignature: 'reasoning_content' },
        { type: 'text', text: '42.' },
      ],
      usage: { input: 10, cacheRead: 20, output: 12 },
    })
  })

  it('gives calls without ids their own, and calls behind `stop` the right stop reason, without any usage', async () => {
    const { message } = await decode('completions', 'completions-ollama')
    const calls = message?.content.filter((block) => block.type === 'toolCall') ?? []
    expect(calls.map((call) => [call.name, call.arguments])).toEqual([
      ['now', {}],
      ['add', { a: 1 }],
    ])
    expect(new Set(calls.map((call) => call.id)).size).toBe(2)
    expect(message?.stopReason).toBe('toolUse')
    expect(message?.usage.totalTokens).toBe(0)
  })

  it.each([
    ['in fragments', [{ index: 0 }, { index: 1 }], [{ index: 0 }, { index: 1 }]],
    ['in one list without an index', [{}, {}], []],
  ])('keeps two calls with the same id apart: %s', async (_, heads, rests) => {
    const chunk = (calls: readonly object[], finish: string | null): string =>
      `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: finish }] })}\n\n`
    const whole = rests.length === 0
    const begun = heads.map((head, at) => ({
      ...head,
      id: 'same',
      function: { name: `tool${at}`, arguments: whole ? `{"n":${at}}` : '{"n":' },
    }))
    const fragments = whole
      ? [chunk(begun, null)]
      : [
          ...begun.map((call) => chunk([call], null)),
          // This server repeats the id in every fragment.
          ...rests.map((rest, at) => chunk([{ ...rest, id: 'same', function: { arguments: `${at}}` } }], null)),
        ]
    const http = new StreamHttp({ body: [...fragments, chunk([], 'tool_calls')].join('') })
    const { message } = await collect(setUp('completions', http))
    const calls = message?.content.filter((block) => block.type === 'toolCall') ?? []
    expect(calls.map((call) => [call.name, call.arguments])).toEqual([
      ['tool0', { n: 0 }],
      ['tool1', { n: 1 }],
    ])
    expect(new Set(calls.map((call) => call.id)).size).toBe(2)
  })

  it('keeps the signature of Gemini behind an OpenAI-compatible door', async () => {
    const { message } = await decode('completions', 'completions-gemini')
    expect(message?.content[0]).toMatchObject({
      id: 'function-call-1',
      thoughtSignature: '{"google":{"thought_signature":"QmFzZTY0U2ln"}}',
    })
  })

  it('shows a refusal as text and marks it', async () => {
    const { message } = await decode('completions', 'completions-refusal')
    expect(message).toMatchObject({ content: [{ type: 'text', text: "I can't help." }], raw: { refusal: true } })
  })

  it('reports a content filter and an error chunk', async () => {
    expect(codeOf(await decode('completions', 'completions-filter'))).toBe('MODEL_CONTENT_FILTERED')
    expect(codeOf(await decode('completions', 'completions-error'))).toBe('MODEL_FAILED')
  })

  it('reads the one document of a server that does not stream', async () => {
    const body = JSON.stringify({
      id: 'x',
      choices: [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    })
    const http = new StreamHttp({ body, headers: { 'content-type': 'application/json' }, chunkBytes: 5 })
    const { message } = await collect(setUp('completions', http))
    expect(message).toMatchObject({ content: [{ type: 'text', text: 'whole' }], usage: { input: 3, output: 1 } })
  })

  it('never completes arguments that were cut off by guessing', async () => {
    const chunk = (delta: object, finish: string | null): string =>
      `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    const call = { index: 0, id: 'call_1', function: { name: 'remove', arguments: '{"path": "/tm' } }
    const http = new StreamHttp({ body: chunk({ tool_calls: [call] }, null) + chunk({}, 'length') })
    const { message } = await collect(setUp('completions', http))
    expect(message?.content).toEqual([
      { type: 'toolCall', id: 'call_1', name: 'remove', arguments: {}, invalidArguments: '{"path": "/tm' },
    ])
    expect(message?.stopReason).toBe('length')
  })
})

describe('Mistral', () => {
  it('takes thinking chunks as thinking', async () => {
    const { message } = await decode('mistral', 'mistral-thinking')
    expect(message?.content).toEqual([
      { type: 'thinking', thinking: 'Okay, so.' },
      { type: 'text', text: 'The answer is 4.' },
    ])
  })

  it('joins later fragments whose id is "null"', async () => {
    const { message } = await decode('mistral', 'mistral-tools')
    expect(message?.content).toEqual([{ type: 'toolCall', id: 'D681PevKs', name: 'add', arguments: { a: 1, b: 2 } }])
  })
})

describe('OpenAI Responses', () => {
  it('decodes text and keeps the item id in the signature', async () => {
    const { message } = await decode('responses', 'responses-text')
    expect(message).toMatchObject({
      responseId: 'resp_67ccd2bed1ec8190b14f964abc054267',
      content: [
        { type: 'text', text: 'Hi 世界 👋', textSignature: '{"v":1,"id":"msg_67ccd2bf17f0819081ff3bb2cf6508e6"}' },
      ],
      stopReason: 'stop',
      usage: { input: 476, cacheRead: 1024, output: 120, totalTokens: 1620 },
    })
  })

  it('keeps a reasoning item whole as the signature of its thinking', async () => {
    const { events, message } = await decode('responses', 'responses-reasoning-tools', 13)
    const [thinking, first, second] = message?.content ?? []
    expect(thinking).toMatchObject({ type: 'thinking', thinking: '**Looking**\n\nFirst part.\n\nSecond.' })
    const signature = thinking?.type === 'thinking' ? thinking.thinkingSignature : undefined
    expect(JSON.parse(signature ?? '{}')).toMatchObject({
      type: 'reasoning',
      encrypted_content: 'gAAAAABofPY+opaque/bytes==',
    })
    expect([first, second]).toMatchObject([
      { id: 'call_aaaaaaaaaaaaaaaaaaaaaaaa', name: 'get_weather', arguments: { city: 'Paris' } },
      { id: 'call_bbbbbbbbbbbbbbbbbbbbbbbb', name: 'get_time', arguments: {} },
    ])
    expect(message?.stopReason).toBe('toolUse')
    expect(textOfEvents(events, 'thinking-delta')).toBe('**Looking**\n\nFirst part.\n\nSecond.')
  })

  it('tells an incomplete, a failed and a broken answer apart', async () => {
    expect((await decode('responses', 'responses-incomplete')).message).toMatchObject({
      stopReason: 'length',
      raw: { stopReason: 'max_output_tokens' },
    })
    expect(codeOf(await decode('responses', 'responses-failed'))).toBe('MODEL_RATE_LIMITED')
    expect(codeOf(await decode('responses', 'responses-error'))).toBe('MODEL_FAILED')
  })
})

describe('Google', () => {
  it('decodes text, counting thoughts as output and cached tokens apart', async () => {
    const { message } = await decode('google', 'google-text')
    expect(message).toMatchObject({
      responseId: 'rzAlaffsDo2kz7IP',
      content: [{ type: 'text', text: 'Hello 世界 👋!' }],
      usage: { input: 200, cacheRead: 1000, output: 80, totalTokens: 1280 },
      stopReason: 'stop',
    })
  })

  it('keeps signatures on the parts they came with and gives a call without id its own', async () => {
    const { message } = await decode('google', 'google-thinking-tools', 17)
    expect(message?.content).toMatchObject([
      { type: 'thinking', thinking: '**Plan**\nTwo calls.' },
      { type: 'text', text: 'Checking.' },
      {
        type: 'toolCall',
        id: 'fc-1',
        name: 'get_weather',
        arguments: { city: 'Paris' },
        thoughtSignature: 'EpwCCpkCAXLI2nyhGEdDXQ==',
      },
      { type: 'toolCall', name: 'get_weather', arguments: { city: 'Rome' } },
    ])
    expect(message?.stopReason).toBe('toolUse')
  })

  it('puts a signature that comes behind the text onto the text', async () => {
    const { message } = await decode('google', 'google-signed-text')
    expect(message?.content).toEqual([{ type: 'text', text: 'The answer.', textSignature: 'CrECAXLI2nz1sig=' }])
  })

  it('tells blocked prompts, blocked answers, malformed calls and errors apart', async () => {
    expect(codeOf(await decode('google', 'google-blocked'))).toBe('MODEL_CONTENT_FILTERED')
    expect(codeOf(await decode('google', 'google-safety'))).toBe('MODEL_CONTENT_FILTERED')
    expect(codeOf(await decode('google', 'google-malformed'))).toBe('MODEL_ANSWER_INVALID')
    expect(codeOf(await decode('google', 'google-error'))).toBe('MODEL_OVERLOADED')
  })
})
