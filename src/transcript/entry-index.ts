import type { EntryId } from '../core/ids.ts'
import { ENTRY_KINDS, type EntryKind, derivedId } from './line.ts'
import type { HeadScanner } from './head-scanner.ts'
import { ID_NONE, idText, IdTable } from './id-table.ts'
import type { RepairNote } from './store.ts'

/** A line as the scan found it. */
export interface IndexedLine {
  readonly offset: number
  readonly length: number
  readonly line: number
  readonly kind: EntryKind
  /** Undefined for an entry without one: it is given one derived from its place. */
  readonly id: string | undefined
  readonly parentId: string | null | undefined
}

/** Of real sessions. */
const USUAL_LINE_BYTES = 1000
/** A thousand conversations may be open, most of them new ones. */
const FEWEST_ENTRIES = 16
const NO_PARENT = -1
/** Neither found nor null yet. */
const UNRESOLVED = -2

/**
 * Where every entry of a file stands and whose child it is: about 30 bytes an entry, no bodies. After damage the tree
 * is repaired here, never in the file: see `resolve`.
 */
export class EntryIndex {
  readonly ids: IdTable
  #count = 0
  #offsets: Float64Array
  #lengths: Uint32Array
  #lines: Uint32Array
  #kinds: Uint8Array
  #parents: Int32Array
  /** Entries no longer there: unreadable bodies, second copies. */
  #dead = new Set<number>()
  #wanted = new Map<number, string | undefined>()
  /** Lines that could not be read, as far as their head holds it: id, and parent. */
  #lost = new Map<string, string | null>()
  #copies: [later: number, earlier: number][] = []
  #originals = new Map<number, number>()
  #leftOut: { readonly offset: number; readonly length: number }[] = []
  #notes: RepairNote[] = []
  #resolved: RepairNote[] = []

  constructor(fileBytes = 0) {
    let capacity = FEWEST_ENTRIES
    while (capacity < fileBytes / USUAL_LINE_BYTES) capacity *= 2
    this.ids = new IdTable(capacity)
    this.#offsets = new Float64Array(capacity)
    this.#lengths = new Uint32Array(capacity)
    this.#lines = new Uint32Array(capacity)
    this.#kinds = new Uint8Array(capacity)
    this.#parents = new Int32Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** Without the entries that turned out not to be there. */
  get liveCount(): number {
    return this.#count - this.#dead.size
  }

  get heldBytes(): number {
    return this.#offsets.length * 21 + this.ids.heldBytes
  }

  get notes(): readonly RepairNote[] {
    return [...this.#notes, ...this.#resolved]
  }

  /** Pairs of entries that claim one id; the scan's owner compares them and calls `dropCopy` or `renameCopy`. */
  get copies(): readonly (readonly [later: number, earlier: number])[] {
    return this.#copies
  }

  /** `add` for a child of the last entry, the usual case of an append: its parent need not be looked up. */
  addToLast(offset: number, length: number, kind: EntryKind, id: EntryId): void {
    const at = this.#count++
    if (at >= this.#offsets.length) this.#grow()
    this.#offsets[at] = offset
    this.#lengths[at] = length
    this.#lines[at] = this.lineAt(at - 1) + 1
    this.#kinds[at] = kind
    this.#parents[at] = at - 1
    this.ids.put(at, id)
  }

  add(entry: IndexedLine): number {
    const at = this.#count++
    if (at >= this.#offsets.length) this.#grow()
    this.#offsets[at] = entry.offset
    this.#lengths[at] = entry.length
    this.#lines[at] = entry.line
    this.#kinds[at] = entry.kind
    // Looked up before the entry's own id is stored: a parent stands before its child, and nothing is its own.
    this.#parents[at] = this.#parentBefore(at, entry.parentId)
    const id = entry.id ?? derivedId(entry.line, String(entry.offset))
    const earlier = this.ids.put(at, id)
    if (earlier >= 0) this.#copies.push([at, earlier])
    return at
  }

  /** `add` for a line whose head was read as numbers. */
  addScanned(offset: number, length: number, line: number, head: HeadScanner): void {
    const at = this.#count++
    if (at >= this.#offsets.length) this.#grow()
    this.#offsets[at] = offset
    this.#lengths[at] = length
    this.#lines[at] = line
    this.#kinds[at] = head.kind
    const { parentKind, parentHigh, parentLow } = head
    let parent = NO_PARENT
    if (parentKind !== ID_NONE) {
      parent = this.ids.getKey(parentKind, parentHigh, parentLow)
      if (parent < 0) {
        this.#wanted.set(at, idText(parentKind, parentHigh, parentLow))
        parent = UNRESOLVED
      }
    }
    this.#parents[at] = parent
    const earlier = this.ids.putKey(at, head.idKind, head.idHigh, head.idLow)
    if (earlier >= 0) this.#copies.push([at, earlier])
  }

  #parentBefore(at: number, parentId: string | null | undefined): number {
    if (parentId === null) return NO_PARENT
    const found = parentId === undefined ? -1 : this.ids.get(parentId)
    if (found >= 0) return found
    this.#wanted.set(at, parentId)
    return UNRESOLVED
  }

  note(note: RepairNote): void {
    this.#notes.push(note)
  }

  /** For lines that are looked at again and again. */
  noteOnce(note: RepairNote): void {
    const isKnown = this.#notes.some(({ kind, line }) => kind === note.kind && line === note.line)
    if (!isKnown) this.#notes.push(note)
  }

  /** A line that cannot be read still says where its children belong, if its head can be read. */
  lose(id: string | undefined, parentId: string | null | undefined): void {
    if (id !== undefined && parentId !== undefined && !this.#lost.has(id)) this.#lost.set(id, parentId)
  }

  /** Lines too long to be loaded; a rewrite carries them over byte for byte. */
  leaveOut(offset: number, length: number): void {
    this.#leftOut.push({ offset, length })
  }

  get leftOut(): readonly { readonly offset: number; readonly length: number }[] {
    return this.#leftOut
  }

  /** The second of two identical lines, as pi 0.73 leaves them: the first stands for both. */
  dropCopy(later: number, earlier: number): void {
    this.#dead.add(later)
    this.#originals.set(later, earlier)
    this.#notes.push({ kind: 'copy', line: this.lineAt(later), bytes: this.lengthAt(later) })
    this.ids.pointTo(earlier)
    for (let at = 0; at < this.#count; at++) if (this.#parents[at] === later) this.#parents[at] = earlier
  }

  /** Two different entries with one id: the first keeps it; children written after the second stay the second's. */
  renameCopy(later: number, earlier: number): void {
    this.ids.rename(later, derivedId(this.lineAt(later), this.ids.idAt(later)))
    this.ids.pointTo(earlier)
    this.#notes.push({ kind: 'duplicate-id', line: this.lineAt(later), bytes: this.lengthAt(later) })
  }

  /** The first one cannot be read: it was written again, as the journal does with a line a power cut has spoilt. */
  replaceUnreadable(later: number, earlier: number): void {
    this.kill(earlier, { kind: 'corrupt', line: this.lineAt(earlier), bytes: this.lengthAt(earlier) })
    this.#originals.set(earlier, later)
  }

  /** The entry that stands for this one, which may be a copy itself. */
  originalOf(at: number): number {
    let original = at
    for (let next = this.#originals.get(at); next !== undefined; next = this.#originals.get(next)) original = next
    return original
  }

  forgetCopies(): void {
    this.#copies = []
    this.#originals.clear()
  }

  /** An entry whose body turned out unreadable; its children pass to its parent. */
  kill(at: number, note: RepairNote): void {
    this.#dead.add(at)
    this.#notes.push(note)
    const parent = this.#parents[at] ?? NO_PARENT
    for (let child = 0; child < this.#count; child++) {
      if (this.#parents[child] !== at) continue
      this.#parents[child] = parent
      this.#resolved.push(this.#relinked(child))
    }
  }

  isDead(at: number): boolean {
    return this.#dead.has(at)
  }

  /**
   * Gives every entry its place. A parent that stands later in the file is found there; one that was lost hands its
   * children to its own parent; an unknown one is replaced by the entry on the line before. Cycles are cut.
   */
  resolve(): void {
    const forward: number[] = []
    const guessed = new Set<number>()
    for (const [at, parentId] of this.#wanted) {
      const found = parentId === undefined ? -1 : this.ids.get(parentId)
      if (found >= 0 && found !== at) {
        this.#parents[at] = found
        forward.push(at)
        continue
      }
      this.#parents[at] = this.#substitute(at, parentId)
      guessed.add(at)
      this.#resolved.push(this.#relinked(at))
    }
    this.#wanted.clear()
    if (forward.length > 0) this.#cutCycles(guessed)
  }

  #substitute(at: number, parentId: string | undefined): number {
    const seen = new Set<string>()
    let wanted: string | null | undefined = parentId
    while (wanted !== undefined && wanted !== null && !seen.has(wanted)) {
      seen.add(wanted)
      const found = this.ids.get(wanted)
      if (found >= 0 && found < at) return found
      const above: string | null | undefined = this.#lost.get(wanted)
      if (above === null) return NO_PARENT
      wanted = above
    }
    return this.#entryBefore(at)
  }

  #entryBefore(at: number): number {
    let before = at - 1
    while (before >= 0 && this.#dead.has(before)) before--
    return before
  }

  /** In file order: whatever a walk meets that is neither new nor known to end is a cycle, all of it at or after `start`. */
  #cutCycles(guessed: ReadonlySet<number>): void {
    const ends = new Uint8Array(this.#count)
    for (let start = 0; start < this.#count; start++) {
      const walk: number[] = []
      const inWalk = new Set<number>()
      let at = start
      while (at >= 0 && ends[at] === 0 && !inWalk.has(at)) {
        inWalk.add(at)
        walk.push(at)
        at = this.#parents[at] ?? NO_PARENT
      }
      if (at >= 0 && ends[at] === 0) this.#cut(walk.slice(walk.indexOf(at)), start, guessed)
      for (const passed of walk) ends[passed] = 1
    }
  }

  /** A link that we guessed gives way before one that a line names: what hangs on the circle stays on the path. */
  #cut(cycle: readonly number[], start: number, guessed: ReadonlySet<number>): void {
    const first = cycle.find((at) => guessed.has(at)) ?? cycle.reduce((least, at) => Math.min(least, at))
    this.#parents[first] = this.#entryBefore(start)
    this.#resolved.push({ kind: 'cycle', line: this.lineAt(first), bytes: this.lengthAt(first) })
  }

  #relinked(at: number): RepairNote {
    return { kind: 'relinked', line: this.lineAt(at), bytes: this.lengthAt(at) }
  }

  /** The position of an entry, or -1. */
  find(id: string): number {
    const at = this.ids.get(id)
    return at >= 0 && !this.#dead.has(at) ? at : -1
  }

  /** The last entry of the file, or -1. */
  last(): number {
    return this.#entryBefore(this.#count)
  }

  idAt(at: number): EntryId {
    return this.ids.idAt(at) as EntryId
  }

  /** -1 for a root. */
  parentAt(at: number): number {
    return this.#parents[at] ?? NO_PARENT
  }

  parentIdAt(at: number): EntryId | null {
    const parent = this.parentAt(at)
    return parent < 0 ? null : this.idAt(parent)
  }

  offsetAt(at: number): number {
    return this.#offsets[at] ?? 0
  }

  lengthAt(at: number): number {
    return this.#lengths[at] ?? 0
  }

  lineAt(at: number): number {
    return this.#lines[at] ?? 0
  }

  kindAt(at: number): EntryKind {
    return (this.#kinds[at] ?? ENTRY_KINDS.other) as EntryKind
  }

  #grow(): void {
    const capacity = this.#offsets.length * 2
    const grown = <T extends Float64Array | Uint32Array | Uint8Array | Int32Array>(target: T, source: T): T => {
      target.set(source)
      return target
    }
    this.#offsets = grown(new Float64Array(capacity), this.#offsets)
    this.#lengths = grown(new Uint32Array(capacity), this.#lengths)
    this.#lines = grown(new Uint32Array(capacity), this.#lines)
    this.#kinds = grown(new Uint8Array(capacity), this.#kinds)
    this.#parents = grown(new Int32Array(capacity), this.#parents)
  }
}
