import { expect, test } from 'vitest'
import { checkGoogleRequest } from '../../../src/simulator/rules/google.ts'
import { GOOGLE_RULES } from '../../../src/simulator/rules/google-rules.ts'
import { describeRules, edit, gif, png } from '../../support/rule-cases.ts'

type Json = any // oxlint-disable-line typescript/no-explicit-any

const SIGNATURE = 'EpwCCpkC'
const say = (role: string, ...parts: Json[]): Json => ({ role, parts })
const text = (words: string): Json => ({ text: words })
const hello: Json = { contents: [say('user', text('hello'))] }
const withContents = (...contents: Json[]): Json => ({ contents: [...hello.contents, ...contents] })
const call = (name: string, signature?: string): Json => ({
  functionCall: { name, args: {} },
  ...(signature === undefined ? {} : { thoughtSignature: signature }),
})
const response = (name: string): Json => ({ functionResponse: { name, response: { output: 'noon' } } })
const loop: Json = withContents(
  say('model', call('time', SIGNATURE), call('date')),
  say('user', response('time'), response('date')),
)
const blob = (mimeType: string, data: string): Json =>
  withContents(say('model', text('?')), say('user', { inlineData: { mimeType, data } }))
const declare = (...functions: Json[]): Json => ({ ...hello, tools: [{ functionDeclarations: functions }] })
const schema = (parameters: Json): Json => declare({ name: 'time', parameters })
const zone = { type: 'OBJECT', properties: { zone: { type: 'STRING' } } }
const issued = { isGenuine: (signature: string) => signature === SIGNATURE, reasoningBefore: () => undefined }

describeRules('google', GOOGLE_RULES, checkGoogleRequest, {
  'body-object': { bad: 5, good: hello },
  'valid-unicode': {
    bad: { contents: [say('user', text('\ud83d'))] },
    good: { contents: [say('user', text('\ud83d\ude00'))] },
  },
  'request-bytes': {
    bad: hello,
    good: hello,
    options: { bodyBytes: 20_971_521 },
    goodOptions: { bodyBytes: 20_971_520 },
  },
  'unknown-field': [
    { bad: { ...hello, messages: [] }, good: { ...hello, safetySettings: [] } },
    { bad: edit(hello, (body) => (body.contents[0].parts[0].role = 'user')), good: hello },
    { bad: schema({ ...zone, additionalProperties: false }), good: schema(zone) },
  ],
  'field-type': { bad: { ...hello, tools: {} }, good: { ...hello, tools: [] } },
  'contents-present': { bad: { contents: [] }, good: hello },
  role: {
    also: ['first-role', 'last-role', 'model-turn-last'],
    bad: { contents: [say('assistant', text('hi'))] },
    good: hello,
  },
  'parts-present': { bad: { contents: [say('user')] }, good: hello },
  'part-data': [
    { bad: { contents: [say('user', {})] }, good: hello },
    { bad: edit(loop, (body) => (body.contents[2].parts[0].text = 'noon')), good: loop },
  ],
  'text-nonempty': {
    bad: withContents(say('model', text('')), say('user', text('and?'))),
    good: withContents(say('model', { text: '', thoughtSignature: SIGNATURE }), say('user', text('and?'))),
  },
  'first-role': {
    bad: { contents: [say('model', text('hi')), say('user', text('hello'))] },
    good: { contents: [say('model', text('hi')), say('user', text('hello'))] },
    goodOptions: { profile: 'current' },
  },
  alternation: {
    bad: withContents(say('user', text('again'))),
    good: withContents(say('user', text('again'))),
    goodOptions: { profile: 'current' },
  },
  'last-role': {
    also: ['model-turn-last'],
    bad: withContents(say('model', text('hi'))),
    good: withContents(say('model', text('hi')), say('user', text('and?'))),
  },
  'model-turn-last': {
    also: ['last-role'],
    bad: withContents(say('model', text('hi'))),
    good: withContents(say('model', text('hi'))),
    goodOptions: { profile: 'current', model: 'gemini-2.5-pro' },
  },
  'response-alone': {
    also: ['response-alone-always'],
    bad: edit(loop, (body) => body.contents[2].parts.push(text('and?'))),
    good: edit(loop, (body) => body.contents.push(say('user', text('and?')))),
  },
  'response-alone-always': {
    bad: edit(loop, (body) => body.contents[2].parts.push(text('and?'))),
    good: edit(loop, (body) => body.contents[2].parts.push(text('and?'))),
    options: { model: 'gemini-2.5-pro' },
    goodOptions: { profile: 'current', model: 'gemini-2.5-pro' },
  },
  'call-turn-order': {
    also: ['alternation'],
    bad: edit(loop, (body) => body.contents.splice(1, 0, say('model', text('let me see')))),
    good: edit(loop, (body) => body.contents[1].parts.unshift(text('let me see'))),
  },
  'response-turn-order': { bad: withContents(say('model', text('hm')), say('user', response('time'))), good: loop },
  'response-count': [
    { bad: edit(loop, (body) => body.contents[2].parts.pop()), good: loop },
    { also: ['last-role', 'model-turn-last'], bad: edit(loop, (body) => body.contents.pop()), good: loop },
  ],
  'call-name': {
    also: ['response-matches'],
    bad: edit(loop, (body) => (body.contents[2].parts[0].functionResponse.name = '')),
    good: loop,
  },
  'response-matches': [
    { bad: edit(loop, (body) => (body.contents[2].parts[0].functionResponse.name = 'date')), good: loop },
    {
      bad: edit(loop, (body) => {
        body.contents[1].parts[0].functionCall.id = 'a'
        body.contents[2].parts[0].functionResponse.id = 'b'
      }),
      good: edit(loop, (body) => {
        body.contents[1].parts[0].functionCall.id = 'a'
        body.contents[2].parts[0].functionResponse.id = 'a'
      }),
    },
  ],
  'call-role': [
    {
      also: ['alternation'],
      bad: withContents(say('user', call('time', SIGNATURE)), say('user', response('time'))),
      good: withContents(say('model', call('time', SIGNATURE)), say('user', response('time'))),
    },
    {
      also: ['alternation', 'last-role', 'model-turn-last'],
      bad: edit(loop, (body) => (body.contents[2].role = 'model')),
      good: loop,
    },
  ],
  'call-struct': [
    { bad: edit(loop, (body) => (body.contents[2].parts[0].functionResponse.response = 'noon')), good: loop },
    { bad: edit(loop, (body) => (body.contents[1].parts[0].functionCall.args = [])), good: loop },
  ],
  'signature-base64': { bad: edit(loop, (body) => (body.contents[1].parts[0].thoughtSignature = 'a b')), good: loop },
  'signature-present': [
    { bad: edit(loop, (body) => delete body.contents[1].parts[0].thoughtSignature), good: loop },
    {
      bad: edit(loop, (body) => delete body.contents[1].parts[0].thoughtSignature),
      good: edit(loop, (body) => delete body.contents[1].parts[0].thoughtSignature),
      goodOptions: { model: 'gemini-2.5-pro' },
    },
    {
      bad: edit(loop, (body) => delete body.contents[1].parts[0].thoughtSignature),
      good: edit(loop, (body) => {
        delete body.contents[1].parts[0].thoughtSignature
        body.contents.push(say('model', text('noon')), say('user', text('thanks')))
      }),
    },
  ],
  'signature-genuine': {
    bad: edit(loop, (body) => (body.contents[1].parts[0].thoughtSignature = 'AAAA')),
    good: edit(loop, (body) => (body.contents[1].parts[0].thoughtSignature = 'skip_thought_signature_validator')),
    options: { issued },
  },
  'image-mime-type': { bad: blob('image/gif', gif()), good: blob('image/png', png()) },
  'inline-data': [
    { bad: blob('image/png', 'bm90IGFuIGltYWdl'), good: blob('image/png', png()) },
    { bad: blob('text/plain', '%%%%'), good: blob('text/plain', 'aGkh') },
  ],
  'image-count': {
    bad: {
      contents: [
        say('user', ...Array.from({ length: 3001 }, () => ({ inlineData: { mimeType: 'image/png', data: png() } }))),
      ],
    },
    good: {
      contents: [
        say('user', ...Array.from({ length: 3000 }, () => ({ inlineData: { mimeType: 'image/png', data: png() } }))),
      ],
    },
  },
  'function-name': { bad: declare({ name: '1time' }), good: declare({ name: 'time.now:1' }) },
  'function-names-unique': {
    bad: declare({ name: 'time' }, { name: 'time' }),
    good: declare({ name: 'time' }, { name: 'date' }),
  },
  'function-schema': [
    { bad: schema({ type: 'OBJECT', properties: {} }), good: schema(zone) },
    {
      bad: schema({ type: 'OBJECT', properties: { a: { type: 'ARRAY' } } }),
      good: schema({ type: 'OBJECT', properties: { a: { type: 'ARRAY', items: { type: 'STRING' } } } }),
    },
    { bad: schema({ ...zone, properties: { a: { type: 'STRING', properties: {} } } }), good: schema(zone) },
    { bad: schema({ ...zone, required: ['place'] }), good: schema({ ...zone, required: ['zone'] }) },
    {
      bad: declare({ name: 'time', parameters: zone, parametersJsonSchema: {} }),
      good: declare({ name: 'time', parametersJsonSchema: {} }),
    },
  ],
  'output-limit': {
    bad: { ...hello, generationConfig: { maxOutputTokens: 0 } },
    good: { ...hello, generationConfig: { maxOutputTokens: 1 } },
  },
  'thinking-setting': {
    bad: { ...hello, generationConfig: { thinkingConfig: { thinkingBudget: 1, thinkingLevel: 'LOW' } } },
    good: { ...hello, generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
  },
})

test('fields may be written under their original protocol buffer names', () => {
  expect(checkGoogleRequest({ ...hello, system_instruction: { parts: [{ text: 'be kind' }] } })).toEqual([])
})
