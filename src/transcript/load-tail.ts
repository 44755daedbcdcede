import { isUtf8 } from 'node:buffer'
import { isRecord, parseJson } from '../base/json.ts'
import type { FileHandle } from '../base/files.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { EMPTY_PATH, levelSetBy, modelSetBy, type ActivePath } from './context.ts'
import { ENTRY_KINDS, readHead, type EntryKind, type LineHead } from './head.ts'
import { FORMAT_VERSION, isHeader, isMisshapen, toEntry, toHeader } from './line.ts'
import { pointedLeaf, type Loaded, type LoadOptions } from './load.ts'
import { parseLine, toBuffer } from './scan.ts'

const HEADER_BYTES = 4 * 1024
const FIRST_BLOCK_BYTES = 512 * 1024
const LARGEST_BLOCK_BYTES = 2 * 1024 * 1024
/** How far beyond the context we look for level and model before the scan, which is faster per byte, takes over. */
const SETTINGS_SEARCH_BYTES = 1024 * 1024
const NEWLINE = 10
const MESSAGE_START = '{"type":"message","id":"'

/**
 * Opens a file from its end, following parents up to the first kept entry of the last compaction: costs what the active
 * context costs. Our own files always allow it, because level and model are restated after each compaction. Undefined
 * when anything is unusual; then the whole structure has to be scanned.
 */
export async function loadTail(options: LoadOptions): Promise<Loaded | undefined> {
  const { handle } = options
  const walk = new TailWalk()
  const lines = new LinesFromEnd(handle, handle.stat().size, options.maxLineBytes)
  const [header, last] = await Promise.all([readHeader(handle), lines.next()])
  if (header === undefined || header.version < FORMAT_VERSION) return undefined
  for (let block = last; ; block = await lines.next()) {
    if (block === undefined) return undefined
    for (let at = block.lines.length - 1; at >= 0; at--) {
      const range = block.lines[at]
      const line = range && block.bytes.subarray(range.start, range.end)
      const isPassed = line === undefined || walk.passBy(line)
      if (walk.isAtRoot) return toLoaded(walk, header, lines)
      if (isPassed) continue
      const parsed = parseLine(line, handle)
      const isUnfinished = range !== undefined && lines.isUnfinished(range, block)
      const isDone = walk.take(line, parsed instanceof Promise ? await parsed : parsed, isUnfinished)
      if (walk.isUnusual) return undefined
      if (isDone) return toLoaded(walk, header, lines)
    }
    if (lines.isAtStart || walk.searchedBytes > SETTINGS_SEARCH_BYTES) return undefined
  }
}

function toLoaded(walk: TailWalk, header: SessionHeader, lines: LinesFromEnd): Loaded {
  const { tornBytes } = walk
  return {
    state: {
      header,
      leafId: walk.leafId,
      active: walk.active(),
      repairs: tornBytes === 0 ? [] : [{ kind: 'torn-tail', line: 0, bytes: tornBytes }],
    },
    size: lines.size,
    scan: undefined,
    isSound: true,
    tornBytes,
    endsWithNewline: lines.endsWithNewline,
  }
}

async function readHeader(handle: FileHandle): Promise<SessionHeader | undefined> {
  const bytes = toBuffer(await handle.read(0, HEADER_BYTES))
  const end = bytes.indexOf(NEWLINE)
  const raw = end < 0 ? undefined : parseJson(bytes.toString('utf8', 0, end))
  return isHeader(raw) ? toHeader(raw) : undefined
}

interface LineRange {
  readonly start: number
  readonly end: number
}

interface TailBlock {
  readonly bytes: Buffer
  readonly offset: number
  readonly lines: readonly LineRange[]
}

/** Whole lines, block by block, from the end of a file to its start. */
class LinesFromEnd {
  readonly size: number
  endsWithNewline = true
  readonly #handle: FileHandle
  readonly #maxLineBytes: number
  #end: number
  #blockBytes = FIRST_BLOCK_BYTES

  constructor(handle: FileHandle, size: number, maxLineBytes: number) {
    this.#handle = handle
    this.size = size
    this.#end = size
    this.#maxLineBytes = maxLineBytes
  }

  get isAtStart(): boolean {
    return this.#end === 0
  }

  /** Undefined when a line is longer than the limit. */
  async next(): Promise<TailBlock | undefined> {
    for (;;) {
      const offset = Math.max(0, this.#end - this.#blockBytes)
      const bytes = toBuffer(await this.#handle.read(offset, this.#end - offset))
      if (this.#end === this.size) this.endsWithNewline = bytes.at(-1) === NEWLINE
      const first = offset === 0 ? 0 : bytes.indexOf(NEWLINE) + 1
      // The newline at the very end of the block closes a line that began before it.
      if (offset === 0 || (first > 0 && first < bytes.length)) {
        this.#end = offset + first
        this.#blockBytes = Math.min(LARGEST_BLOCK_BYTES, this.#blockBytes * 2)
        return { bytes, offset, lines: rangesOf(bytes, first) }
      }
      if (this.#blockBytes > this.#maxLineBytes) return undefined
      this.#blockBytes *= 2
    }
  }

  isUnfinished(range: LineRange, block: TailBlock): boolean {
    return !this.endsWithNewline && block.offset + range.end === this.size
  }
}

function rangesOf(bytes: Buffer, from: number): LineRange[] {
  const ranges: LineRange[] = []
  let start = from
  for (let end = bytes.indexOf(NEWLINE, start); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    if (end > start) ranges.push({ start, end })
    start = end + 1
  }
  if (start < bytes.length) ranges.push({ start, end: bytes.length })
  return ranges
}

/** Follows one path through lines that come last first. */
class TailWalk {
  leafId: EntryId | null = null
  tornBytes = 0
  isUnusual = false
  /** The search for settings beyond the context has come to its end. */
  isAtRoot = false
  searchedBytes = 0
  readonly #path: Entry[] = []
  /** The parent to be found next; undefined before the leaf is known. */
  #wanted: string | undefined
  #isLeafKnown = false
  #firstKept: EntryId | undefined
  #isCompacted = false
  #isComplete = false
  #level: string | undefined
  #model: ReturnType<typeof modelSetBy>

  /** True for a line that need not be parsed: not on the path, or beyond the context and without a setting. */
  passBy(line: Buffer): boolean {
    // The usual line is the one looked for: seen without taking its head apart.
    if (!this.#isComplete && this.#wanted !== undefined && hasId(line, this.#wanted)) return false
    const head = readHead(line, 0, line.length)
    if (this.#isComplete) this.searchedBytes += line.length
    if (head === undefined) return false
    if (this.#isLeafKnown && head.id !== this.#wanted) return true
    if (!this.#isComplete || this.#maySet(head.type)) return false
    this.#goUp(head)
    return true
  }

  /** True when nothing more has to be read. */
  take(line: Buffer, raw: unknown, isUnfinished: boolean): boolean {
    if (!this.#isLeafKnown && isUnfinished && raw === undefined) {
      this.tornBytes = line.length
      return false
    }
    if (!isRecord(raw) || !isPlain(raw) || !isUtf8(line)) return this.#giveUp()
    if (!this.#isLeafKnown) return this.#takeLeaf(raw)
    return raw['id'] === this.#wanted ? this.#takeOnPath(raw) : false
  }

  active(): ActivePath {
    if (this.#path.length === 0) return EMPTY_PATH
    return { entries: this.#path.toReversed(), thinkingLevel: this.#level ?? 'off', model: this.#model ?? null }
  }

  #giveUp(): false {
    this.isUnusual = true
    return false
  }

  #takeLeaf(raw: PlainRaw): boolean {
    this.#isLeafKnown = true
    const pointed = pointedLeaf(raw)
    if (pointed === undefined) {
      this.leafId = raw.id
      return this.#takeOnPath(raw)
    }
    this.leafId = pointed
    this.#wanted = pointed ?? undefined
    return pointed === null
  }

  #takeOnPath(raw: PlainRaw): boolean {
    const entry = toEntry(raw, raw.id, raw.parentId)
    this.#level ??= levelSetBy(entry)
    this.#model ??= modelSetBy(entry)
    if (!this.#isComplete) this.#path.push(entry)
    if (entry.type === 'compaction' && !this.#isCompacted) {
      this.#isCompacted = true
      this.#firstKept = entry.firstKeptEntryId
    }
    if (this.#isCompacted && raw.id === this.#firstKept) this.#isComplete = true
    if (raw.parentId === null) return this.#reachRoot()
    this.#wanted = raw.parentId
    return this.#isComplete && this.#level !== undefined && this.#model !== undefined
  }

  /** The whole path was read. A compaction whose first kept entry is not on it keeps nothing before itself. */
  #reachRoot(): true {
    if (this.#isCompacted && !this.#isComplete) {
      const compaction = this.#path.findIndex((entry) => entry.type === 'compaction')
      this.#path.length = compaction + 1
    }
    return true
  }

  /** Beyond the context only what can set the level or the model is worth a parse. */
  #maySet(kind: EntryKind): boolean {
    if (this.#level === undefined && kind === ENTRY_KINDS.level) return true
    return this.#model === undefined && (kind === ENTRY_KINDS.model || kind === ENTRY_KINDS.message)
  }

  #goUp({ parentId }: LineHead): void {
    this.#wanted = parentId ?? undefined
    this.isAtRoot = parentId === null
  }
}

/** Of a message as pi and we write it. */
function hasId(line: Buffer, id: string): boolean {
  const start = MESSAGE_START + id
  return line.toString('latin1', 0, start.length) === start
}

interface PlainRaw extends Record<string, unknown> {
  readonly type: string
  readonly id: EntryId
  readonly parentId: EntryId | null
}

/** An entry with nothing to mend. */
function isPlain(raw: Record<string, unknown>): raw is PlainRaw {
  const { type, id, parentId, timestamp } = raw
  if (typeof type !== 'string' || type === 'session' || typeof timestamp !== 'string') return false
  if (typeof id !== 'string' || id === '' || id === parentId) return false
  if (typeof parentId !== 'string' && parentId !== null) return false
  return !isMisshapen(raw)
}
