import { describe, expect, it } from 'vitest'
import type { Entry, EntryDraft } from '../../../src/core/entry.ts'
import type { EntryId } from '../../../src/core/ids.ts'
import { buildContext, extendActivePath, toActivePath } from '../../../src/transcript/context.ts'
import { assistantDraft, userDraft } from '../../support/transcripts.ts'

/** A path of entries `e0`, `e1` …, each below the one before. */
function path(...drafts: readonly EntryDraft[]): Entry[] {
  return drafts.map((draft, i) => ({
    ...draft,
    id: id(i),
    parentId: i === 0 ? null : id(i - 1),
    timestamp: '2026-01-01T00:00:00.000Z',
  }))
}

const id = (number: number): EntryId => `e${number}` as EntryId
const system = (text: string): EntryDraft => ({
  type: 'message',
  message: { role: 'system', content: text, timestamp: 1 },
})
const compaction = (firstKept: number, fields: object = {}): EntryDraft => ({
  type: 'compaction',
  summary: 'so far',
  firstKeptEntryId: id(firstKept),
  tokensBefore: 5,
  ...fields,
})

const contents = (entries: readonly Entry[]): unknown[] =>
  buildContext(toActivePath(entries)).messages.map((message) =>
    'content' in message ? message.content : 'summary' in message ? `summary: ${message.summary}` : undefined,
  )

describe('the context of a path', () => {
  it('takes level and model from the whole path, also from before a compaction', () => {
    const level: EntryDraft = { type: 'thinking_level_change', thinkingLevel: 'high' }
    const { thinkingLevel, model } = buildContext(
      toActivePath(path(level, assistantDraft('a'), userDraft('b'), compaction(2))),
    )
    expect({ thinkingLevel, model }).toEqual({ thinkingLevel: 'high', model: { provider: 'test', modelId: 'model' } })
  })

  it('puts the summary first, then what was kept, then what came after; older compactions are silent', () => {
    const entries = path(userDraft('a'), compaction(0), userDraft('b'), userDraft('c'), compaction(2), userDraft('d'))
    expect(contents(entries)).toEqual(['summary: so far', 'b', 'c', 'd'])
  })

  it('keeps nothing when the first kept entry is lost, or is the compaction itself', () => {
    expect(contents(path(userDraft('a'), compaction(9), userDraft('b')))).toEqual(['summary: so far', 'b'])
    expect(contents(path(userDraft('a'), compaction(1), userDraft('b')))).toEqual(['summary: so far', 'b'])
  })

  it('puts the system message of a compaction in front, instead of those in the kept part', () => {
    const systemMessage = { role: 'system', content: 'new rules', timestamp: 1 }
    const entries = path(system('old rules'), userDraft('a'), compaction(0, { systemMessage }), system('later rules'))
    expect(contents(entries)).toEqual(['new rules', 'summary: so far', 'a', 'later rules'])
    expect(contents(path(system('old rules'), userDraft('a'), compaction(0)))).toEqual([
      'summary: so far',
      'old rules',
      'a',
    ])
  })

  it('applies the last edit of each entry: hidden or replaced', () => {
    const hide: EntryDraft = { type: 'context_edit', targetId: id(0), replacement: null }
    const replace: EntryDraft = { type: 'context_edit', targetId: id(1), replacement: { content: 'shorter' } }
    const entries = path(userDraft('a'), userDraft('long'), { ...hide, targetId: id(1) }, hide, replace)
    expect(contents(entries)).toEqual(['shorter'])
  })

  it('is the same whether the path grew entry by entry or was read at once', () => {
    const entries = path(
      userDraft('a'),
      assistantDraft('b'),
      userDraft('c'),
      compaction(1),
      userDraft('d'),
      compaction(4),
    )
    let grown: ReturnType<typeof toActivePath> | undefined = toActivePath([])
    for (const entry of entries) grown = grown && extendActivePath(grown, [entry])
    expect(grown).toEqual(toActivePath(entries))
  })

  it('asks for the whole path when a compaction keeps from before what is held', () => {
    const entries = path(userDraft('a'), userDraft('b'), userDraft('c'), compaction(2), userDraft('d'))
    const late = path(...entries, compaction(0)).slice(-1)
    expect(extendActivePath(toActivePath(entries), late)).toBeUndefined()
  })
})
