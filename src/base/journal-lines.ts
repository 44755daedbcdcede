import { crc32 } from 'node:zlib'
import type { Files } from './files.ts'
import type { JournalRecord } from './journal.ts'

/**
 * A line of the journal: eight hexadecimal digits of CRC-32 over the rest, a space, the batch as JSON, a newline.
 * JSON text holds no raw newline, so damage never spreads past the line it touches. Names of topics need no escaping.
 */
export function encodeJournalLine(records: readonly JournalRecord[]): string {
  const encoded = records.map(({ topic, data, json = JSON.stringify(data) }) => `["${topic}",${json}]`)
  const body = `[${encoded.join()}]`
  return `${checksum(body)} ${body}\n`
}

export interface JournalRead {
  readonly bytes: number
  readonly damagedLines: number
  /** Bytes behind the last good line at the very end: a write that never finished, and was never acknowledged. */
  readonly tornBytes: number
}

const READ_BYTES = 1024 * 1024
const NEWLINE = 10

export async function readJournalLines(
  files: Files,
  path: string,
  onBatch: (records: readonly JournalRecord[]) => void,
): Promise<JournalRead> {
  const handle = await files.open(path, 'read')
  let rest: Buffer = Buffer.alloc(0)
  let position = 0
  let damagedLines = 0
  // Unreadable lines count as damage only once a readable one follows: until then they may be the torn end.
  let unreadable = { lines: 0, bytes: 0 }
  try {
    for (;;) {
      const block = await handle.read(position, READ_BYTES)
      if (block.length === 0) break
      position += block.length
      const bytes = rest.length === 0 ? Buffer.from(block) : Buffer.concat([rest, block])
      let start = 0
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
        const records = decodeJournalLine(bytes.toString('utf8', start, end))
        if (records === undefined) {
          unreadable = { lines: unreadable.lines + 1, bytes: unreadable.bytes + end + 1 - start }
        } else {
          damagedLines += unreadable.lines
          unreadable = { lines: 0, bytes: 0 }
          onBatch(records)
        }
        start = end + 1
      }
      rest = bytes.subarray(start)
    }
  } finally {
    await handle.close()
  }
  return { bytes: position, damagedLines, tornBytes: unreadable.bytes + rest.length }
}

function decodeJournalLine(line: string): readonly JournalRecord[] | undefined {
  if (line[8] !== ' ') return undefined
  const body = line.slice(9)
  if (checksum(body) !== line.slice(0, 8)) return undefined
  const batch: unknown = JSON.parse(body)
  if (!Array.isArray(batch)) return undefined
  return batch.map(([topic, data]: [string, JournalRecord['data']]) => ({ topic, data }))
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
