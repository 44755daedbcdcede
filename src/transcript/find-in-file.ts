import type { FileHandle, Files } from '../base/files.ts'
import { isRecord } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { toEntry } from './line.ts'

export interface FoundEntry {
  readonly entry: Entry
  /** Where its line begins in the file. */
  readonly offset: number
}

export interface FoundInFile {
  /** Last line first. */
  readonly found: readonly FoundEntry[]
  /** Bytes in front that were not looked at; 0 when the file is through. */
  readonly rest: number
}

export interface FindOptions {
  /** In lower case. */
  readonly wanted: string
  /** Look in front of this place; at the end of the file when absent. */
  readonly before?: number
  /** Look at about so many bytes, then say where to go on. */
  readonly maxBytes: number
}

const BLOCK_BYTES = 256 * 1024
/** A longer line is no message that anybody reads. */
const MAX_LINE_BYTES = 64 * 1024 * 1024
const NEWLINE = 10

/**
 * Entries of a transcript's file that may hold a text, without opening the transcript: most lines are only looked at as
 * letters, and those that hold the text are parsed. Undefined when there is no such file.
 */
export async function findInFile(files: Files, path: string, options: FindOptions): Promise<FoundInFile | undefined> {
  if ((await files.stat(path))?.kind !== 'file') return undefined
  const handle = await files.open(path, 'read')
  try {
    return await findIn(handle, options)
  } finally {
    await handle.close()
  }
}

async function findIn(handle: FileHandle, { wanted, before, maxBytes }: FindOptions): Promise<FoundInFile> {
  const found: FoundEntry[] = []
  const mayHold = filterFor(wanted)
  const first = Math.min(before ?? Number.POSITIVE_INFINITY, handle.stat().size)
  let end = first
  while (end > 0 && first - end < maxBytes) {
    const { text, start } = await linesBefore(handle, end)
    if (mayHold(text)) found.push(...entriesIn(text, start, mayHold))
    end = start
  }
  return { found, rest: end }
}

/** Whole lines that end at `end`, at least one. */
async function linesBefore(
  handle: FileHandle,
  end: number,
): Promise<{ readonly text: Buffer; readonly start: number }> {
  for (let length = BLOCK_BYTES; ; length *= 2) {
    const from = Math.max(0, end - length)
    const read = await handle.read(from, end - from)
    const bytes = Buffer.from(read.buffer, read.byteOffset, read.byteLength)
    // The newline at the very end closes a line that may have begun before the block.
    const newline = from === 0 ? -1 : bytes.subarray(0, -1).indexOf(NEWLINE)
    if (from === 0 || newline >= 0) return { text: bytes.subarray(newline + 1), start: from + newline + 1 }
    if (length > MAX_LINE_BYTES) return { text: Buffer.alloc(0), start: from }
  }
}

/** Whether letters may hold the text, as JSON writes it; what is escaped in other ways has to be parsed to know. */
function filterFor(wanted: string): (bytes: Buffer) => boolean {
  const written = JSON.stringify(wanted).slice(1, -1).toLowerCase()
  const hasSlash = wanted.includes('/')
  return (bytes) => {
    const text = bytes.toString('utf8')
    return text.toLowerCase().includes(written) || text.includes('\\u') || (hasSlash && text.includes('\\/'))
  }
}

function entriesIn(bytes: Buffer, start: number, mayHold: (bytes: Buffer) => boolean): readonly FoundEntry[] {
  const found: FoundEntry[] = []
  for (let end = bytes.length; end > 0;) {
    const from = bytes.subarray(0, end - 1).lastIndexOf(NEWLINE) + 1
    const line = bytes.subarray(from, end)
    const entry = mayHold(line) ? entryOf(line) : undefined
    if (entry !== undefined) found.push({ entry, offset: start + from })
    end = from
  }
  return found
}

function entryOf(line: Buffer): Entry | undefined {
  try {
    const raw: unknown = JSON.parse(line.toString('utf8'))
    if (!isRecord(raw) || typeof raw['id'] !== 'string' || raw['type'] === 'session') return undefined
    const { parentId } = raw
    return toEntry(raw, raw['id'] as EntryId, typeof parentId === 'string' ? (parentId as EntryId) : null)
  } catch {
    // A damaged line holds nothing that can be shown; opening the transcript repairs it.
    return undefined
  }
}
