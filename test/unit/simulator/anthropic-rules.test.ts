import { ANTHROPIC_RULES } from '../../../src/simulator/rules/anthropic-rules.ts'
import { checkAnthropicRequest } from '../../../src/simulator/rules/anthropic.ts'
import { describeRules, edit, gif, png } from '../../support/rule-cases.ts'

type Json = any // oxlint-disable-line typescript/no-explicit-any

const MODEL = 'claude-haiku-4-5'
const NEW_MODEL = 'claude-opus-4-8'
const SIGNATURE = 'EqoBCkgIARABGAI='

const say = (role: string, content: unknown): Json => ({ role, content })
const hello: Json = { model: MODEL, max_tokens: 64, messages: [say('user', 'hello')] }
const text = (words: string): Json => ({ type: 'text', text: words })
const use = (id: string): Json => ({ type: 'tool_use', id, name: 'time', input: {} })
const result = (id: string, content: unknown = 'noon'): Json => ({ type: 'tool_result', tool_use_id: id, content })
const thought = (words = 'so'): Json => ({ type: 'thinking', thinking: words, signature: SIGNATURE })
const image = (data = png(), mediaType = 'image/png'): Json => ({
  type: 'image',
  source: { type: 'base64', media_type: mediaType, data },
})
const tool: Json = { name: 'time', input_schema: { type: 'object', properties: {} } }
const withMessages = (...messages: Json[]): Json => ({ ...hello, tools: [tool], messages })
const loop: Json = withMessages(
  say('user', 'when?'),
  say('assistant', [text('let me see'), use('a'), use('b')]),
  say('user', [result('a'), result('b')]),
)
const thinking: Json = { type: 'enabled', budget_tokens: 1024 }
const thinkingLoop: Json = {
  ...withMessages(say('user', 'when?'), say('assistant', [thought(), use('a')]), say('user', [result('a')])),
  max_tokens: 2048,
  thinking,
}
const issued = { isGenuine: (signature: string) => signature === SIGNATURE, reasoningBefore: () => undefined }

describeRules('anthropic', ANTHROPIC_RULES, checkAnthropicRequest, {
  'body-object': { bad: [], good: hello },
  'request-bytes': {
    bad: hello,
    good: hello,
    options: { bodyBytes: 33_554_433 },
    goodOptions: { bodyBytes: 33_554_432 },
  },
  'valid-unicode': {
    bad: withMessages(say('user', 'cut \ud83d')),
    good: withMessages(say('user', 'whole \ud83d\ude00')),
  },
  'required-field': { bad: edit(hello, (body) => delete body.max_tokens), good: hello },
  'unknown-field': [
    { bad: { ...hello, details: {} }, good: hello },
    { bad: edit(loop, (body) => (body.messages[1].content[1].text = '')), good: loop },
    { bad: edit(hello, (body) => (body.constructor = 1)), good: hello },
  ],
  'field-type': [
    { bad: { ...hello, stream: 'yes' }, good: { ...hello, stream: true } },
    { also: ['first-role'], bad: withMessages(say('tool', 'x')), good: withMessages(say('user', 'x')) },
  ],
  'block-type': {
    also: ['message-content'],
    bad: withMessages(say('user', [{ type: 'toolCall' }])),
    good: withMessages(say('user', [text('x')])),
  },
  'block-role': [
    { bad: withMessages(say('user', [thought(), text('x')])), good: withMessages(say('user', [text('x')])) },
    {
      bad: withMessages(say('user', 'x'), say('assistant', [image(), text('y')]), say('user', 'z')),
      good: withMessages(say('user', [image(), text('x')]), say('assistant', [text('y')]), say('user', 'z')),
    },
  ],
  'max-tokens': { bad: { ...hello, max_tokens: 0 }, good: { ...hello, max_tokens: 1 } },
  'messages-present': { bad: { ...hello, messages: [] }, good: hello },
  'first-role': {
    bad: withMessages(say('assistant', 'hi'), say('user', 'hello')),
    good: withMessages(say('user', 'hi'), say('assistant', 'hello')),
  },
  alternation: {
    bad: withMessages(say('user', 'a'), say('user', 'b')),
    good: withMessages(say('user', 'a'), say('user', 'b')),
    goodOptions: { profile: 'current' },
  },
  'system-message': {
    bad: withMessages(say('user', 'a'), say('system', 'b')),
    good: withMessages(say('user', 'a'), say('system', 'b')),
    goodOptions: { profile: 'current' },
  },
  prefill: {
    bad: { ...withMessages(say('user', 'a'), say('assistant', 'b')), model: 'claude-sonnet-4-6' },
    good: { ...withMessages(say('user', 'a'), say('assistant', 'b')), model: 'claude-sonnet-4-5-20250929' },
  },
  'final-whitespace': {
    bad: withMessages(say('user', 'a'), say('assistant', 'b ')),
    good: withMessages(say('user', 'a'), say('assistant', 'b')),
  },
  'message-content': {
    bad: withMessages(say('user', [])),
    good: withMessages(say('user', 'a'), say('assistant', [])),
  },
  'text-nonempty': [
    { bad: withMessages(say('user', [text('')])), good: withMessages(say('user', [text('a')])) },
    { bad: { ...hello, system: [text('')] }, good: { ...hello, system: [text('be kind')] } },
    {
      bad: edit(loop, (body) => (body.messages[2].content[0].content = [text('')])),
      good: edit(loop, (body) => (body.messages[2].content[0].content = [])),
    },
  ],
  'text-not-blank': { bad: withMessages(say('user', [text(' \n')])), good: withMessages(say('user', [text(' a')])) },
  'tool-use-id': {
    bad: withMessages(say('user', 'x'), say('assistant', [use('call|1')]), say('user', [result('call|1')])),
    good: withMessages(say('user', 'x'), say('assistant', [use('call-1')]), say('user', [result('call-1')])),
  },
  'tool-use-id-unique': {
    bad: withMessages(...loop.messages, say('assistant', [use('a')]), say('user', [result('a')])),
    good: withMessages(...loop.messages, say('assistant', [use('c')]), say('user', [result('c')])),
  },
  'tool-use-name': {
    bad: edit(loop, (body) => (body.messages[1].content[1].name = '')),
    good: edit(loop, (body) => (body.messages[1].content[1].name = 'forgotten_tool')),
  },
  'tool-use-input': {
    bad: edit(loop, (body) => (body.messages[1].content[1].input = '{}')),
    good: edit(loop, (body) => (body.messages[1].content[1].input = { zone: 'UTC' })),
  },
  'tool-use-answered': [
    { bad: edit(loop, (body) => body.messages[2].content.pop()), good: loop },
    {
      also: ['alternation', 'tool-result-expected'],
      bad: edit(loop, (body) => body.messages.splice(2, 0, say('user', 'wait'))),
      good: loop,
    },
    { bad: edit(loop, (body) => body.messages.pop()), good: loop },
  ],
  'tool-result-expected': {
    bad: withMessages(say('user', [result('a')])),
    good: loop,
  },
  'tool-result-single': { bad: edit(loop, (body) => body.messages[2].content.push(result('a'))), good: loop },
  'tool-result-first': {
    bad: edit(loop, (body) => body.messages[2].content.unshift(text('now'))),
    good: edit(loop, (body) => body.messages[2].content.push(text('now'))),
  },
  'tool-result-error-text': {
    bad: edit(loop, (body) => (body.messages[2].content[0] = { ...result('a', [image()]), is_error: true })),
    good: edit(loop, (body) => (body.messages[2].content[0] = { ...result('a', [image()]), is_error: false })),
  },
  'thinking-signature': [
    { bad: edit(thinkingLoop, (body) => (body.messages[1].content[0].signature = 'not base64!')), good: thinkingLoop },
    {
      bad: edit(thinkingLoop, (body) => (body.messages[1].content[0].signature = 'AAAA')),
      good: thinkingLoop,
      options: { issued },
    },
    {
      bad: edit(thinkingLoop, (body) => (body.messages[1].content[0] = { type: 'redacted_thinking', data: '' })),
      good: edit(thinkingLoop, (body) => (body.messages[1].content[0] = { type: 'redacted_thinking', data: 'EmwK' })),
    },
  ],
  'thinking-nonempty': {
    bad: edit(thinkingLoop, (body) => (body.messages[1].content[0].thinking = '')),
    good: edit(thinkingLoop, (body) => {
      body.messages[1].content[0].thinking = ''
      body.thinking.display = 'omitted'
    }),
  },
  'thinking-not-last': {
    bad: withMessages(say('user', 'a'), say('assistant', [text('b'), thought()]), say('user', 'c')),
    good: withMessages(say('user', 'a'), say('assistant', [thought(), text('b')]), say('user', 'c')),
  },
  'thinking-first': [
    {
      bad: edit(thinkingLoop, (body) => body.messages[1].content.shift()),
      good: edit(thinkingLoop, (body) => {
        body.messages[1].content.shift()
        delete body.thinking
      }),
    },
    {
      bad: edit(thinkingLoop, (body) => (body.messages[1].content[0] = text('let me see'))),
      good: edit(thinkingLoop, (body) => body.messages.push(say('assistant', [use('b')]), say('user', [result('b')]))),
    },
  ],
  'thinking-disabled-final': {
    bad: withMessages(say('user', 'a'), say('assistant', [thought(), text('b')])),
    good: { ...withMessages(say('user', 'a'), say('assistant', [thought(), text('b')])), max_tokens: 2048, thinking },
  },
  'thinking-budget': [
    { bad: { ...hello, max_tokens: 1024, thinking }, good: { ...hello, max_tokens: 1025, thinking } },
    {
      bad: { ...hello, max_tokens: 4096, thinking: { type: 'enabled', budget_tokens: 1023 } },
      good: { ...hello, max_tokens: 4096, thinking },
    },
  ],
  'thinking-adaptive-only': {
    bad: { ...hello, max_tokens: 4096, model: NEW_MODEL, thinking },
    good: { ...hello, max_tokens: 4096, model: NEW_MODEL, thinking: { type: 'adaptive' } },
  },
  'thinking-adaptive-unknown': {
    bad: { ...hello, thinking: { type: 'adaptive' } },
    good: { ...hello, model: 'claude-sonnet-4-6', thinking: { type: 'adaptive' } },
  },
  'thinking-always-on': {
    bad: { ...hello, model: 'claude-fable-5-2', thinking: { type: 'disabled' } },
    good: { ...hello, model: 'claude-sonnet-5', thinking: { type: 'disabled' } },
  },
  'thinking-forced-tool': {
    bad: { ...thinkingLoop, tool_choice: { type: 'any' } },
    good: { ...thinkingLoop, tool_choice: { type: 'auto' } },
  },
  'sampling-deprecated': [
    { bad: { ...hello, model: NEW_MODEL, temperature: 0 }, good: { ...hello, temperature: 0 } },
    {
      bad: { ...hello, max_tokens: 2048, thinking, temperature: 0 },
      good: { ...hello, max_tokens: 2048, thinking, temperature: 1 },
    },
  ],
  'image-media-type': [
    { bad: withMessages(say('user', [image(png(), 'image/bmp')])), good: withMessages(say('user', [image()])) },
    { bad: withMessages(say('user', [image(gif())])), good: withMessages(say('user', [image(gif(), 'image/gif')])) },
  ],
  'image-data': [
    { bad: withMessages(say('user', [image('bm90IGFuIGltYWdl')])), good: withMessages(say('user', [image()])) },
    { bad: withMessages(say('user', [image('%%%%')])), good: withMessages(say('user', [image()])) },
  ],
  'image-bytes': {
    bad: withMessages(say('user', [image(png() + 'A'.repeat(5 * 1024 * 1024))])),
    good: withMessages(say('user', [image(png() + 'A'.repeat(5 * 1024 * 1024 - 60))])),
  },
  'image-dimensions': [
    { bad: withMessages(say('user', [image(png(8001, 2))])), good: withMessages(say('user', [image(png(8000, 2))])) },
    {
      bad: withMessages(
        say(
          'user',
          Array.from({ length: 21 }, () => image(png(2001, 2))),
        ),
      ),
      good: withMessages(
        say(
          'user',
          Array.from({ length: 20 }, () => image(png(2001, 2))),
        ),
      ),
    },
  ],
  'image-count': {
    bad: withMessages(
      say(
        'user',
        Array.from({ length: 101 }, () => image()),
      ),
    ),
    good: withMessages(
      say(
        'user',
        Array.from({ length: 100 }, () => image()),
      ),
    ),
  },
  'tool-name': {
    bad: { ...hello, tools: [{ ...tool, name: 'files.read' }] },
    good: { ...hello, tools: [{ ...tool, name: 'files_read' }] },
  },
  'tool-names-unique': {
    bad: { ...hello, tools: [tool, tool] },
    good: { ...hello, tools: [tool, { ...tool, name: 'date' }] },
  },
  'tool-schema': [
    { bad: { ...hello, tools: [{ ...tool, input_schema: {} }] }, good: { ...hello, tools: [tool] } },
    {
      bad: { ...hello, tools: [{ ...tool, input_schema: { type: 'object', anyOf: [] } }] },
      good: { ...hello, tools: [{ ...tool, input_schema: { type: 'object' } }] },
    },
  ],
  'tool-choice': [
    {
      bad: { ...hello, tool_choice: { type: 'auto' } },
      good: { ...hello, tools: [tool], tool_choice: { type: 'auto' } },
    },
    {
      bad: { ...hello, tools: [tool], tool_choice: { type: 'tool', name: 'date' } },
      good: { ...hello, tools: [tool], tool_choice: { type: 'tool', name: 'time' } },
    },
  ],
  'cache-breakpoints': {
    bad: withMessages(
      say(
        'user',
        Array.from({ length: 5 }, () => ({ ...text('a'), cache_control: { type: 'ephemeral' } })),
      ),
    ),
    good: withMessages(
      say(
        'user',
        Array.from({ length: 4 }, () => ({ ...text('a'), cache_control: { type: 'ephemeral' } })),
      ),
    ),
  },
  'stop-sequences': { bad: { ...hello, stop_sequences: [' '] }, good: { ...hello, stop_sequences: ['END'] } },
})
