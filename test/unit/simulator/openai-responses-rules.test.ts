import { checkOpenAIResponsesRequest } from '../../../src/simulator/rules/openai-responses.ts'
import { OPENAI_RESPONSES_RULES } from '../../../src/simulator/rules/openai-rules.ts'
import { describeRules, edit, png } from '../../support/rule-cases.ts'

type Json = any // oxlint-disable-line typescript/no-explicit-any

const hello: Json = { model: 'gpt-4.1', input: [{ role: 'user', content: 'hello' }] }
const call = (id: string): Json => ({ type: 'function_call', call_id: id, name: 'time', arguments: '{}' })
const output = (id: string): Json => ({ type: 'function_call_output', call_id: id, output: 'noon' })
const reasoning = (id = 'rs_1'): Json => ({ type: 'reasoning', id, summary: [], encrypted_content: 'gAAAA' })
const answer = (id?: string): Json => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'hi', annotations: [] }],
  ...(id === undefined ? {} : { id, status: 'completed' }),
})
const tool: Json = { type: 'function', name: 'time', parameters: { type: 'object', properties: {} }, strict: false }
const withInput = (...items: Json[]): Json => ({ ...hello, store: false, input: [...hello.input, ...items] })
const withImage = (url: string): Json => withInput({ role: 'user', content: [{ type: 'input_image', image_url: url }] })
const dataUrl = `data:image/png;base64,${png()}`
const issued = {
  isGenuine: (sealed: string) => sealed === 'gAAAA',
  reasoningBefore: (id: string) => (id === 'msg_1' ? 'rs_1' : undefined),
}

describeRules('openai-responses', OPENAI_RESPONSES_RULES, checkOpenAIResponsesRequest, {
  'body-object': { bad: 'hello', good: hello },
  'valid-unicode': { bad: { ...hello, input: '\udc00' }, good: { ...hello, input: '\ud83d\ude00' } },
  'request-bytes': {
    bad: hello,
    good: hello,
    options: { bodyBytes: 52_428_801 },
    goodOptions: { bodyBytes: 52_428_800 },
  },
  'required-field': { bad: { input: 'hello' }, good: { model: 'gpt-4.1', input: 'hello' } },
  'unknown-field': [
    { bad: { ...hello, messages: [] }, good: hello },
    { bad: edit(hello, (body) => (body.input[0].timestamp = 1)), good: hello },
  ],
  'field-type': { bad: { ...hello, instructions: 5 }, good: { ...hello, instructions: 'five' } },
  'field-value': {
    bad: { ...hello, reasoning: { effort: 'huge' } },
    good: { ...hello, reasoning: { effort: 'high' } },
  },
  'string-length': {
    bad: { ...hello, input: [{ role: 'user', content: 'a'.repeat(10_485_761) }] },
    good: { ...hello, input: [{ role: 'user', content: 'a'.repeat(10_485_760) }] },
  },
  'tool-name': {
    bad: { ...hello, tools: [{ ...tool, name: 'files.read' }] },
    good: { ...hello, tools: [{ ...tool, name: 'files_read' }] },
  },
  'tool-names-unique': { bad: { ...hello, tools: [tool, tool] }, good: { ...hello, tools: [tool] } },
  'tool-count': {
    bad: { ...hello, tools: Array.from({ length: 129 }, (_, index) => ({ ...tool, name: `t${index}` })) },
    good: { ...hello, tools: Array.from({ length: 128 }, (_, index) => ({ ...tool, name: `t${index}` })) },
  },
  'tool-schema': [
    { bad: { ...hello, tools: [{ ...tool, parameters: { type: 'string' } }] }, good: { ...hello, tools: [tool] } },
    {
      bad: { ...hello, tools: [{ ...tool, parameters: { type: 'object', properties: { a: { type: 'array' } } } }] },
      good: {
        ...hello,
        tools: [{ ...tool, parameters: { type: 'object', properties: { a: { type: 'array', items: {} } } } }],
      },
    },
    {
      bad: { ...hello, tools: [{ ...tool, strict: true }] },
      good: {
        ...hello,
        tools: [{ ...tool, strict: true, parameters: { type: 'object', additionalProperties: false } }],
      },
    },
  ],
  'tool-choice': {
    bad: { ...hello, tools: [tool], tool_choice: { type: 'function', name: 'date' } },
    good: { ...hello, tools: [tool], tool_choice: { type: 'function', name: 'time' } },
  },
  'image-url': { bad: withImage('/tmp/a.png'), good: withImage('https://example.com/a.png') },
  'image-data': { bad: withImage('data:image/png;base64,%%'), good: withImage(dataUrl) },
  'image-format': { bad: withImage('data:image/png;base64,bm90IGFuIGltYWdl'), good: withImage(dataUrl) },
  'image-count': {
    bad: withInput({
      role: 'user',
      content: Array.from({ length: 501 }, () => ({ type: 'input_image', image_url: dataUrl })),
    }),
    good: withInput({
      role: 'user',
      content: Array.from({ length: 500 }, () => ({ type: 'input_image', image_url: dataUrl })),
    }),
  },
  sampling: [
    { bad: { ...hello, model: 'o3', temperature: 0 }, good: { ...hello, temperature: 0 } },
    { bad: { ...hello, top_p: 1.1 }, good: { ...hello, top_p: 1 } },
  ],
  'input-present': {
    bad: { ...hello, input: [] },
    good: { ...hello, input: [], previous_response_id: 'resp_1' },
  },
  'item-type': { bad: withInput({ type: 'toolResult' }), good: withInput() },
  'content-nonempty': {
    bad: withInput({ role: 'user', content: [] }),
    good: withInput({ role: 'user', content: [{ type: 'input_text', text: '' }] }),
  },
  'content-part': {
    bad: withInput({ role: 'assistant', content: [{ type: 'input_text', text: 'hi' }] }),
    good: withInput({ role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }),
  },
  'call-id': [
    {
      bad: withInput(call('c'.repeat(65)), output('c'.repeat(65))),
      good: withInput(call('c'.repeat(64)), output('c'.repeat(64))),
    },
    { bad: withInput(call(''), output('')), good: withInput(call('1'), output('1')) },
  ],
  'item-id': [
    { bad: withInput(answer('call_1')), good: withInput(answer('msg_1')) },
    {
      bad: withInput({ ...call('a'), id: 'fc_1|2' }, output('a')),
      good: withInput({ ...call('a'), id: 'fc_1-2' }, output('a')),
    },
    { bad: withInput(answer(`msg_${'1'.repeat(61)}`)), good: withInput(answer(`msg_${'1'.repeat(60)}`)) },
  ],
  'item-id-unique': {
    bad: withInput(answer('msg_1'), answer('msg_1')),
    good: withInput(answer('msg_1'), answer('msg_2')),
  },
  'call-answered': { bad: withInput(call('a')), good: withInput(call('a'), output('a')) },
  'output-expected': [
    { bad: withInput(output('a')), good: withInput(call('a'), output('a')) },
    { bad: withInput(output('a'), call('a')), good: withInput(call('a'), output('a')) },
  ],
  'call-id-unique': [
    { bad: withInput(call('a'), output('a'), output('a')), good: withInput(call('a'), output('a')) },
    {
      bad: withInput(call('a'), output('a'), call('a'), output('a')),
      good: withInput(call('a'), output('a'), call('b'), output('b')),
    },
  ],
  'reasoning-followed': [
    { bad: withInput(reasoning()), good: withInput(reasoning(), answer()) },
    { bad: withInput(reasoning(), reasoning('rs_2'), answer()), good: withInput(reasoning(), answer()) },
    {
      bad: withInput(reasoning(), { role: 'user', content: 'and?' }),
      good: withInput(reasoning(), call('a'), output('a'), { role: 'user', content: 'and?' }),
    },
  ],
  'reasoning-kept': {
    bad: withInput(answer('msg_1')),
    good: withInput(reasoning(), answer('msg_1')),
    options: { issued },
  },
  'reasoning-content': [
    {
      bad: withInput({ type: 'reasoning', id: 'rs_1', summary: [] }, answer()),
      good: { ...withInput({ type: 'reasoning', id: 'rs_1', summary: [] }, answer()), store: true },
    },
    {
      bad: withInput({ ...reasoning(), encrypted_content: 'gBBBB' }, answer('msg_1')),
      good: withInput(reasoning(), answer('msg_1')),
      options: { issued },
    },
  ],
  'max-output-tokens': { bad: { ...hello, max_output_tokens: 15 }, good: { ...hello, max_output_tokens: 16 } },
})
