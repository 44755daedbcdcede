import { closeSync, openSync, writeSync } from 'node:fs'
import { seededRandom } from '../../src/testing/seeded-ids.ts'

const COMPACTION_BYTES = 600 * 1024
const KEPT_BYTES = 80 * 1024
const WORDS = ['the', 'session', 'файл', '文件', 'répond', 'tool', 'output', 'error', 'строка', '会话', 'next', 'line']

/**
 * A session as real ones look: lines of about 1.1 KB with text of several scripts, a compaction each 600 KB that keeps
 * 80 KB. `isRestated`: with the level repeated after each compaction, as we write it; otherwise as pi does.
 */
export function generateSession(path: string, sizeMb: number, options: { readonly isRestated: boolean }): string {
  const random = seededRandom(sizeMb)
  const file = openSync(path, 'w')
  const timestamp = '2026-01-01T00:00:00.000Z'
  let buffer: string[] = []
  let written = 0
  let parentId: string | null = null
  let number = 0
  const write = (line: object): number => {
    const text = `${JSON.stringify(line)}\n`
    buffer.push(text)
    const bytes = Buffer.byteLength(text)
    written += bytes
    if (buffer.length > 2_000) {
      writeSync(file, buffer.join(''))
      buffer = []
    }
    return bytes
  }
  const add = (fields: { readonly type: string }): string => {
    const { type, ...rest } = fields
    const id = ((number++ * 2_654_435_761) >>> 0).toString(16).padStart(8, '0')
    write({ type, id, parentId, timestamp, ...rest })
    parentId = id
    return id
  }
  write({ type: 'session', version: 3, id: 'bench', timestamp, cwd: '/' })
  add({ type: 'thinking_level_change', thinkingLevel: 'high' } as { type: string })
  let sinceCompaction = 0
  let recent: { id: string; bytes: number }[] = []
  for (const end = sizeMb * 1024 * 1024; ;) {
    const start = written
    if (start >= end) break
    const id = add(messageFields(number, random))
    const bytes = written - start
    sinceCompaction += bytes
    recent.push({ id, bytes })
    if (sinceCompaction < COMPACTION_BYTES) continue
    let kept = 0
    let first = recent.length - 1
    while (first > 0 && kept < KEPT_BYTES) kept += recent[first--]?.bytes ?? 0
    const firstKeptEntryId = recent[first]?.id
    add({ type: 'compaction', summary: textOfLength(2_000, random), firstKeptEntryId, tokensBefore: 1 } as {
      type: string
    })
    if (options.isRestated) add({ type: 'thinking_level_change', thinkingLevel: 'high' } as { type: string })
    recent = []
    sinceCompaction = 0
  }
  writeSync(file, buffer.join(''))
  closeSync(file)
  return path
}

function messageFields(number: number, random: () => number): { readonly type: string } {
  const text = textOfLength(200 + random() * 1_300, random)
  const message =
    number % 2 === 0
      ? { role: 'user', content: text, timestamp: number }
      : {
          role: 'assistant',
          content: [{ type: 'text', text }],
          api: 'a',
          provider: 'p',
          model: 'm',
          usage: {},
          stopReason: 'stop',
          timestamp: number,
        }
  return { type: 'message', message } as { type: string }
}

function textOfLength(length: number, random: () => number): string {
  const words: string[] = []
  for (let size = 0; size < length;) {
    const word = WORDS[Math.floor(random() * WORDS.length)] ?? ''
    words.push(word)
    size += word.length + 1
  }
  return words.join(' ')
}
