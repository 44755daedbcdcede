import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/core/message.ts'
import { withBoundedDepth, soundMessage } from '../../../src/core/sound-message.ts'

const words = (text: string) => [{ type: 'text', text }]

describe('a sound message', () => {
  it('shows words that stand where the kind of a block should be', () => {
    const content = [{ type: 'te|endoftext|> the words' }, { type: '', note: 'and these' }]
    const text = JSON.stringify(soundMessage({ role: 'user', content, timestamp: 1 }))
    expect(text).toContain('the words')
    expect(text).toContain('and these')
  })

  it('shows words that stand where the role should be', () => {
    const message = soundMessage({ role: 'use done, the words', timestamp: 1 })
    expect(message).toMatchObject({ role: 'custom', content: expect.stringContaining('the words') as string })
    expect(soundMessage({ role: 'later_role', data: 1, timestamp: 1 })).not.toHaveProperty('content', 'later_role')
  })

  it.each([
    { role: 'user', content: 'hi', timestamp: 1 },
    { role: 'user', content: words('hi'), timestamp: 1, provenance: { kind: 'external_user' }, more: { of: 'theirs' } },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', thinkingSignature: 's' },
        { type: 'toolCall', id: 'c', name: 'read', arguments: {} },
        { type: 'later_kind', data: 1 },
      ],
      api: 'a',
      provider: 'p',
      model: 'm',
      usage: NO_USAGE,
      stopReason: 'toolUse',
      timestamp: 1,
    },
    { role: 'toolResult', toolCallId: 'c', toolName: 'read', content: words('x'), isError: false, timestamp: 1 },
    { role: 'custom', customType: 'note', content: 'x', display: false, timestamp: 1 },
    { role: 'bashExecution', command: 'ls', output: '', cancelled: false, truncated: false, timestamp: 1 },
    { role: 'system', content: 'be brief', timestamp: 1 },
  ])('is given back as it is: $role', (message) => {
    expect(soundMessage(message)).toBe(message)
  })
})

describe('content of another shape', () => {
  it.each([
    ['null', null, []],
    ['nothing', undefined, []],
    ['a number', 42, words('42')],
    ['true', true, words('true')],
    ['an object with text', { text: 'hi' }, words('hi')],
    ['an object without', { say: 'hi' }, words('{"say":"hi"}')],
    ['an object with text of another kind', { type: 'input_text', text: 'hi' }, words('hi')],
    ['a list of strings', ['hi', ' ', ''], [...words('hi'), ...words(' ')]],
    ['a list of lists', [['hi']], words('hi')],
    ['null among blocks', [null, ...words('hi')], words('hi')],
    ['an untyped block', [{ text: 'hi' }], words('hi')],
    ['a block of a broken type', [{ type: 7, text: 'hi' }], words('hi')],
    ['a block that says another kind than it is', [{ type: 'image', text: 'hi' }], words('hi')],
    ['text that is an object', [{ type: 'text', text: { text: 'hi' } }], words('hi')],
    ['text under another name', [{ type: 'text', content: 'hi' }], [{ type: 'text', content: 'hi', text: 'hi' }]],
    ['text that is missing', [{ type: 'text' }], words('')],
    ['an image without data', [{ type: 'image' }], [{ type: 'image', data: '', mimeType: '' }]],
    ['an untyped image', [{ data: 'AA', mimeType: 'm' }], [{ type: 'image', data: 'AA', mimeType: 'm' }]],
  ])('keeps its words as text: %s', (_, content, blocks) => {
    for (const role of ['user', 'assistant', 'toolResult', 'custom', 'system']) {
      const message = soundMessage({ role, content })
      const shown = 'content' in message ? message.content : undefined
      expect(shown).toMatchObject(blocks)
      expect(shown).toHaveLength(blocks.length)
      expect(soundMessage(message)).toEqual(message)
    }
  })

  it('reads input of calls as other programs write it, and marks what cannot be read', () => {
    const inputs = [{ input: '{"a":1}' }, { input: { a: 1 } }, { arguments: '{"a":' }, { arguments: 3 }, {}]
    const blocks = inputs.map((input) => ({ type: 'tool_use', id: 7, name: 'read', ...input }))
    expect(soundMessage({ role: 'assistant', content: blocks })).toMatchObject({
      content: [
        { type: 'toolCall', id: '7', arguments: { a: 1 } },
        { type: 'toolCall', arguments: { a: 1 } },
        { arguments: {}, invalidArguments: '' },
        { arguments: {}, invalidArguments: '' },
        { arguments: {}, invalidArguments: '' },
      ],
    })
  })
})

describe('fields of another type', () => {
  it('are filled in an answer', () => {
    const message = soundMessage({ role: 'assistant', content: [], usage: { input: '5', cost: 1 }, stopReason: 'odd' })
    expect(message).toMatchObject({ usage: NO_USAGE, stopReason: 'stop', provider: '', model: '', timestamp: 0 })
    expect(soundMessage({ role: 'assistant', usage: null })).toMatchObject({ usage: NO_USAGE, content: [] })
  })

  it('are taken away where they may be absent', () => {
    const message = soundMessage({ role: 'user', content: 'x', timestamp: 1, provenance: { kind: 'stranger' } })
    expect(message).toEqual({ role: 'user', content: 'x', timestamp: 1 })
  })

  it('hold words when the content itself is missing', () => {
    const damaged = { role: 'toolResult', toolCallId: 'c', toolName: words('found'), details: { files: ['a.txt'] } }
    const text = '{"toolName":[{"type":"text","text":"found"}]}'
    expect(soundMessage(damaged)).toMatchObject({ toolName: '', content: words(text) })
  })

  it('find the call of a result under the names other programs give it', () => {
    expect(soundMessage({ role: 'tool', tool_call_id: 'c', content: 'x' })).toMatchObject({
      role: 'toolResult',
      toolCallId: 'c',
      content: words('x'),
      isError: false,
    })
  })
})

describe('a message of no known role', () => {
  it.each([
    ['a role of another program', { role: 'human', content: 'hi' }, 'hi', 'human'],
    ['no role', { content: 'hi' }, 'hi', 'unknown'],
    ['text instead of content', { role: 3, text: 'hi' }, 'hi', 'unknown'],
    ['only a string', 'hi', 'hi', 'unknown'],
    ['neither role nor content', { say: 'hi' }, '{"say":"hi"}', 'unknown'],
    ['another role and no content', { role: 'constructor', con4ent: 'hi' }, '{"con4ent":"hi"}', 'constructor'],
  ])('becomes a custom one with its words: %s', (_, value, content, customType) => {
    expect(soundMessage(value)).toMatchObject({ role: 'custom', customType, content, display: true })
  })
})

describe('a value that is nested without end', () => {
  it('can be written as JSON again and keeps its words', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}"hi"${']'.repeat(100_000)}`)
    const bounded = withBoundedDepth({ message: { role: 'user', content: deep } })
    expect(JSON.stringify(bounded)).toContain('hi')
    expect(JSON.stringify(soundMessage(bounded.message))).toContain('hi')
  })
  it('is an end for an object that holds itself, whatever holds it', () => {
    const itself: Record<string, unknown> = { words: 'hi' }
    Object.assign(itself, { a: itself, b: itself, c: [itself] })
    expect(JSON.stringify(withBoundedDepth({ details: itself }))).toContain('hi')
  })
})
