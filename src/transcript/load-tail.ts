import { isUtf8 } from 'node:buffer'
import { decodeUtf8 } from '../base/text.ts'
import type { FileHandle } from '../base/files.ts'
import { parseJson } from '../base/json.ts'
import type { SessionHeader } from '../core/entry.ts'
import { BlocksFromEnd, type LineBlock } from './blocks-from-end.ts'
import { FORMAT_VERSION, isHeader, toHeader } from './line.ts'
import type { Loaded, LoadOptions } from './load.ts'
import { parseLine, toBuffer } from './scan.ts'
import { TailWalk } from './tail-walk.ts'

const HEADER_BYTES = 4 * 1024
/** A compaction that keeps more than this probably names an entry that is not on the path: the scan knows at once. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024
const NEWLINE = 10

export interface TailSizes {
  /** Parsed in one go, between two turns of the event loop: a few milliseconds before this code is warm. */
  readonly contextBlockBytes: number
  /** Above the context only the heads of lines are looked at: a millisecond. */
  readonly searchBlockBytes: number
  /** Lines decoded and taken together, without a wait between them. */
  readonly runBytes: number
}

const USUAL_SIZES: TailSizes = {
  contextBlockBytes: 256 * 1024,
  searchBlockBytes: 1024 * 1024,
  runBytes: 32 * 1024,
}

/**
 * Opens a file from its end, following parents up to the first kept entry of the last compaction: costs what the active
 * context costs. In our own files level and model are restated after each compaction; in others the path is followed
 * further up by the heads of its lines until both are found. Undefined when anything is unusual; then the whole
 * structure has to be scanned.
 */
export async function loadTail(options: LoadOptions, sizes = USUAL_SIZES): Promise<Loaded | undefined> {
  const { handle, maxLineBytes } = options
  const blocks = new BlocksFromEnd(handle, sizes.contextBlockBytes, maxLineBytes)
  try {
    const [header, last] = await Promise.all([readHeader(handle), blocks.next()])
    if (header === undefined || header.version < FORMAT_VERSION || last === undefined) return undefined
    const endsWithNewline = last.bytes.at(-1) === NEWLINE
    const walk = new TailWalk()
    const reader = { walk, handle, runBytes: sizes.runBytes }
    let keptBytes = 0
    const tornBytes = endsWithNewline ? 0 : await takeUnfinished(reader, last)
    const lastEnd = endsWithNewline ? last.bytes.length : last.bytes.lastIndexOf(NEWLINE) + 1
    for (let block: LineBlock | undefined = last, end = lastEnd; block !== undefined; end = block?.bytes.length ?? 0) {
      await takeBlock(reader, block, end)
      if (walk.isEnded) return toLoaded(walk, { header, size: blocks.size, tornBytes, endsWithNewline })
      if (walk.isBeforeCompaction) keptBytes += block.bytes.length
      if (walk.isUnusual || keptBytes > MAX_KEPT_BYTES) return undefined
      if (walk.isSearching) blocks.blockBytes = sizes.searchBlockBytes
      block = await blocks.next()
    }
    return undefined
  } finally {
    await blocks.settle()
  }
}

function toLoaded(
  walk: TailWalk,
  file: Pick<Loaded, 'size' | 'tornBytes' | 'endsWithNewline'> & { readonly header: SessionHeader },
): Loaded {
  const { header, size, tornBytes, endsWithNewline } = file
  const repairs = tornBytes === 0 ? [] : [{ kind: 'torn-tail', line: 0, bytes: tornBytes } as const]
  const state = { header, leafId: walk.leafId, active: walk.active(), repairs }
  return { state, size, scan: undefined, isSound: true, tornBytes, endsWithNewline }
}

async function readHeader(handle: FileHandle): Promise<SessionHeader | undefined> {
  const bytes = toBuffer(await handle.read(0, HEADER_BYTES))
  const end = bytes.indexOf(NEWLINE)
  const raw = end < 0 ? undefined : parseJson(bytes.toString('utf8', 0, end))
  return isHeader(raw) ? toHeader(raw) : undefined
}

interface Reader {
  readonly walk: TailWalk
  readonly handle: FileHandle
  readonly runBytes: number
}

/** A last line without its newline is the leaf, or a write that never finished: then its length is returned. */
async function takeUnfinished({ walk, handle }: Reader, { bytes }: LineBlock): Promise<number> {
  const line = bytes.subarray(bytes.lastIndexOf(NEWLINE) + 1)
  const raw = await parseLine(line, handle)
  if (raw === undefined) return line.length
  walk.take(isUtf8(line) ? raw : undefined)
  return 0
}

/** The lines of a block that end before `end`, last first, as far as the walk goes. */
async function takeBlock(reader: Reader, block: LineBlock, end: number): Promise<void> {
  const { walk, runBytes } = reader
  const { bytes, start } = block
  let rest = end
  while (rest > start && walk.isReading) {
    const from = rest - start <= runBytes ? start : bytes.indexOf(NEWLINE, rest - runBytes) + 1
    rest = from < rest ? takeRun(walk, bytes, from, rest) : await takeLongLine(reader, block, rest)
  }
  while (rest > start && walk.isSearching) {
    const lineEnd = walk.passMessages(bytes, start, rest - 1)
    if (lineEnd <= start) return
    rest = lineStartOf(bytes, start, lineEnd)
    if (walk.passUp(bytes, rest, lineEnd)) await takeLine(reader, bytes.subarray(rest, lineEnd))
  }
}

/** Lines decoded together; returns where the first one begins that was looked at. */
function takeRun(walk: TailWalk, bytes: Buffer, start: number, end: number): number {
  const lines = decodeUtf8(bytes.subarray(start, end - 1))?.split('\n')
  if (lines === undefined) {
    walk.giveUp()
    return start
  }
  let left = lines.length
  while (left > 0 && walk.isReading) walk.takeText(lines[--left] ?? '')
  if (left === 0) return start
  let from = end
  for (let taken = lines.length - left; taken > 0; taken--) from = lineStartOf(bytes, start, from - 1)
  return from
}

async function takeLongLine(reader: Reader, { bytes, start }: LineBlock, end: number): Promise<number> {
  const lineStart = lineStartOf(bytes, start, end - 1)
  const line = bytes.subarray(lineStart, end - 1)
  if (!reader.walk.isElsewhere(line)) await takeLine(reader, line)
  return lineStart
}

async function takeLine({ walk, handle }: Reader, line: Buffer): Promise<void> {
  const raw = await parseLine(line, handle)
  walk.take(isUtf8(line) ? raw : undefined)
}

/** Of the line that ends at this newline. */
function lineStartOf(bytes: Buffer, start: number, newline: number): number {
  return newline <= start ? start : Math.max(start, bytes.lastIndexOf(NEWLINE, newline - 1) + 1)
}
