import { describe, expect, it } from 'vitest'
import {
  NO_USAGE,
  type AssistantBlock,
  type AssistantMessage,
  type PreparedMessage,
} from '../../../src/core/message.ts'
import { createEncoder, type EncoderOptions, type WireApi } from '../../../src/provider/encoders.ts'
import type { ModelRequest } from '../../../src/provider/provider.ts'
import { PIXEL } from '../../support/prepared-histories.ts'

const user = (content: string): PreparedMessage => ({ role: 'user', content, timestamp: 0 })
const result = (id: string, text: string, isError = false): PreparedMessage => {
  return {
    role: 'toolResult',
    toolCallId: id,
    toolName: 'add',
    content: [{ type: 'text', text }],
    isError,
    timestamp: 0,
  }
}
const imageResult = (id: string, isError = false): PreparedMessage => {
  const content = [{ type: 'image' as const, data: PIXEL, mimeType: 'image/png' }]
  return { role: 'toolResult', toolCallId: id, toolName: 'shot', content, isError, timestamp: 0 }
}
const call = (id: string, name = 'add'): AssistantBlock => ({ type: 'toolCall', id, name, arguments: { a: 1 } })

function answer(api: WireApi, model: string, content: readonly AssistantBlock[], provider = 'p'): AssistantMessage {
  return { role: 'assistant', api, provider, model, content, usage: NO_USAGE, stopReason: 'stop', timestamp: 0 }
}

interface Body {
  readonly [field: string]: any // eslint-disable-line typescript/no-explicit-any
}

function encode(
  api: WireApi,
  model: string,
  messages: readonly PreparedMessage[],
  extra: Partial<ModelRequest> = {},
  options: Partial<EncoderOptions> = {},
): Body {
  const request = {
    model,
    system: 'Be kind.',
    messages,
    tools: [],
    maxOutputTokens: 4096,
    thinkingLevel: 'off',
    ...extra,
  }
  return JSON.parse(createEncoder(api, { provider: 'p', ...options })(request).body) as Body
}

const TOOLS: ModelRequest['tools'] = [
  { name: 'add', description: 'Adds.', parameters: { type: 'object', properties: { a: { type: 'number' } } } },
  { name: 'sub', description: 'Subtracts.', parameters: { type: 'object', properties: {} } },
]

describe('Anthropic requests', () => {
  const API = 'anthropic-messages'
  const MODEL = 'claude-sonnet-4-5'

  it('put one cache breakpoint each on system, tools and the last two user turns', () => {
    const history = [user('1'), answer(API, MODEL, [{ type: 'text', text: 'x' }]), user('2'), answer(API, MODEL, [{ type: 'text', text: 'y' }]), user('3')] // prettier-ignore
    const body = encode(API, MODEL, history, { tools: TOOLS })
    const marked = JSON.stringify(body).split('cache_control').length - 1
    expect(marked).toBe(4)
    expect(body['system'][0]).toHaveProperty('cache_control')
    expect(body['tools'].map((tool: Body) => 'cache_control' in tool)).toEqual([false, true])
    expect(body['messages'].map((message: Body) => 'cache_control' in message['content'].at(-1))).toEqual([
      false,
      false,
      true,
      false,
      true,
    ])
  })

  it('keep every byte of the earlier messages, apart from the marks, when the conversation goes on', () => {
    const first = [user('1'), answer(API, MODEL, [call('c1')]), result('c1', 'ok')]
    const later = [...first, answer(API, MODEL, [call('c1')]), result('c1', 'again'), answer(API, MODEL, [{ type: 'text', text: 'x' }]), user('2')] // prettier-ignore
    const strip = (body: Body): string =>
      JSON.stringify(body['messages']).replaceAll(',"cache_control":{"type":"ephemeral"}', '')
    const short = strip(encode(API, MODEL, first))
    expect(strip(encode(API, MODEL, later)).startsWith(short.slice(0, -1))).toBe(true)
  })

  it('put all results of a turn first into one user message, and what the user said behind them', () => {
    const body = encode(API, MODEL, [user('go'), answer(API, MODEL, [call('a'), call('b')]), result('a', '1'), result('b', '', true), user('thanks')]) // prettier-ignore
    expect(body['messages'][2]).toMatchObject({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '1' }] },
        { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: '(no output)' }], is_error: true },
        { type: 'text', text: 'thanks' },
      ],
    })
  })

  it('move images out of results that are errors, behind the last result', () => {
    const body = encode(API, MODEL, [user('go'), answer(API, MODEL, [call('a'), call('b')]), imageResult('a', true), imageResult('b'), user('?')]) // prettier-ignore
    expect(body['messages'][2]['content'].map((block: Body) => block['type'])).toEqual([
      'tool_result',
      'tool_result',
      'image',
      'text',
    ])
    expect(body['messages'][2]['content'][1]['content'][0]['type']).toBe('image')
  })

  it('replay thinking byte for byte to its own model only', () => {
    const content: readonly AssistantBlock[] = [
      { type: 'thinking', thinking: 'hm', thinkingSignature: 'c2ln' },
      { type: 'thinking', thinking: '[Reasoning redacted]', thinkingSignature: 'ZGF0YQ==', redacted: true },
      { type: 'text', text: 'so' },
    ]
    const own = encode(API, MODEL, [user('?'), answer(API, MODEL, content), user('!')])
    expect(own['messages'][1]['content']).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
      { type: 'redacted_thinking', data: 'ZGF0YQ==' },
      { type: 'text', text: 'so' },
    ])
    for (const foreign of [answer(API, 'claude-opus-4-5', content), answer(API, MODEL, content, 'other')]) {
      expect(encode(API, MODEL, [user('?'), foreign, user('!')])['messages'][1]['content']).toEqual([
        { type: 'text', text: 'so' },
      ])
    }
  })

  it('declare the tools of the history, uncallable, when none are offered', () => {
    const body = encode(API, MODEL, [user('?'), answer(API, MODEL, [call('a')]), result('a', '1'), user('sum up')])
    expect(body['tools']).toEqual([
      { name: 'add', description: 'Not available any more.', input_schema: { type: 'object' } },
    ])
    expect(body['tool_choice']).toEqual({ type: 'none' })
  })

  it.each([
    ['claude-3-5-haiku-latest', 'high', undefined],
    ['claude-3-7-sonnet-20250219', 'low', { type: 'enabled', budget_tokens: 2048 }],
    ['claude-opus-4-1-20250805', 'high', { type: 'enabled', budget_tokens: 3072 }],
    ['claude-sonnet-4-20250514', 'minimal', { type: 'enabled', budget_tokens: 1024 }],
    ['claude-haiku-4-5', 'medium', { type: 'enabled', budget_tokens: 3072 }],
    ['claude-opus-4-6', 'high', { type: 'adaptive', display: 'summarized' }],
    ['claude-opus-4-8', 'low', { type: 'adaptive', display: 'summarized' }],
    ['claude-opus-5-5', 'xhigh', { type: 'adaptive', display: 'summarized' }],
    ['claude-sonnet-5', 'off', undefined],
  ])('ask %s at level %s for thinking in the way it knows', (model, thinkingLevel, expected) => {
    expect(encode(API, model, [user('?')], { thinkingLevel })['thinking']).toEqual(expected)
  })

  it('go without budget thinking while a tool loop of another model is open', () => {
    const loop = [user('?'), answer('openai-responses', 'gpt-5', [call('a')], 'openai'), result('a', '1')]
    expect(encode(API, MODEL, loop, { thinkingLevel: 'high' })).not.toHaveProperty('thinking')
    const over = [...loop, answer('openai-responses', 'gpt-5', [{ type: 'text', text: 'x' }], 'openai'), user('!')]
    expect(encode(API, MODEL, over, { thinkingLevel: 'high' })).toHaveProperty('thinking')
  })
})

describe('OpenAI Responses requests', () => {
  const API = 'openai-responses'
  const reasoning = '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"b3BhcXVl"}'
  const thinking: AssistantBlock = { type: 'thinking', thinking: '', thinkingSignature: reasoning }

  it('store nothing at the provider and ask for reasoning back, encrypted', () => {
    const body = encode(API, 'gpt-5', [user('?')], { thinkingLevel: 'medium', cacheKey: 'abc' })
    expect(body).toMatchObject({
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'medium', summary: 'auto' },
      instructions: 'Be kind.',
      prompt_cache_key: 'abc',
    })
    expect(encode(API, 'gpt-4o', [user('?')], { thinkingLevel: 'medium' })).not.toHaveProperty('include')
  })

  it('replay a reasoning item as it came, in front of what it led to', () => {
    const body = encode(API, 'gpt-5', [
      user('?'),
      answer(API, 'gpt-5', [thinking, call('call_a|fc_1')]),
      result('call_a|fc_1', '1'),
    ])
    expect(body['input'].slice(1)).toEqual([
      JSON.parse(reasoning),
      { type: 'function_call', call_id: 'callafc1', name: 'add', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'callafc1', output: '1' },
    ])
  })

  it.each(['"summary":[],"encrypteummary":[]', '"sqmmary":[]', '"summary":null', '"summary":["x"]'])(
    'replay a reasoning item with spoilt fields as OpenAI takes it: %s',
    (fields) => {
      const odd = { ...thinking, thinkingSignature: reasoning.replace('"summary":[]', fields) }
      const body = encode(API, 'gpt-5', [user('?'), answer(API, 'gpt-5', [odd, call('call_a')]), result('call_a', '1')])
      expect(body['input'][1]).toEqual(JSON.parse(reasoning))
    },
  )

  it('drop reasoning that nothing follows, that came twice, or that brings no content', () => {
    const text: AssistantBlock = { type: 'text', text: 'x' }
    const bare: AssistantBlock = {
      type: 'thinking',
      thinking: '',
      thinkingSignature: '{"id":"rs_2","type":"reasoning","summary":[]}',
    }
    const twice = [user('?'), answer(API, 'gpt-5', [thinking, text]), user('!'), answer(API, 'gpt-5', [thinking, text, bare, text, thinking]), user('.')] // prettier-ignore
    const body = encode(API, 'gpt-5', twice)
    expect(body['input'].filter((item: Body) => item['type'] === 'reasoning')).toHaveLength(1)
  })

  it('keep the phase of a text, which newer models want back', () => {
    const text: AssistantBlock = { type: 'text', text: 'x', textSignature: '{"v":1,"id":"msg_1","phase":"commentary"}' }
    const body = encode(API, 'gpt-5.4', [user('?'), answer(API, 'gpt-5.4', [text]), user('!')])
    expect(body['input'][1]).toEqual({ type: 'message', role: 'assistant', content: 'x', phase: 'commentary' })
  })
})

describe('Chat Completions requests', () => {
  const API = 'openai-completions'

  it('use the newer limit for OpenAI and the older for everybody else', () => {
    expect(encode(API, 'gpt-4o', [user('?')])).toMatchObject({
      max_completion_tokens: 4096,
      stream_options: { include_usage: true },
    })
    const compatible = encode(API, 'llama', [user('?')], { cacheKey: 'abc' }, { dialect: 'compatible' })
    expect(compatible).toMatchObject({ max_tokens: 4096 })
    expect(compatible).not.toHaveProperty('prompt_cache_key')
  })

  it('merge neighbouring turns for templates that want them to alternate', () => {
    const body = encode(API, 'llama', [user('a'), user('b')], {}, { dialect: 'compatible' })
    expect(body['messages']).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'a\n\nb' },
    ])
  })

  it('give calls to compatible servers ids of nine letters and digits', () => {
    const history = [user('?'), answer(API, 'x', [call('call_ünï|fc_1')]), result('call_ünï|fc_1', '1')]
    const { messages } = encode(API, 'llama', history, {}, { dialect: 'compatible' })
    expect(messages[2].tool_calls[0].id).toMatch(/^[A-Za-z0-9]{9}$/)
    expect(messages[3].tool_call_id).toBe(messages[2].tool_calls[0].id)
  })

  it('put an answer between a result and its picture for compatible servers', () => {
    const history = [user('?'), answer(API, 'x', [call('a', 'shot')]), imageResult('a')]
    const { messages } = encode(API, 'llama', history, {}, { dialect: 'compatible' })
    expect(messages.map(({ role }: Body) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user'])
    expect(messages.at(-1).content[1]).toMatchObject({ type: 'image_url' })
  })

  it('break the marks of gpt-oss in what an answer said, and give every answer a text', () => {
    const leaked: AssistantBlock = { type: 'text', text: '<|channel|>analysis<|message|>hm' }
    const history = [user('?'), answer(API, 'x', [leaked]), user('!'), answer(API, 'x', [call('a')]), result('a', '1')]
    const { messages } = encode(API, 'llama', history, {}, { dialect: 'compatible' })
    expect(messages[2].content).toBe('<| channel |>analysis<|message|>hm')
    expect(messages[4].content).toBe('')
    expect(encode(API, 'gpt-4o', history)['messages'][4].content).toBeNull()
  })

  it('put the system prompt into the first user turn when only plain turns may leave', () => {
    const plain = { plainTurns: true }
    expect(encode(API, 'llama', [user('a')], plain, { dialect: 'compatible' })['messages']).toEqual([
      { role: 'user', content: 'Be kind.\n\na' },
    ])
    expect(encode(API, 'gpt-4o', [user('a')], plain)['messages'][0]).toEqual({ role: 'system', content: 'Be kind.' })
  })

  it('send reasoning back in the field it came in', () => {
    const thinking: AssistantBlock = { type: 'thinking', thinking: 'hm', thinkingSignature: 'reasoning_content' }
    const history = [user('?'), answer(API, 'deepseek-chat', [thinking, call('a')]), result('a', '1')]
    const body = encode(API, 'deepseek-chat', history, {}, { dialect: 'compatible', reasoning: 'thinking' })
    expect(body['messages'][2]).toMatchObject({ role: 'assistant', content: '', reasoning_content: 'hm' })
    expect(body['thinking']).toEqual({ type: 'disabled' })
  })

  it('send Gemini its signatures back through the compatible door', () => {
    const signed: AssistantBlock = {
      type: 'toolCall',
      id: 'a',
      name: 'f',
      arguments: {},
      thoughtSignature: '{"google":{"thought_signature":"c2ln"}}',
    }
    const body = encode(
      API,
      'gemini-3',
      [user('?'), answer(API, 'gemini-3', [signed]), result('a', '1')],
      {},
      { dialect: 'compatible' },
    )
    expect(body['messages'][2]['tool_calls'][0]['extra_content']).toEqual({ google: { thought_signature: 'c2ln' } })
  })

  it('show images of tool results in a user message behind the last of them', () => {
    const body = encode(API, 'gpt-4o', [
      user('?'),
      answer(API, 'gpt-4o', [call('a'), call('b')]),
      imageResult('a'),
      result('b', 'x'),
    ])
    expect(body['messages'].map((message: Body) => message['role'])).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
    ])
    expect(body['messages'][3]['content']).toBe('(see the attached image)')
  })

  it.each([
    ['effort', { reasoning_effort: 'high' }],
    ['thinking', { thinking: { type: 'enabled' } }],
    ['enable-thinking', { enable_thinking: true }],
    ['nested', { reasoning: { effort: 'high' } }],
    ['none', {}],
  ] as const)('ask for thinking in the style %s', (reasoning, expected) => {
    const body = encode(API, 'm', [user('?')], { thinkingLevel: 'high' }, { dialect: 'compatible', reasoning })
    const { model: _m, max_tokens: _t, stream: _s, stream_options: _o, messages: _c, ...rest } = body
    expect(rest).toEqual(expected)
  })
})

describe('Google requests', () => {
  const API = 'google-generative-ai'

  it('put calls and their responses into turns of their own with the same ids and names', () => {
    const history = [user('?'), answer(API, 'gemini-2.5-pro', [call('x', 'odd.name')]), { ...result('x', '1'), toolName: 'renamed' } as PreparedMessage, user('!')] // prettier-ignore
    expect(encode(API, 'gemini-2.5-pro', history)['contents']).toEqual([
      { role: 'user', parts: [{ text: '?' }] },
      { role: 'model', parts: [{ functionCall: { id: 'x', name: 'odd_name', args: { a: 1 } } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'x', name: 'odd_name', response: { output: '1' } } }] },
      { role: 'user', parts: [{ text: '!' }] },
    ])
  })

  it('sign calls Gemini 3 did not make with the documented placeholder, the first of each set only', () => {
    const signed: AssistantBlock = { type: 'toolCall', id: 'c', name: 'add', arguments: {}, thoughtSignature: 'c2ln' }
    const foreign = answer('anthropic-messages', 'claude', [call('a'), call('b')], 'anthropic')
    const history = [
      user('?'),
      foreign,
      result('a', '1'),
      result('b', '2'),
      answer(API, 'gemini-3-pro-preview', [signed]),
      result('c', '3'),
    ]
    const parts = encode(API, 'gemini-3-pro-preview', history)['contents'].flatMap(
      (content: Body) => content['parts'],
    ) as Body[]
    const signatures = parts.flatMap((part) => ('functionCall' in part ? [part['thoughtSignature']] : []))
    expect(signatures).toEqual(['skip_thought_signature_validator', undefined, 'c2ln'])
  })

  it('put images into the response from Gemini 3 on, and into a turn behind the responses before', () => {
    const history = [user('?'), answer(API, 'm', [call('a', 'shot'), call('b')]), imageResult('a'), result('b', '1')]
    const modern = encode(API, 'gemini-3-flash-preview', history)['contents'][2]['parts']
    expect(modern[0]['functionResponse']['parts'][0]).toHaveProperty('inlineData')
    const old = encode(API, 'gemini-2.5-flash', history)['contents'].slice(2)
    const kinds = old.map((content: Body) => content['parts'].map((part: Body) => Object.keys(part)[0]))
    expect(kinds).toEqual([['functionResponse', 'functionResponse'], ['inlineData']])
  })

  it.each([
    ['gemini-3-pro-preview', 'low', { includeThoughts: true, thinkingLevel: 'LOW' }],
    ['gemini-3.6-flash', 'medium', { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-2.5-flash', 'high', { includeThoughts: true, thinkingBudget: 24_576 }],
    ['gemini-2.5-flash', 'off', { thinkingBudget: 0 }],
    ['gemini-2.5-pro', 'off', undefined],
    ['gemini-2.0-flash', 'high', undefined],
    ['gemma-3-27b-it', 'high', undefined],
  ])('ask %s at level %s for thinking in the way it knows', (model, thinkingLevel, expected) => {
    expect(encode(API, model, [user('?')], { thinkingLevel })['generationConfig']['thinkingConfig']).toEqual(expected)
  })
})

describe('Mistral requests', () => {
  const API = 'mistral-conversations'

  it('give every call nine letters and digits, and its result the same', () => {
    const history = [
      user('?'),
      answer(API, 'm', [call('call_1|fc'), call('call_2|fc')]),
      result('call_2|fc', '2'),
      result('call_1|fc', '1'),
    ]
    const { messages } = encode(API, 'm', history)
    const ids = messages[2].tool_calls.map((one: Body) => one['id'])
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9]{9}$/)
    expect(messages.slice(3).map((message: Body) => message['tool_call_id'])).toEqual(ids.toReversed())
  })

  it('never let the user speak right behind a tool', () => {
    const roles = encode(API, 'm', [user('?'), answer(API, 'm', [call('a')]), result('a', '1'), user('!')])[
      'messages'
    ].map((message: Body) => message['role'])
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user'])
  })

  it('replay the thinking of a Magistral to itself', () => {
    const thinking: AssistantBlock = { type: 'thinking', thinking: 'hm' }
    const body = encode(API, 'magistral-small', [user('?'), answer(API, 'magistral-small', [thinking, { type: 'text', text: 'x' }]), user('!')], { thinkingLevel: 'high' }) // prettier-ignore
    expect(body['messages'][2]['content']).toEqual([
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'x' },
    ])
    expect(body['prompt_mode']).toBe('reasoning')
  })
})
