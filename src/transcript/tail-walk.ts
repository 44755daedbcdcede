import { isRecord, parseJson } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { EMPTY_PATH, levelSetBy, modelSetBy, type ActivePath } from './context.ts'
import { ENTRY_KINDS, readHead, type EntryKind, isMisshapen, toEntry } from './line.ts'
import { pointedLeaf } from './load.ts'

const NEWLINE = 10
const CLOSING_BRACE = 0x7d
const CARRIAGE_RETURN = 13
/** More than a head takes whose ids have 8 or 16 digits. */
const USUAL_HEAD_BYTES = 96
const MESSAGE_START = '{"type":"message","id":"'
const PARENT_START = '","parentId":"'
/** The id of a line that begins as pi and we write it. */
const HEAD_ID = /^\{"type":"[^"\\]{1,80}","id":"([^"\\]{1,80})","parentId":["n]/

/**
 * Follows one path through lines that come last first. `reading`: entries of the context are taken · `searching`: the
 * context is whole, level or model are looked for above it · `ended`: all is known · `unusual`: only a scan can tell.
 */
export class TailWalk {
  leafId: EntryId | null = null
  #phase: 'reading' | 'searching' | 'ended' | 'unusual' = 'reading'
  readonly #path: Entry[] = []
  #isLeafKnown = false
  /** The entry to be found next, once the leaf is known. */
  #wanted = ''
  #compaction: { readonly firstKept: EntryId } | undefined
  #level: string | undefined
  #model: ReturnType<typeof modelSetBy>

  get isReading(): boolean {
    return this.#phase === 'reading'
  }

  get isSearching(): boolean {
    return this.#phase === 'searching'
  }

  get isEnded(): boolean {
    return this.#phase === 'ended'
  }

  get isUnusual(): boolean {
    return this.#phase === 'unusual'
  }

  /** The first kept entry of a compaction is still to come. */
  get isBeforeCompaction(): boolean {
    return this.isReading && this.#compaction !== undefined
  }

  giveUp(): void {
    this.#phase = 'unusual'
  }

  active(): ActivePath {
    if (this.#path.length === 0) return EMPTY_PATH
    return { entries: this.#path.toReversed(), thinkingLevel: this.#level ?? 'off', model: this.#model ?? null }
  }

  /** The next line while reading. */
  takeText(line: string): void {
    if (line === '') return
    if (this.#isLeafKnown && !line.startsWith(this.#wanted, MESSAGE_START.length)) {
      const id = HEAD_ID.exec(line)?.[1]
      if (id !== undefined && id !== this.#wanted) return
    }
    this.take(parseJson(line))
  }

  /** True for a line of another branch, which need not be parsed. */
  isElsewhere(line: Buffer): boolean {
    const id = this.#isLeafKnown ? readHead(line, 0, line.length)?.id : undefined
    return id !== undefined && id !== this.#wanted
  }

  /** A parsed line; undefined for one that cannot be. */
  take(raw: unknown): void {
    if (!isRecord(raw) || !isPlain(raw)) return this.giveUp()
    if (!this.#isLeafKnown) this.#takeLeaf(raw)
    else if (raw.id === this.#wanted) this.#takeOnPath(raw)
  }

  /**
   * Goes up over messages of the path, the usual lines above the context, as long as there are no others. `end` is the
   * newline of the last line; returns that of the first line which is something else.
   */
  passMessages(bytes: Buffer, start: number, end: number): number {
    if (this.#model === undefined) return end
    let wanted = this.#wanted
    let lineEnd = end
    while (lineEnd > start) {
      const lineStart = bytes.lastIndexOf(NEWLINE, lineEnd - 1) + 1
      const head = bytes.toString('latin1', lineStart, Math.min(lineEnd, lineStart + USUAL_HEAD_BYTES))
      const idEnd = MESSAGE_START.length + wanted.length
      const isOnPath = head.startsWith(wanted, MESSAGE_START.length) && head.startsWith(PARENT_START, idEnd)
      const isMessage = isOnPath && head.startsWith(MESSAGE_START) && bytes[lineEnd - 1] === CLOSING_BRACE
      const parentEnd = isMessage ? head.indexOf('"', idEnd + PARENT_START.length) : -1
      if (parentEnd < 0) break
      wanted = head.slice(idEnd + PARENT_START.length, parentEnd)
      lineEnd = lineStart - 1
    }
    this.#wanted = wanted
    return lineEnd
  }

  /** Goes up by the head of any line. True when the line has to be parsed and taken. */
  passUp(bytes: Buffer, start: number, end: number): boolean {
    if (start === end) return false
    const last = bytes[end - 1] === CARRIAGE_RETURN ? bytes[end - 2] : bytes[end - 1]
    const head = readHead(bytes, start, end)
    // A line that does not close is torn or glued, whatever its head says; a second header means doubled lines.
    if (last !== CLOSING_BRACE || head?.parentId === undefined || head.type === ENTRY_KINDS.session) this.giveUp()
    else if (head.id === this.#wanted) {
      if (this.#maySet(head.type)) return true
      this.#goUp(head.parentId)
    }
    return false
  }

  #takeLeaf(raw: PlainRaw): void {
    this.#isLeafKnown = true
    const pointed = pointedLeaf(raw)
    this.leafId = pointed === undefined ? raw.id : pointed
    if (pointed === undefined) this.#takeOnPath(raw)
    else this.#goUp(pointed)
  }

  #takeOnPath(raw: PlainRaw): void {
    const entry = toEntry(raw, raw.id, raw.parentId)
    this.#level ??= levelSetBy(entry)
    this.#model ??= modelSetBy(entry)
    if (this.isReading) {
      this.#path.push(entry)
      if (entry.type === 'compaction') this.#compaction ??= { firstKept: entry.firstKeptEntryId }
      if (this.#compaction?.firstKept === raw.id) this.#phase = 'searching'
    }
    this.#goUp(raw.parentId)
    if (this.isSearching && this.#level !== undefined && this.#model !== undefined) this.#phase = 'ended'
  }

  #goUp(parentId: string | null): void {
    if (parentId === null) this.#reachRoot()
    else this.#wanted = parentId
  }

  /** The whole path was read. A compaction whose first kept entry is not on it keeps nothing before itself. */
  #reachRoot(): void {
    if (this.isBeforeCompaction) {
      this.#path.length = this.#path.findIndex((entry) => entry.type === 'compaction') + 1
    }
    this.#phase = 'ended'
  }

  /** Beyond the context only what can set the level or the model is worth a parse. */
  #maySet(kind: EntryKind): boolean {
    if (this.#level === undefined && kind === ENTRY_KINDS.level) return true
    return this.#model === undefined && (kind === ENTRY_KINDS.model || kind === ENTRY_KINDS.message)
  }
}

interface PlainRaw extends Record<string, unknown> {
  readonly type: string
  readonly id: EntryId
  readonly parentId: EntryId | null
}

/** An entry with nothing to repair. */
function isPlain(raw: Record<string, unknown>): raw is PlainRaw {
  const { type, id, parentId, timestamp } = raw
  if (typeof type !== 'string' || type === 'session' || typeof timestamp !== 'string') return false
  if (typeof id !== 'string' || id === '' || id === parentId) return false
  if (typeof parentId !== 'string' && parentId !== null) return false
  return !isMisshapen(raw)
}
