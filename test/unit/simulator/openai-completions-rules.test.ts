import { expect, test } from 'vitest'
import { checkOpenAICompletionsRequest } from '../../../src/simulator/rules/openai-completions.ts'
import { OPENAI_COMPLETIONS_RULES } from '../../../src/simulator/rules/openai-rules.ts'
import { templateFamilyOf } from '../../../src/simulator/rules/chat-templates.ts'
import { describeRules, edit, png } from '../../support/rule-cases.ts'

type Json = any // oxlint-disable-line typescript/no-explicit-any

const say = (role: string, content: unknown): Json => ({ role, content })
const hello: Json = { model: 'gpt-4.1', messages: [say('user', 'hello')] }
const withMessages = (...messages: Json[]): Json => ({ ...hello, messages: [...hello.messages, ...messages] })
const calls = (...ids: string[]): Json => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'time', arguments: '{}' } })),
})
/** As templates want it: they join the content with strings. */
const rendered = (...ids: string[]): Json => ({ ...calls(...ids), content: '' })
const template = (family: string): Json => ({ dialect: 'compatible', template: family })
const answer = (id: string): Json => ({ role: 'tool', tool_call_id: id, content: 'noon' })
const tool: Json = { type: 'function', function: { name: 'time', parameters: { type: 'object', properties: {} } } }
const named = (name: string): Json => ({ type: 'function', function: { ...tool.function, name } })
const image = (url: string): Json => ({ type: 'image_url', image_url: { url } })
const withImage = (url: string): Json => withMessages(say('user', [image(url)]))
const dataUrl = `data:image/png;base64,${png()}`
const loop = withMessages(calls('a', 'b'), answer('a'), answer('b'))

describeRules('openai-completions', OPENAI_COMPLETIONS_RULES, checkOpenAICompletionsRequest, {
  'body-object': { bad: null, good: hello },
  'valid-unicode': { bad: withMessages(say('user', '\ud83d')), good: withMessages(say('user', '\ud83d\ude00')) },
  'request-bytes': {
    bad: hello,
    good: hello,
    options: { bodyBytes: 52_428_801 },
    goodOptions: { bodyBytes: 52_428_800 },
  },
  'required-field': { bad: { messages: hello.messages }, good: hello },
  'unknown-field': [
    { bad: { ...hello, input: [] }, good: hello },
    {
      bad: withMessages({ ...say('assistant', 'hi'), reasoning_content: 'so' }),
      good: withMessages({ ...say('assistant', 'hi'), reasoning_content: 'so' }),
      goodOptions: { dialect: 'compatible' },
    },
  ],
  'field-type': { bad: { ...hello, stream: 1 }, good: { ...hello, stream: true } },
  'field-value': { bad: withMessages(say('toolResult', 'x')), good: withMessages(say('system', 'x')) },
  'string-length': {
    bad: withMessages(say('user', 'a'.repeat(10_485_761))),
    good: withMessages(say('user', 'a'.repeat(10_485_760))),
  },
  'tool-name': { bad: { ...hello, tools: [named('files.read')] }, good: { ...hello, tools: [named('files_read')] } },
  'tool-names-unique': { bad: { ...hello, tools: [tool, tool] }, good: { ...hello, tools: [tool] } },
  'tool-count': [
    {
      bad: { ...hello, tools: Array.from({ length: 129 }, (_, index) => named(`t${index}`)) },
      good: { ...hello, tools: Array.from({ length: 128 }, (_, index) => named(`t${index}`)) },
    },
    { bad: { ...hello, tools: [] }, good: hello },
  ],
  'tool-schema': {
    bad: { ...hello, tools: [{ type: 'function', function: { name: 'time', parameters: { type: 'array' } } }] },
    good: { ...hello, tools: [{ type: 'function', function: { name: 'time', parameters: { type: 'object' } } }] },
  },
  'tool-choice': [
    { bad: { ...hello, tool_choice: 'auto' }, good: { ...hello, tools: [tool], tool_choice: 'auto' } },
    {
      bad: { ...hello, tools: [tool], tool_choice: { type: 'function', function: { name: 'date' } } },
      good: { ...hello, tools: [tool], tool_choice: { type: 'function', function: { name: 'time' } } },
    },
  ],
  'image-url': { bad: withImage('a.png'), good: withImage('http://example.com/a.png') },
  'image-data': { bad: withImage('data:image/png;base64,%%'), good: withImage(dataUrl) },
  'image-format': { bad: withImage('data:image/bmp;base64,Qk0AAAAA'), good: withImage(dataUrl) },
  'image-count': {
    bad: withMessages(
      say(
        'user',
        Array.from({ length: 501 }, () => image(dataUrl)),
      ),
    ),
    good: withMessages(
      say(
        'user',
        Array.from({ length: 500 }, () => image(dataUrl)),
      ),
    ),
  },
  sampling: [
    { bad: { ...hello, model: 'gpt-5', temperature: 0.2 }, good: { ...hello, model: 'gpt-5', temperature: 1 } },
    { bad: { ...hello, temperature: 2.1 }, good: { ...hello, temperature: 2 } },
  ],
  'messages-present': { bad: { ...hello, messages: [] }, good: hello },
  'content-present': {
    bad: withMessages({ role: 'assistant', content: null }),
    good: withMessages({ role: 'assistant', content: null, refusal: 'no' }),
  },
  'content-nonempty': { bad: withMessages(say('user', [])), good: withMessages(say('user', '')) },
  'content-part': {
    bad: withMessages(say('user', [{ type: 'refusal', refusal: 'no' }])),
    good: withMessages(say('assistant', [{ type: 'refusal', refusal: 'no' }])),
  },
  'image-role': {
    bad: withMessages(calls('a'), { ...answer('a'), content: [image(dataUrl)] }),
    good: withMessages(calls('a'), answer('a'), say('user', [image(dataUrl)])),
  },
  'tool-calls-nonempty': {
    bad: withMessages({ role: 'assistant', content: 'hi', tool_calls: [] }),
    good: withMessages({ role: 'assistant', content: 'hi' }),
  },
  'tool-call-id': [
    {
      bad: withMessages(calls('c'.repeat(41)), answer('c'.repeat(41))),
      good: withMessages(calls('c'.repeat(40)), answer('c'.repeat(40))),
    },
    { bad: withMessages(calls(''), answer('')), good: withMessages(calls('1'), answer('1')) },
  ],
  'tool-call-id-unique': {
    bad: withMessages(calls('a', 'a'), answer('a')),
    good: withMessages(calls('a'), answer('a'), calls('a'), answer('a')),
  },
  'calls-answered': [
    { bad: edit(loop, (body) => body.messages.pop()), good: loop },
    { also: ['tool-expected'], bad: edit(loop, (body) => body.messages.splice(2, 0, say('user', 'wait'))), good: loop },
  ],
  'tool-expected': { bad: withMessages(answer('a')), good: loop },
  'tool-id-known': { bad: edit(loop, (body) => body.messages.push(answer('c'))), good: loop },
  'tool-answered-once': { bad: edit(loop, (body) => body.messages.push(answer('b'))), good: loop },
  'message-name': {
    bad: withMessages({ ...say('user', 'hi'), name: 'Ann Lee' }),
    good: withMessages({ ...say('user', 'hi'), name: 'Ann_Lee' }),
  },
  'max-tokens': [
    { bad: { ...hello, model: 'o3', max_tokens: 100 }, good: { ...hello, model: 'o3', max_completion_tokens: 100 } },
    { bad: { ...hello, max_tokens: 1, max_completion_tokens: 1 }, good: { ...hello, max_tokens: 1 } },
    { bad: { ...hello, max_completion_tokens: 0 }, good: { ...hello, max_completion_tokens: 1 } },
  ],
  'stream-options': {
    bad: { ...hello, stream_options: { include_usage: true } },
    good: { ...hello, stream: true, stream_options: { include_usage: true } },
  },
  'parallel-tool-calls': {
    bad: { ...hello, parallel_tool_calls: true },
    good: { ...hello, tools: [tool], parallel_tool_calls: true },
  },
  'stop-sequences': {
    bad: { ...hello, stop: ['1', '2', '3', '4', '5'] },
    good: { ...hello, stop: ['1', '2', '3', '4'] },
  },
  'compatible-alternation': {
    bad: withMessages(say('user', 'again')),
    good: withMessages(rendered('abcdefgh1'), answer('abcdefgh1'), say('assistant', 'noon'), say('user', 'again')),
    options: { dialect: 'compatible' },
  },
  'template-call-id': {
    bad: withMessages(calls('call_1'), answer('call_1')),
    good: withMessages(calls('abcdefgh1'), answer('abcdefgh1')),
    options: template('mistral'),
  },
  'template-one-call': {
    bad: withMessages(rendered('a', 'b'), answer('a'), answer('b')),
    good: withMessages(rendered('a'), answer('a'), rendered('b'), answer('b')),
    options: template('llama-3'),
  },
  'template-user-first': {
    bad: { ...hello, tools: [tool], messages: [say('system', 'x'), say('assistant', 'hi'), say('user', 'hello')] },
    good: { ...hello, tools: [tool], messages: [say('system', 'x'), say('user', 'hello')] },
    options: template('llama-3'),
  },
  'template-user-present': {
    bad: { ...hello, messages: [say('system', 'x'), say('assistant', 'hi')] },
    good: { ...hello, messages: [say('system', 'x'), say('assistant', 'hi'), say('user', 'hello')] },
    options: template('qwen'),
  },
  'template-content': {
    bad: withMessages(calls('a'), answer('a')),
    good: withMessages(rendered('a'), answer('a')),
    options: template('text-only'),
  },
  'template-text-only': {
    bad: withImage(dataUrl),
    good: withMessages(say('user', 'x')),
    options: template('text-only'),
  },
  'template-plain-turns': [
    {
      bad: { ...hello, messages: [say('system', 'x'), say('user', 'hello')] },
      good: hello,
      options: template('gemma-2'),
    },
    {
      bad: withMessages(rendered('a'), answer('a')),
      good: withMessages(say('assistant', 'called'), say('user', 'result')),
      options: template('gemma-2'),
    },
  ],
  'template-channel-marks': {
    bad: withMessages(say('assistant', '<|channel|>analysis<|message|>hm'), say('user', 'x')),
    good: withMessages(say('assistant', 'hm'), say('user', '<|channel|>')),
    options: template('gpt-oss'),
  },
})

test.each([
  ['Meta-Llama-3.1-8B', 'llama-3'],
  ['mistral-nemo:12b', 'mistral'],
  ['google/gemma-2-2b-it', 'gemma-2'],
  ['gpt-oss:120b', 'gpt-oss'],
  ['gemini-3-pro', 'none'],
  ['local', undefined],
])('the template of %s is that of %s', (model, family) => {
  expect(templateFamilyOf(model)).toBe(family)
})

test('a server whose template is not known is held to what every template renders', () => {
  const body = withMessages(calls('call_1', 'call_2'), answer('call_1'), answer('call_2'), say('user', 'so?'))
  const broken = new Set(
    checkOpenAICompletionsRequest({ ...body, model: 'local' }, { dialect: 'compatible' }).map(({ rule }) => rule),
  )
  expect(broken).toEqual(
    new Set(
      ['compatible-alternation', 'template-call-id', 'template-one-call', 'template-content'].map(
        (rule) => `openai-completions/${rule}`,
      ),
    ),
  )
  expect(
    checkOpenAICompletionsRequest({ ...body, model: 'gemini-3-pro' }, { dialect: 'compatible' }).map(
      ({ rule }) => rule,
    ),
  ).toEqual([])
})

test('a tool message may carry the name of its tool', () => {
  expect(checkOpenAICompletionsRequest(withMessages(calls('a'), { ...answer('a'), name: 'time' }))).toEqual([])
})

test('a compatible server ignores parameters it does not know', () => {
  expect(checkOpenAICompletionsRequest({ ...hello, num_ctx: 4096 }, { dialect: 'compatible' })).toEqual([])
})

test('a name on a tool message, as LangChain sends it, is accepted', () => {
  const body = withMessages(calls('a'), { ...answer('a'), name: 'time' })
  expect(checkOpenAICompletionsRequest(body)).toEqual([])
})
