import type { FileHandle } from '../base/files.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { EMPTY_PATH, type ActivePath } from './context.ts'
import { EntryIndex } from './entry-index.ts'
import { kindOf } from './line.ts'
import { loadByScan } from './load.ts'
import type { EncodedEntry } from './log.ts'
import { TreeReader } from './tree-reader.ts'

const ENTRIES_AT_ONCE = 256

/** The file as its tree has to know it. */
export interface TreeSource {
  readonly maxLineBytes: number
  /** With everything in it that was written so far; undefined when there is none. */
  open(): Promise<FileHandle | undefined>
  /** Where our own last write ended. */
  size(): number
  header(): SessionHeader
}

/**
 * Where the entries of one file stand, and every way to read them that needs to know it. A file that was opened from its
 * end is read at the first question about it.
 */
export class FileTree {
  readonly #source: TreeSource
  /** Undefined while only the tail is known. */
  #index: EntryIndex | undefined
  /** The entry we added to the index last. */
  #lastId: EntryId | undefined

  constructor(source: TreeSource) {
    this.#source = source
  }

  get heldBytes(): number {
    return this.#index?.heldBytes ?? 0
  }

  get idDigits(): number {
    return this.#index === undefined ? 16 : 8
  }

  isIdFree(id: EntryId): boolean {
    return this.#index === undefined || this.#index.ids.get(id) < 0
  }

  /** The file was read anew. */
  adopt(index: EntryIndex | undefined): void {
    this.#index = index
    this.#lastId = undefined
  }

  /** What was written stands elsewhere than it was said to. */
  forget(): void {
    this.#index = undefined
  }

  /** These lines were written behind the prefix, which begins at `start`. */
  add(batch: readonly EncodedEntry[], prefix: string, start: number): void {
    const index = this.#index
    if (index === undefined) return
    let offset = start + Buffer.byteLength(prefix)
    for (const { entry, line } of batch) {
      const { type, id, parentId } = entry
      const kind = kindOf(type)
      const length = Buffer.byteLength(line) - 1
      const last = index.count - 1
      if (last >= 0 && parentId === this.#lastId) index.addToLast(offset, length, kind, id)
      else
        index.add({
          offset,
          length,
          line: last < 0 ? (prefix === '' ? 1 : 2) : index.lineAt(last) + 1,
          kind,
          id,
          parentId,
        })
      this.#lastId = id
      offset += length + 1
    }
  }

  activeAt(leafId: EntryId): Promise<ActivePath> {
    return this.#read(EMPTY_PATH, (reader, index) => reader.activeAt(index.find(leafId)))
  }

  path(from: EntryId): Promise<readonly Entry[] | undefined> {
    return this.#read(undefined, async (reader, index) => {
      const at = index.find(from)
      return at < 0 ? undefined : reader.path(at)
    })
  }

  find(id: EntryId): Promise<Entry | undefined> {
    return this.#read(undefined, async (reader, index) => {
      const at = index.find(id)
      return at < 0 ? undefined : reader.readOne(at)
    })
  }

  async *all(): AsyncIterable<Entry> {
    const handle = await this.#source.open()
    if (handle === undefined) return
    try {
      const index = await this.#wholeIndex(handle)
      const reader = new TreeReader(handle, index, this.#source.header().version)
      for (let from = 0; from < index.count; from += ENTRIES_AT_ONCE) {
        const count = Math.min(ENTRIES_AT_ONCE, index.count - from)
        const positions = Array.from({ length: count }, (_, i) => from + i)
        yield* await reader.read(positions.filter((at) => !index.isDead(at)))
      }
    } finally {
      await handle.close()
    }
  }

  async #read<T>(missing: T, read: (reader: TreeReader, index: EntryIndex) => Promise<T>): Promise<T> {
    const handle = await this.#source.open()
    if (handle === undefined) return missing
    try {
      const index = await this.#wholeIndex(handle)
      return await read(new TreeReader(handle, index, this.#source.header().version), index)
    } finally {
      await handle.close()
    }
  }

  async #wholeIndex(handle: FileHandle): Promise<EntryIndex> {
    // Others may have written since: then what we know of places in the file is wrong until the next look.
    const matchesLastStat = handle.stat().size === this.#source.size()
    if (this.#index !== undefined && matchesLastStat) return this.#index
    const { maxLineBytes } = this.#source
    const { scan } = await loadByScan({ handle, maxLineBytes, fallbackHeader: this.#source.header() })
    const index = scan?.index ?? new EntryIndex()
    if (matchesLastStat) this.adopt(index)
    return index
  }
}
