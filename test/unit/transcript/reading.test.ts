import { describe, expect, it } from 'vitest'
import { textOf } from '../../../src/core/message.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { DIRECTORY, never, openHouse, sessionId } from '../../support/transcripts.ts'

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
  const { store } = await openHouse({ files, withJournal: false })
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
