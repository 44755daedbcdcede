import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import type { ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock } from '../../../src/core/message.ts'
import {
  assistant,
  call,
  entriesOf,
  id,
  modelFields,
  PNG_1PX,
  prepare,
  result,
  sketch,
  TARGETS,
  text,
  user,
  type TargetName,
} from '../../support/history.ts'

const thinking = (signature: string | undefined, thought = 'hm'): ThinkingBlock => ({
  type: 'thinking',
  thinking: thought,
  ...(signature === undefined ? {} : { thinkingSignature: signature }),
})
const image = { type: 'image', data: PNG_1PX, mimeType: 'image/png' } as const
const MB = 1024 * 1024
const GIF_1PX = 'R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=='
/** A header and nothing behind it: nobody here decodes a pixel. */
function png(width: number, height: number, bytes = 64): ImageBlock {
  const data = Buffer.alloc(bytes)
  data.write('89504e470d0a1a0a0000000d49484452', 'hex')
  data.writeUInt32BE(width, 16)
  data.writeUInt32BE(height, 20)
  return { type: 'image', data: data.toString('base64'), mimeType: 'image/png' }
}
const reasoning = (own: string) => thinking(JSON.stringify({ type: 'reasoning', id: own, encrypted_content: 'x' }))

describe('context that a hook put in front of a message', () => {
  const prependContext = 'We open at nine.'
  it.each([
    ['text', 'When?', `${prependContext}\n\nWhen?`],
    ['blocks', [text('When?'), image], [text(prependContext), text('When?'), image]],
  ] as const)('is sent as it was when it stood in the %s of the message itself', (_, content, joined) => {
    const apart = prepare(entriesOf(user(content, { prependContext }))).messages
    expect(apart).toEqual(prepare(entriesOf(user(joined))).messages)
    expect(JSON.stringify(apart)).not.toContain('prependContext')
  })

  it('stays with its message whatever the history limit and the window leave out', () => {
    const entries = entriesOf(user('old '.repeat(3_000)), assistant('yes'), user('new', { prependContext }))
    expect(sketch(prepare(entries, { historyLimit: 1 }))).toBe(`user: ${prependContext}\n\nnew`)
    expect(sketch(prepare(entries, { budget: { contextWindow: 2_000 } }))).toContain(`${prependContext}\n\nnew`)
  })

  it('is passed over when it is no text', () => {
    expect(sketch(prepare(entriesOf(user('hi', { prependContext: { text: 'x' } }))))).toBe('user: hi')
  })
})

describe('annotateInterSessionUserMessages', () => {
  const provenance = { kind: 'inter_session', sourceSessionKey: 'agent:a', sourceChannel: 'webhook', sourceTool: ' ' }
  it('says in front of the text which session wrote it', () => {
    expect(sketch(prepare(entriesOf(user('hi', { provenance }))))).toBe(
      'user: [Inter-session message] sourceSession=agent:a sourceChannel=webhook\nhi',
    )
  })
  it('puts the prefix alone in front of an image', () => {
    expect(sketch(prepare(entriesOf(user([image], { provenance: { kind: 'inter_session' } }))))).toBe(
      'user: [Inter-session message] + [image]',
    )
  })
  it('leaves messages of people alone', () => {
    expect(sketch(prepare(entriesOf(user('hi', { provenance: { kind: 'external_user' } }))))).toBe('user: hi')
  })
})

describe('sanitizeMode, which is `full` for every model', () => {
  it.each(Object.keys(TARGETS))('cleans the content for %s: no blank text, no foreign signature', (target) => {
    const signed = { ...text('kept'), textSignature: 'c2lnbmVk' }
    const foreign = { api: 'other-api', provider: 'other', model: 'other' }
    const prepared = prepare(
      entriesOf(
        user('a'),
        assistant([text(' \n'), signed, { ...call('c1'), thoughtSignature: 'c2lnbmVk' }], foreign),
        result('c1', [text(''), text('found')]),
        assistant([text('')], foreign),
        user([text('  '), text('b \ud800')]),
      ),
      { target: target as TargetName },
    )
    const sent = JSON.stringify(prepared.messages)
    expect(sent).not.toMatch(/"text":"\s*"|"content":\[\]|Signature/)
    expect(sent).toContain('"text":"kept"')
    expect(sent).toContain('"text":"found"')
    expect(sent).toContain('"text":"b \ufffd"')
  })

  it.each(Object.keys(TARGETS))('takes a foreign signature away where there is no other for %s', (target) => {
    const foreign = { api: 'other-api', provider: 'other', model: 'other' }
    const signed = { ...call('c1'), thoughtSignature: '{"signed":"elsewhere"}' }
    const ofCall = entriesOf(user('a'), assistant([signed], foreign), result('c1', [text('found')]))
    const ofText = entriesOf(user('a'), assistant([{ ...text('b'), textSignature: 'c2lnbmVk' }], foreign), user('c'))
    for (const entries of [ofCall, ofText])
      expect(JSON.stringify(prepare(entries, { target: target as TargetName }).messages)).not.toContain('Signature')
  })
})

describe('sanitizeSessionMessagesImages', () => {
  it('corrects the declared type, removes white space, and replaces what is no image by a marker', () => {
    const broken = { ...image, data: 'AAAA' }
    const odd = { ...image, data: `${PNG_1PX.slice(0, 9)}\n${PNG_1PX.slice(9)}`, mimeType: 'image/jpeg' }
    const prepared = prepare(entriesOf(user([odd, broken])))
    expect(prepared.messages[0]?.content).toEqual([image, text('[image left out: not a PNG, JPEG, GIF or WebP image]')])
  })
  it('keeps the images of the turn in progress and of the last three before it', () => {
    const turns = Array.from({ length: 6 }, (_, at) => [user([text(`q${at}`), image]), assistant(`a${at}`)]).flat()
    const prepared = prepare(entriesOf(...turns, user([text('now'), image])))
    const seen = prepared.messages
      .filter((message) => message.role === 'user')
      .map((message) => JSON.stringify(message.content).includes('"image"'))
    expect(seen).toEqual([false, false, false, true, true, true, true])
    expect(sketch(prepared)).toContain('q0 + [image data removed - already processed by model]')
  })
  it('sends no images to a model that does not accept them', () => {
    expect(sketch(prepare(entriesOf(user([image])), { target: 'blind' }))).toBe(
      'user: [image left out: this model does not accept images]',
    )
  })
  it('keeps the newest images within the count a provider accepts', () => {
    const many = Array.from({ length: 12 }, () => image)
    const prepared = prepare(entriesOf(user([text('x'), ...many])), { target: 'mistral' })
    const blocks = prepared.messages[0]?.content as readonly { type: string }[]
    expect(blocks.filter((block) => block.type === 'image')).toHaveLength(8)
    expect(blocks.at(-1)?.type).toBe('image')
  })
  it.each([
    ['anthropic', png(8_001, 1), 'its sides are too long'],
    ['anthropic', png(1, 0), 'it is empty'],
    ['anthropic', png(1, 1, 5 * MB), 'it is too large'],
    ['mistral', png(1, 1, 5 * MB), undefined],
    ['mistral', png(1, 1, 10 * MB), 'it is too large'],
    ['google', { ...image, data: GIF_1PX }, 'this model does not accept its format'],
    ['anthropic', { ...image, data: GIF_1PX }, undefined],
  ] as const)('holds the limits of %s for one image', (target, one, reason) => {
    const shown = sketch(prepare(entriesOf(user([one])), { target }))
    expect(shown).toBe(reason === undefined ? 'user: [image]' : `user: [image left out: ${reason}]`)
  })
  it('keeps the newest images within the bytes of a request, of which the text needs its part', () => {
    const four = Array.from({ length: 6 }, () => png(1, 1, 3 * MB))
    const prepared = prepare(entriesOf(user(four)))
    const leftOut = '[image left out: the images of one request are too large]'
    // 60 % of 30 MB are 18; each takes 4 as base64.
    expect(sketch(prepared)).toBe(`user: ${leftOut} + ${leftOut} + [image] + [image] + [image] + [image]`)
  })
  it('takes images out of error results, which hold text only', () => {
    const prepared = prepare(
      entriesOf(user('a'), assistant([call('c')]), result('c', [text('no'), image], { isError: true })),
    )
    expect(sketch(prepared)).toContain('result c: no + [image left out: it belongs to an error]')
  })
})

describe('reasoning', () => {
  const answer = (block: ThinkingBlock, target: TargetName, more = {}) =>
    sketch(
      prepare(entriesOf(user('a'), assistant([block, text('b')], { ...modelFields(target), ...more }), user('c')), {
        target,
      }),
    )

  it('goes back byte for byte to the Claude that signed it', () => {
    expect(answer(thinking('c2ln'), 'anthropic')).toContain('[thinking] + b')
  })
  it.each(['', 'not base64!'])('goes without a usable signature (%j)', (signature) => {
    expect(answer(thinking(signature), 'anthropic')).toBe('user: a | assistant: b | user: c')
  })
  it('goes when somebody emptied its text but kept the signature', () => {
    expect(answer(thinking('c2ln', ''), 'anthropic')).not.toContain('[thinking]')
  })
  it('of another model is never sent', () => {
    const entries = entriesOf(user('a'), assistant([thinking('c2ln'), text('b')], modelFields('anthropic')), user('c'))
    for (const target of ['google', 'responses', 'completions', 'mistral'] as const) {
      expect(sketch(prepare(entries, { target }))).toBe('user: a | assistant: b | user: c')
    }
  })
  it('of an answer that was cut off is never sent', () => {
    expect(answer(thinking('c2ln'), 'anthropic', { stopReason: 'aborted' })).not.toContain('[thinking]')
  })
  it('takes the answer with it when nothing else is in it, and the question waits for the next one', () => {
    const entries = entriesOf(user('a'), assistant([thinking('c2ln')], { stopReason: 'length' }), user('b'))
    expect(sketch(prepare(entries))).toContain('not answered yet; the message to answer follows]\na + b')
  })
  it('of Gemini is sent only with a signature in base64', () => {
    expect(answer(thinking('QUJD'), 'google')).toContain('[thinking]')
    expect(answer(thinking('no!'), 'google')).not.toContain('[thinking]')
  })
  it.each(['signature', 'thought_signature', 'thoughtSignature'])(
    'finds the signature of Claude behind Google under the name %s',
    (name) => {
      const block = { type: 'thinking', thinking: 'hm', [name]: 'QUJD' } as unknown as ThinkingBlock
      const own = assistant([block, text('b')], modelFields('claudeViaGoogle'))
      const prepared = prepare(entriesOf(user('a'), own, user('c')), { target: 'claudeViaGoogle' })
      expect(prepared.messages[1]?.content[0]).toMatchObject({ type: 'thinking', thinkingSignature: 'QUJD' })
      const invalid = assistant([{ ...block, [name]: 'odd' }, text('b')], modelFields('claudeViaGoogle'))
      expect(sketch(prepare(entriesOf(user('a'), invalid, user('c')), { target: 'claudeViaGoogle' }))).not.toContain(
        '[thinking]',
      )
    },
  )
  it('of OpenAI goes when nothing follows it, when another follows it, and when it stands there twice', () => {
    const content = [reasoning('rs_1'), reasoning('rs_2'), text('b'), reasoning('rs_3')]
    const own = assistant(content, modelFields('responses'))
    const prepared = prepare(entriesOf(user('a'), own, user('c'), own, user('d')), { target: 'responses' })
    expect(sketch(prepared)).toBe('user: a | assistant: [thinking] + b | user: c | assistant: b | user: d')
    expect(JSON.stringify(prepared.messages)).toContain('rs_2')
  })
  it('of OpenAI goes when the model changes', () => {
    const own = assistant([reasoning('rs_1'), text('b')], { ...modelFields('responses'), model: 'gpt-4.1' })
    expect(sketch(prepare(entriesOf(user('a'), own, user('c')), { target: 'responses' }))).toBe(
      'user: a | assistant: b | user: c',
    )
  })
  it('of compatible servers is sent back within its own tool loop only', () => {
    const loop = assistant([thinking('reasoning_content'), call('c1')], modelFields('compatible'))
    const during = prepare(entriesOf(user('a'), loop, result('c1')), { target: 'compatible' })
    expect(sketch(during)).toContain('[thinking]')
    const after = prepare(
      entriesOf(user('a'), loop, result('c1'), assistant('done', modelFields('compatible')), user('b')),
      { target: 'compatible' },
    )
    expect(sketch(after)).not.toContain('[thinking]')
  })
})

describe('reasoning of compatible servers', () => {
  const answer = assistant([thinking('reasoning_content'), text('hm')], modelFields('compatible'))
  it.each([
    ['a result without a call, which becomes a message of its own', result('gone', 'late')],
    ['a made-up result that leaves', result('gone', '[clew] missing tool result', { isError: true })],
  ])('is over with its turn, also when the transcript ends in %s', (_, last) => {
    const once = prepare(entriesOf(user('a'), answer, last), { target: 'compatible' })
    expect(JSON.stringify(once.messages)).not.toContain('reasoning_content')
    expect(prepare(entriesOf(...once.messages), { target: 'compatible' }).messages).toEqual(once.messages)
  })
})

describe('sanitizeToolCallInputs', () => {
  it('takes a call out whose input is nested too deeply to be written as JSON, and keeps its result', () => {
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)
    const bad = { ...call('c1'), arguments: deep } as ToolCallBlock
    const odd = { ...text('hm'), more: deep } as TextBlock
    const [, ...healthy] = entriesOf(user('x'), result('c1', 'found'), user('b'))
    const entry = { ...entriesOf(user('a'))[0], message: assistant([odd, bad], { stopReason: 'toolUse' }) } as Entry
    expect(sketch(prepare([...entriesOf(user('a')), { ...entry, id: id('e9') }, ...healthy]))).toBe(
      'user: a | assistant: hm | user: [Result of the tool read, whose call is not in view] + found + b',
    )
  })
  it.each([
    ['id', { ...call('c1'), id: ' ' }, 'tool call without an id'],
    ['name', { ...call('c1'), name: '' }, 'tool call without a name'],
    ['input', { type: 'toolCall', id: 'c1', name: 'read' }, 'tool call without input'],
    ['readable input', { type: 'toolUse', id: 'c1', name: 'read', input: '{"a":' }, 'tool call without input'],
    ['end', { ...call('c1'), partialJson: '{"a' }, 'tool call that was never finished'],
  ])('drops a call without %s, and its result stays as context', (_, block, reason) => {
    const prepared = prepare(
      entriesOf(user('a'), assistant([text('b'), block as never]), result('c1', 'found'), user('c')),
    )
    expect(sketch(prepared)).toContain(
      'assistant: b | user: [Result of the tool read, whose call is not in view] + found + c',
    )
    expect(prepared.report.changes.map((change) => change.reason)).toContain(reason)
  })
  it.each(['toolUse', 'tool_use', 'functionCall'])('reads a call that another program stored as %s', (type) => {
    const block = { type, id: 'c1', name: 'read', input: '{"path":"x"}' } as never
    const prepared = prepare(entriesOf(user('a'), assistant([block]), result('', 'ok', { toolUseId: 'c1' })))
    expect(prepared.messages[1]?.content[0]).toMatchObject({ type: 'toolCall', arguments: { path: 'x' } })
    expect(sketch(prepared)).toContain('result c1: ok')
  })
  it('mends a tool name instead of dropping the call', () => {
    const prepared = prepare(
      entriesOf(user('a'), assistant([call('c1', 'mcp.tool:x'), call('c2', '9lives')]), result('c1'), result('c2')),
    )
    expect(prepared.messages[1]?.content).toMatchObject([{ name: 'mcp_tool_x' }, { name: '_9lives' }])
  })
})

describe('stripToolResultDetails', () => {
  it('never sends details to a model', () => {
    const prepared = prepare(
      entriesOf(user('a'), assistant([call('c')]), result('c', 'ok', { details: { secret: 1 } })),
    )
    expect(JSON.stringify(prepared.messages)).not.toContain('secret')
  })
})

describe('turn order', () => {
  it('gives Google a user message first: "(session bootstrap)"', () => {
    expect(sketch(prepare(entriesOf(assistant('hello'), user('hi')), { target: 'google' }))).toBe(
      'user: (session bootstrap) | assistant: hello | user: hi',
    )
  })
  it('leaves an answer in front where the provider takes it', () => {
    expect(sketch(prepare(entriesOf(assistant('hello'), user('hi')), { target: 'responses' }))).toBe(
      'assistant: hello | user: hi',
    )
  })
  it('ends every request with a user message or a result', () => {
    expect(sketch(prepare(entriesOf(user('a'), assistant('b'))))).toBe('user: a | assistant: b | user: (continue)')
  })
  it('puts an answer between a result and the next user message for Mistral', () => {
    const prepared = prepare(entriesOf(user('a'), assistant([call('c')]), result('c'), user('b')), {
      target: 'mistral',
    })
    expect(sketch(prepared)).toBe(
      'user: a | assistant: [call c] | result c: ok | assistant: (tool results received) | user: b',
    )
  })
})

describe('validateTurns', () => {
  it.each(['anthropic', 'google', 'compatible'] as const)(
    'merges answers in a row for %s and loses nothing, strings neither',
    (target) => {
      const entries = entriesOf(user('a'), { ...assistant(''), content: 'AAA' as never }, assistant('b'), user('c'))
      expect(sketch(prepare(entries, { target }))).toBe('user: a | assistant: AAA + b | user: c')
    },
  )
  it('leaves answers in a row to OpenAI as they are', () => {
    expect(
      sketch(prepare(entriesOf(user('a'), assistant('x'), assistant('y'), user('c')), { target: 'completions' })),
    ).toBe('user: a | assistant: x | assistant: y | user: c')
  })
  it('puts a short user message in front of signed reasoning instead of merging it away from the start', () => {
    const entries = entriesOf(user('a'), assistant('x'), assistant([thinking('c2ln'), text('y')]), user('c'))
    expect(sketch(prepare(entries))).toBe(
      'user: a | assistant: x | user: (continue) | assistant: [thinking] + y | user: c',
    )
  })
})

describe('queued messages', () => {
  const MARK = '[Queued message: sent earlier and not answered yet; the message to answer follows]'
  it('merges an unanswered message in front of the next, marked, images included', () => {
    expect(sketch(prepare(entriesOf(user([text('first'), image]), user('second'))))).toBe(
      `user: ${MARK}\nfirst + [image] + second`,
    )
  })
  it('looks behind bookkeeping entries', () => {
    const entries = entriesOf(user('first'), { type: 'model_change', provider: 'x', modelId: 'y' }, user('second'))
    expect(sketch(prepare(entries))).toBe(`user: ${MARK}\nfirst + second`)
  })
  it('does not repeat what the next message says again', () => {
    expect(sketch(prepare(entriesOf(user('same'), user('same'))))).toBe('user: same')
    expect(sketch(prepare(entriesOf(user('a'), user('banana'))))).toBe(`user: ${MARK}\na + banana`)
  })
  it('joins a summary to the message behind it without a mark', () => {
    const compaction = { type: 'compaction', summary: 'so far', firstKeptEntryId: id('e2'), tokensBefore: 1 } as const
    expect(sketch(prepare(entriesOf(compaction, user('go on')))).endsWith('</summary> + go on')).toBe(true)
  })
})

describe('text', () => {
  it('never leaves with half a surrogate pair, in texts, arguments, names or ids', () => {
    const odd = 'x\ud83d'
    const prepared = prepare(
      entriesOf(user(odd), assistant([text(odd), call(odd, 'read', { [odd]: [odd] })]), result(odd, odd)),
    )
    expect(JSON.stringify(prepared.messages)).not.toMatch(/\\ud[89a-f]/i)
    expect(prepared.messages.at(-1)).toMatchObject({ role: 'toolResult', toolCallId: 'x\uFFFD' })
  })
  it('has no empty block: blank users say (continue), empty results say (no output)', () => {
    const prepared = prepare(entriesOf(user(' \n'), assistant([text(' '), call('c')]), result('c', '')))
    expect(sketch(prepared)).toBe('user: (continue) | assistant: [call c] | result c: (no output)')
  })
  it('of roles a model does not know becomes user text, in the words of pi-coding-agent', () => {
    const bash = {
      role: 'bashExecution',
      command: 'ls',
      output: 'a',
      exitCode: 2,
      cancelled: false,
      truncated: false,
      timestamp: 1,
    } as const
    const hidden = { ...bash, excludeFromContext: true } as const
    const custom = { type: 'custom_message', customType: 'n', content: 'note', display: false } as const
    const branch = { type: 'branch_summary', fromId: 'x', summary: 'S' } as const
    const prepared = prepare(entriesOf(bash, hidden, custom, branch, user('go')))
    expect(sketch(prepared)).toBe(
      'user: Ran `ls`\n```\na\n```\n\nCommand exited with code 2 + note + The following is a summary of a branch that this conversation came back from:\n\n<summary>\nS</summary> + go',
    )
  })
})
