import { isUtf8 } from 'node:buffer'
import type { FileHandle } from '../base/files.ts'
import { isRecord } from '../base/json.ts'
import type { CompactionEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { EMPTY_PATH, levelSetBy, modelSetBy, type ActivePath } from './context.ts'
import type { EntryIndex } from './entry-index.ts'
import { ENTRY_KINDS, isMisshapen, toEntry } from './line.ts'
import { migrateRaw } from './migrate.ts'
import { parseLine, toBuffer } from './scan.ts'

/** Parsed in one go, between two turns of the event loop. */
const READ_BYTES = 128 * 1024
/** Reading over a gap this long is cheaper than a second read. */
const GAP_BYTES = 64 * 1024

/** Bodies on demand: reads and parses the lines an index points to, and only those. */
export class TreeReader {
  readonly #handle: FileHandle
  readonly #index: EntryIndex
  readonly #version: number

  constructor(handle: FileHandle, index: EntryIndex, version: number) {
    this.#handle = handle
    this.#index = index
    this.#version = version
  }

  /** Entries at ascending positions. Lines that do not parse are struck from the index and left out. */
  async read(positions: readonly number[]): Promise<Entry[]> {
    const entries: Entry[] = []
    for (let from = 0; from < positions.length;) {
      const to = this.#endOfRun(positions, from)
      const start = this.#index.offsetAt(positions[from] ?? 0)
      const last = positions[to - 1] ?? 0
      const end = this.#index.offsetAt(last) + this.#index.lengthAt(last)
      const bytes = toBuffer(await this.#handle.read(start, end - start))
      for (const at of positions.slice(from, to)) {
        const from = this.#index.offsetAt(at) - start
        const line = bytes.subarray(from, from + this.#index.lengthAt(at))
        const parsed = parseLine(line, this.#handle)
        const entry = this.#toEntry(at, line, parsed instanceof Promise ? await parsed : parsed)
        if (entry !== undefined) entries.push(entry)
      }
      from = to
    }
    return entries
  }

  async readOne(at: number): Promise<Entry | undefined> {
    const [entry] = await this.read([at])
    return entry
  }

  /** The path from the root to this position, whole. */
  async path(at: number): Promise<readonly Entry[]> {
    for (;;) {
      const positions = this.#positionsUp(this.#alive(at), () => false).toReversed()
      const entries = await this.#inPathOrder(positions)
      if (entries.length === positions.length) return entries
    }
  }

  /** What of the path matters to the model: costs what that part costs, whatever the file holds. */
  async activeAt(at: number): Promise<ActivePath> {
    for (;;) {
      const active = await this.#tryActiveAt(this.#alive(at))
      if (active !== undefined) return active
    }
  }

  /** Undefined when a line turned out unreadable: the tree has changed and the walk starts again. */
  async #tryActiveAt(leaf: number): Promise<ActivePath | undefined> {
    if (leaf < 0) return EMPTY_PATH
    const found = await this.#upToCompaction(leaf)
    if (found === undefined) return undefined
    const { toCompaction, compaction } = found
    const top = toCompaction.at(-1) ?? leaf
    const kept = compaction === undefined ? [] : this.#keptBefore(top, compaction.firstKeptEntryId)
    const positions = [...toCompaction, ...kept].toReversed()
    const entries = await this.#inPathOrder(positions)
    if (entries.length < positions.length) return undefined
    return this.#withSettings(entries, positions[0] ?? leaf)
  }

  /** A line that only calls itself a compaction hides nothing: the walk goes on above it. */
  async #upToCompaction(
    leaf: number,
  ): Promise<{ readonly toCompaction: readonly number[]; readonly compaction?: CompactionEntry } | undefined> {
    const index = this.#index
    const toCompaction: number[] = []
    for (let from = leaf; from >= 0;) {
      const run = this.#positionsUp(from, (at) => index.kindAt(at) === ENTRY_KINDS.compaction)
      for (const at of run) toCompaction.push(at)
      const top = run.at(-1) ?? from
      if (index.kindAt(top) !== ENTRY_KINDS.compaction) break
      const entry = await this.readOne(top)
      if (entry === undefined) return undefined
      if (entry.type === 'compaction') return { toCompaction, compaction: entry }
      from = index.parentAt(top)
    }
    return { toCompaction }
  }

  #keptBefore(compaction: number, firstKept: EntryId): number[] {
    const parent = this.#index.parentAt(compaction)
    const first = this.#index.find(firstKept)
    if (parent < 0 || first < 0 || first === compaction) return []
    const kept = this.#positionsUp(parent, (at) => at === first)
    return kept.at(-1) === first ? kept : []
  }

  async #withSettings(entries: readonly Entry[], first: number): Promise<ActivePath | undefined> {
    let level = lastOf(entries, levelSetBy)
    let model = lastOf(entries, modelSetBy)
    for (let at = this.#index.parentAt(first); at >= 0; at = this.#index.parentAt(at)) {
      if (level !== undefined && model !== undefined) break
      const kind = this.#index.kindAt(at)
      const isWanted =
        (level === undefined && kind === ENTRY_KINDS.level) ||
        (model === undefined && (kind === ENTRY_KINDS.model || kind === ENTRY_KINDS.message))
      if (!isWanted) continue
      const entry = await this.readOne(at)
      if (entry === undefined) return undefined
      level ??= levelSetBy(entry)
      model ??= modelSetBy(entry)
    }
    return { entries, thinkingLevel: level ?? 'off', model: model ?? null }
  }

  #alive(from: number): number {
    let at = from
    while (at >= 0 && this.#index.isDead(at)) at = this.#index.parentAt(at)
    return at
  }

  /** From a position towards the root, up to and including the first one that `isLast` names. */
  #positionsUp(from: number, isLast: (at: number) => boolean): number[] {
    const positions: number[] = []
    for (let at = from; at >= 0; at = this.#index.parentAt(at)) {
      positions.push(at)
      if (isLast(at)) break
    }
    return positions
  }

  /** Positions of a path need not ascend in a file whose lines were moved; reading wants them to. */
  async #inPathOrder(path: readonly number[]): Promise<Entry[]> {
    const isAscending = path.every((at, i) => i === 0 || at > (path[i - 1] ?? 0))
    if (isAscending) return this.read(path)
    const entries = await this.read([...path].sort((a, b) => a - b))
    const byId = new Map(entries.map((entry) => [entry.id, entry]))
    return path.flatMap((at) => byId.get(this.#index.idAt(at)) ?? [])
  }

  #endOfRun(positions: readonly number[], from: number): number {
    const index = this.#index
    const start = index.offsetAt(positions[from] ?? 0)
    let to = from + 1
    for (; to < positions.length; to++) {
      const at = positions[to] ?? 0
      const before = positions[to - 1] ?? 0
      const gap = index.offsetAt(at) - index.offsetAt(before) - index.lengthAt(before)
      if (gap > GAP_BYTES || index.offsetAt(at) + index.lengthAt(at) - start > READ_BYTES) break
    }
    return to
  }

  #toEntry(at: number, line: Buffer, raw: unknown): Entry | undefined {
    const index = this.#index
    if (!isRecord(raw)) {
      if (!index.isDead(at)) index.kill(at, { kind: 'corrupt', line: index.lineAt(at), bytes: line.length })
      return undefined
    }
    // The scan trusted the head of this line; now its body can be judged.
    if (!isUtf8(line)) index.noteOnce({ kind: 'not-utf8', line: index.lineAt(at), bytes: line.length })
    if (isMisshapen(raw)) index.noteOnce({ kind: 'wrong-shape', line: index.lineAt(at), bytes: line.length })
    return toEntry(migrateRaw(raw, this.#version, index), index.idAt(at), index.parentIdAt(at))
  }
}

function lastOf<T>(entries: readonly Entry[], pick: (entry: Entry) => T | undefined): T | undefined {
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]
    const picked = entry && pick(entry)
    if (picked !== undefined) return picked
  }
  return undefined
}
