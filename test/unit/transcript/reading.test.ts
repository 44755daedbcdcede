import { describe, expect, it } from 'vitest'
import { textOf } from '../../../src/core/message.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { DIRECTORY, never, openTranscriptHome, sessionId } from '../../support/transcripts.ts'

const PATH = `${DIRECTORY}/sess_a.jsonl`
const TIMESTAMP = '2026-01-01T00:00:00.000Z'
const HEADER = JSON.stringify({ type: 'session', version: 3, id: 'sess_a', timestamp: TIMESTAMP, cwd: '/' })

/** A conversation of these messages, one the child of the other. */
function fileOf(messages: readonly object[], change: (line: string, at: number) => string = (line) => line): string {
  const lines = messages.map((message, at) => {
    const parentId = at === 0 ? null : `0000000${at - 1}`
    return change(JSON.stringify({ type: 'message', id: `0000000${at}`, parentId, timestamp: TIMESTAMP, message }), at)
  })
  return [HEADER, ...lines, ''].join('\n')
}

async function open(content: string): Promise<Transcript> {
  const files = new MemoryFiles()
  files.plant(PATH, content)
  const { store } = await openTranscriptHome({ files, withJournal: false })
  return store.open(sessionId('sess_a'), never)
}

const user = (content: unknown): object => ({ role: 'user', content, timestamp: 1 })

describe('an entry whose body cannot be read', () => {
  it.each([1, 2, 3])('costs itself only: what stands before and after entry %i stays in context', async (damaged) => {
    const texts = ['one', 'two', 'three', 'four', 'five']
    const content = fileOf(texts.map(user), (line, at) =>
      // The head still reads, and the line still closes.
      at === damaged ? line.replace('"timestamp":1}', '"timestamp":1]') : line,
    )
    const { messages } = await (await open(content)).context()
    expect(messages.map((message) => textOf((message as { content: string }).content))).toEqual(
      texts.filter((_, at) => at !== damaged),
    )
  })
})

describe('a large file whose level was set long before its context', () => {
  const line = (at: number, fields: object): string => {
    const id = at.toString(16).padStart(8, '0')
    const parentId = at === 0 ? null : (at - 1).toString(16).padStart(8, '0')
    const { type, ...rest } = fields as { type: string }
    return JSON.stringify({ type, id, parentId, timestamp: TIMESTAMP, ...rest })
  }
  const COUNT = 3_000
  const lines = Array.from({ length: COUNT }, (_, at) => {
    if (at === 0) return line(at, { type: 'thinking_level_change', thinkingLevel: 'high' })
    if (at === 1) return line(at, { type: 'model_change', provider: 'p', modelId: 'm' })
    const firstKeptEntryId = (at - 2).toString(16).padStart(8, '0')
    if (at === COUNT - 3) return line(at, { type: 'compaction', summary: 's', firstKeptEntryId, tokensBefore: 1 })
    return line(at, { type: 'message', message: user(`${at} ${'слово '.repeat(60)}`) })
  })

  it('opens with its level, its model and its context', async () => {
    const transcript = await open([HEADER, ...lines, ''].join('\n'))
    const { messages, thinkingLevel, model } = await transcript.context()
    expect({ thinkingLevel, model }).toEqual({ thinkingLevel: 'high', model: { provider: 'p', modelId: 'm' } })
    expect(messages.map(({ role }) => role)).toEqual(['compactionSummary', 'user', 'user', 'user', 'user'])
    expect(transcript.repairs).toEqual([])
  })

  it.each([
    ['a line that is cut', (text: string) => text.slice(0, 200)],
    ['two lines glued together', (text: string) => text.slice(0, 200) + text],
    ['a line that is no JSON', () => 'nonsense'],
    ['a lost line', () => ''],
  ])('says so when there is %s above the context', async (_, damage) => {
    const damaged = lines.map((text, at) => (at === 1_000 ? damage(text) : text))
    const transcript = await open([HEADER, ...damaged, ''].join('\n'))
    const { messages, thinkingLevel } = await transcript.context()
    expect(transcript.repairs.length).toBeGreaterThan(0)
    expect(thinkingLevel).toBe('high')
    expect(messages).toHaveLength(5)
  })
})

describe('lines of many pieces', () => {
  const picture = { type: 'image', data: Buffer.alloc(400_000, 'picture').toString('base64'), mimeType: 'image/png' }
  const details = Array.from({ length: 20_000 }, (_, n) => ({ n, text: `строка "${n}"\n`, nested: [{ n }, null] }))
  const messages = [
    user('before'),
    user([{ type: 'text', text: '中文 "кавычки" 🙂\n'.repeat(40_000) }, picture]),
    { ...user('with details'), details },
    user('after'),
  ]

  it.each([
    ['a small file, which is scanned', [user('before'), user([picture]), user('after')]],
    ['a large file, which is read from its end', messages],
  ])('are read as they were written, from %s', async (_, written) => {
    const context = await (await open(fileOf(written))).context()
    expect(context.messages).toEqual(written)
  })
})
