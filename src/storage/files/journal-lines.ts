import { crc32 } from 'node:zlib'
import type { Files } from '../../base/files.ts'
import type { JournalRecord } from '../../base/journal.ts'
import { parseJson } from '../../base/json.ts'

/**
 * A line of the journal: eight hexadecimal digits of CRC-32 over the rest, a space, the number of the batch and the
 * line's place in it, a space, the commit as JSON, a newline. JSON text holds no raw newline, so damage never spreads
 * past the line it touches.
 */
export function encodeJournalLines(batch: number, firstPlace: number, commits: readonly string[]): Buffer {
  const lines = commits.map((commit, at) => `${BLANK_CHECKSUM} ${batch}.${firstPlace + at} ${commit}\n`)
  const bytes = Buffer.from(lines.join(''))
  // Over the bytes that are written anyway: a checksum of a text encodes it a second time.
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start)
    bytes.write(checksum(bytes.subarray(start + BLANK_CHECKSUM.length + 1, end)), start, 'latin1')
    start = end + 1
  }
  return bytes
}

/** Names of topics need no escaping. */
export function encodeCommit(records: readonly JournalRecord[]): string {
  const [first] = records
  if (records.length === 1 && first !== undefined) return `[${encodeRecord(first)}]`
  return `[${records.map(encodeRecord).join()}]`
}

function encodeRecord({ topic, data, json = JSON.stringify(data) }: JournalRecord): string {
  return `["${topic}",${json}]`
}

const BLANK_CHECKSUM = '00000000'
const NEWLINE = 10
const SPACE = 32

interface FoundLine extends Line {
  readonly path: string
}

interface Line {
  readonly batch: number
  readonly place: number
  readonly records: readonly JournalRecord[]
}

export interface JournalFile {
  readonly size: number
  /** The end of the last line that was taken. */
  readonly end: number
  /** Nothing was ever written to it. */
  readonly isBlank: boolean
  /** Something was written to it, and no line of it can be read. */
  readonly isUnreadable: boolean
}

const READ_BYTES = 1024 * 1024
const PAGE = 4096
const ZEROS = Buffer.alloc(PAGE)

/**
 * Reads a journal, file by file in the order they were written. A batch is written only after the one before it is
 * durable: so what a crash leaves unfinished is in the last batch alone, as lines that are cut, missing or behind a
 * hole. From the first such place on that batch is dropped: it was never acknowledged, and what is kept is what came
 * before. Anywhere else an unreadable line is damage and costs that line only.
 */
export class JournalReader {
  /** The number of the last batch of which anything was taken. */
  lastTaken = 0
  /** Batches that are nowhere although later ones are there: whole files are missing, or were cut. */
  missingBatches = 0
  records = 0
  /** Unreadable stretches that are no unfinished write, by file. */
  readonly damage = new Map<string, number>()
  readonly #onRecords: (records: readonly JournalRecord[], path: string) => void
  /** The highest number of a batch. */
  #batch = 0
  /** The place of the next line of the last batch; its lines behind a missing one are held back. */
  #expected = 0
  #held: FoundLine[] = []
  /** Files of unreadable stretches that may belong to the last batch, one for each. */
  #doubtful: string[] = []
  #end = 0

  constructor(onRecords: (records: readonly JournalRecord[], path: string) => void) {
    this.#onRecords = onRecords
  }

  async read(files: Files, path: string): Promise<JournalFile> {
    const handle = await files.open(path, 'read')
    let rest: Buffer = Buffer.alloc(0)
    let position = 0
    let isBlank = true
    let lines = 0
    this.#end = 0
    const begin = (): void => {
      // A file is begun when the one before it is complete.
      if (isBlank) this.confirm()
      isBlank = false
    }
    try {
      for (;;) {
        const block = await handle.read(position, READ_BYTES)
        if (block.length === 0) break
        position += block.length
        const bytes = rest.length === 0 ? Buffer.from(block) : Buffer.concat([rest, block])
        const offset = position - bytes.length
        let start = afterZeros(bytes, 0)
        for (let end = bytes.indexOf(NEWLINE, start); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
          begin()
          const line = decodeJournalLine(bytes.subarray(start, end))
          if (line !== undefined) lines++
          this.#take(path, line, offset + end + 1)
          start = afterZeros(bytes, end + 1)
        }
        rest = bytes.subarray(start)
      }
    } finally {
      await handle.close()
    }
    if (rest.length > 0) {
      begin()
      this.#doubtful.push(path)
    }
    return { size: position, end: this.#end, isBlank, isUnreadable: !isBlank && lines === 0 }
  }

  /** Lines at the end that belong to a write that was not finished, or look like one. They are dropped. */
  get unfinishedLines(): number {
    return this.#held.length + this.#doubtful.length
  }

  /** What was read so far is complete: an unreadable stretch of it is damage. */
  confirm(): void {
    for (const line of this.#held) this.#pass(line)
    for (const path of this.#doubtful) this.damage.set(path, (this.damage.get(path) ?? 0) + 1)
    this.#held = []
    this.#doubtful = []
  }

  #take(path: string, line: Line | undefined, end: number): void {
    if (line === undefined) {
      this.#doubtful.push(path)
      return
    }
    const batch = line.batch || this.#batch + 1
    if (batch > this.#batch) this.#beginBatch(batch, line.place)
    if (line.place !== this.#expected || this.#held.length > 0) {
      this.#held.push({ ...line, path })
      return
    }
    this.#expected++
    this.#end = end
    this.#pass({ ...line, path })
  }

  #beginBatch(batch: number, place: number): void {
    // Before the first line of a batch stand only earlier ones; before any other may be lost lines of its own.
    const unclear = place === 0 ? [] : this.#doubtful.splice(0)
    this.confirm()
    this.#doubtful = unclear
    this.missingBatches += batch - this.#batch - 1
    this.#batch = batch
    this.#expected = 0
  }

  #pass({ batch, records, path }: FoundLine): void {
    this.lastTaken = batch === 0 ? this.#batch : batch
    this.records += records.length
    this.#onRecords(records, path)
  }
}

/** Segments are filled with zeros before they are used. */
function afterZeros(bytes: Buffer, from: number): number {
  let at = from
  if (bytes[at] !== 0) return at
  // By the page first: an unused segment is megabytes of them.
  while (at + PAGE <= bytes.length && bytes.compare(ZEROS, 0, PAGE, at, at + PAGE) === 0) at += PAGE
  while (bytes[at] === 0) at++
  return at
}

function decodeJournalLine(line: Buffer): Line | undefined {
  const restAt = BLANK_CHECKSUM.length + 1
  if (line[restAt - 1] !== SPACE || checksum(line.subarray(restAt)) !== line.toString('latin1', 0, restAt - 1))
    return undefined
  const rest = line.toString('utf8', restAt)
  const body = rest.indexOf('[')
  const commit = parseJson(rest.slice(body))
  if (!Array.isArray(commit)) return undefined
  // Lines written before batches had numbers: each counts as a batch of its own.
  const [batch = 0, place = 0] = rest.slice(0, body).split('.').map(Number)
  return { batch, place, records: commit.map(toRecord) }
}

function toRecord(value: unknown): JournalRecord {
  const [topic, data] = Array.isArray(value) ? (value as readonly unknown[]) : []
  return { topic: typeof topic === 'string' ? topic : '', data }
}

function checksum(data: Buffer): string {
  return crc32(data).toString(16).padStart(8, '0')
}
