import { checkMistralRequest } from '../../../src/simulator/rules/mistral.ts'
import { MISTRAL_RULES } from '../../../src/simulator/rules/mistral-rules.ts'
import { describeRules, edit, png } from '../../support/rule-cases.ts'

type Json = any // oxlint-disable-line typescript/no-explicit-any

const say = (role: string, content: unknown): Json => ({ role, content })
const hello: Json = { model: 'mistral-large-latest', messages: [say('user', 'hello')] }
const withMessages = (...messages: Json[]): Json => ({ ...hello, messages: [...hello.messages, ...messages] })
const calls = (...ids: string[]): Json => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'time', arguments: '{}' } })),
})
const answer = (id: string): Json => ({ role: 'tool', tool_call_id: id, name: 'time', content: 'noon' })
const A = 'aaaaaaaa1'
const B = 'bbbbbbbb2'
const loop = withMessages(calls(A, B), answer(A), answer(B))
const tool = (name: string, parameters: Json = { type: 'object' }): Json => ({
  ...hello,
  tools: [{ type: 'function', function: { name, parameters } }],
})
const image = (url: string): Json => ({ type: 'image_url', image_url: url })
const withImage = (url: string): Json => ({ ...hello, messages: [say('user', [image(url)])] })
const dataUrl = `data:image/png;base64,${png()}`

describeRules('mistral', MISTRAL_RULES, checkMistralRequest, {
  'body-object': { bad: [], good: hello },
  'valid-unicode': { bad: edit(hello, (body) => (body.messages[0].content = '\ud83d')), good: hello },
  'request-bytes': {
    bad: hello,
    good: hello,
    options: { bodyBytes: 52_428_801 },
    goodOptions: { bodyBytes: 52_428_800 },
  },
  'required-field': { bad: { messages: hello.messages }, good: hello },
  'unknown-field': [
    { bad: { ...hello, max_completion_tokens: 5 }, good: { ...hello, max_tokens: 5 } },
    { bad: withMessages({ ...calls(A), reasoning_content: 'so' }, answer(A)), good: withMessages(calls(A), answer(A)) },
    { bad: edit(hello, (body) => (body.messages[0].name = 'Ann')), good: hello },
  ],
  'field-type': [
    { bad: { ...hello, tools: 'none' }, good: { ...hello, tools: null } },
    {
      bad: { ...hello, messages: [say('developer', 'x'), ...hello.messages] },
      good: { ...hello, messages: [say('system', 'x'), ...hello.messages] },
    },
  ],
  'messages-present': { bad: { ...hello, messages: [] }, good: hello },
  'first-role': {
    bad: { ...hello, messages: [say('assistant', 'hi'), say('user', 'hello')] },
    good: { ...hello, messages: [say('assistant', 'hi'), say('user', 'hello')] },
    goodOptions: { profile: 'current' },
  },
  'role-order': [
    {
      bad: edit(loop, (body) => body.messages.push(say('user', 'and?'))),
      good: edit(loop, (body) => body.messages.push(say('assistant', 'noon'), say('user', 'and?'))),
    },
    { also: ['tool-id-known'], bad: withMessages(answer(A)), good: loop },
    {
      bad: withMessages(say('assistant', 'hi'), say('system', 'x'), say('user', 'y')),
      good: withMessages(say('assistant', 'hi'), say('user', 'y')),
    },
  ],
  alternation: {
    bad: withMessages(say('user', 'again')),
    good: withMessages(say('user', 'again')),
    goodOptions: { profile: 'current' },
  },
  'last-role': {
    bad: withMessages(say('assistant', 'hi')),
    good: withMessages({ ...say('assistant', 'hi'), prefix: true }),
  },
  'call-count': [
    { bad: edit(loop, (body) => body.messages.pop()), good: loop },
    {
      bad: edit(loop, (body) => body.messages.splice(3, 1, say('assistant', 'noon'), say('user', 'and?'))),
      good: loop,
    },
  ],
  'tool-id-known': {
    also: ['call-count'],
    bad: withMessages(calls(A), answer(B)),
    good: withMessages(calls(A), answer(A)),
  },
  'tool-answered-once': { bad: withMessages(calls(A), answer(A), answer(A)), good: withMessages(calls(A), answer(A)) },
  'call-id-unique': { bad: withMessages(calls(A, A), answer(A)), good: loop },
  'tool-call-id': [
    { bad: withMessages(calls('aaaaaaaa12'), answer('aaaaaaaa12')), good: withMessages(calls(A), answer(A)) },
    { bad: withMessages(calls('aaaa_aaa1'), answer('aaaa_aaa1')), good: withMessages(calls(A), answer(A)) },
    {
      also: ['tool-id-known', 'call-count'],
      bad: withMessages(calls(A), { role: 'tool', content: 'noon' }),
      good: withMessages(calls(A), answer(A)),
    },
  ],
  'function-name': { bad: tool('files.read'), good: tool('files_read') },
  'assistant-content': {
    bad: withMessages(say('assistant', ''), say('user', 'and?')),
    good: withMessages(say('assistant', 'hi'), say('user', 'and?')),
  },
  'prefix-last': {
    bad: withMessages({ ...say('assistant', 'hi'), prefix: true }, say('user', 'and?')),
    good: withMessages({ ...say('assistant', 'hi'), prefix: false }, say('user', 'and?')),
  },
  'tool-content-text': {
    bad: withMessages(calls(A), { ...answer(A), content: [image(dataUrl)] }),
    good: withMessages(calls(A), { ...answer(A), content: [{ type: 'text', text: 'noon' }] }),
  },
  'tool-schema': { bad: tool('time', { type: 5 }), good: tool('time', { type: 'object' }) },
  'image-url': { bad: withImage('/tmp/a.png'), good: withImage('https://example.com/a.png') },
  'image-format': { bad: withImage('data:image/png;base64,bm90IGFuIGltYWdl'), good: withImage(dataUrl) },
  'image-bytes': {
    bad: withImage(dataUrl + 'A'.repeat(14_000_000)),
    good: withImage(dataUrl + 'A'.repeat(13_900_000)),
  },
  'image-count': {
    bad: {
      ...hello,
      messages: [
        say(
          'user',
          Array.from({ length: 9 }, () => image(dataUrl)),
        ),
      ],
    },
    good: {
      ...hello,
      messages: [
        say(
          'user',
          Array.from({ length: 8 }, () => image(dataUrl)),
        ),
      ],
    },
  },
  sampling: { bad: { ...hello, temperature: 1.6 }, good: { ...hello, temperature: 1.5 } },
})
