import type { FileHandle } from '../base/files.ts'
import { LEAF_POINTER, type SessionHeader } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import type { EntryIndex } from './entry-index.ts'
import { FORMAT_VERSION } from './line.ts'
import type { LogState } from './log.ts'
import { scanFile, type Scan } from './scan.ts'
import type { RepairNote } from './store.ts'
import { TreeReader } from './tree-reader.ts'

/** A file as it was read, and what has to happen before anything is appended to it. */
export interface Loaded {
  readonly state: LogState
  readonly size: number
  /** Undefined when only the tail was read. */
  readonly scan: Scan | undefined
  readonly isSound: boolean
  /** Bytes of a torn last line. */
  readonly tornBytes: number
  readonly endsWithNewline: boolean
}

export interface LoadOptions {
  readonly handle: FileHandle
  readonly maxLineBytes: number
  /** Stands in for a header that is lost. */
  readonly fallbackHeader: SessionHeader
  /** Parse every line, not only those of the active path. */
  readonly verify?: boolean
}

/** Reads the whole file's structure; bodies only of the active path. */
export async function loadByScan(options: LoadOptions): Promise<Loaded> {
  const { handle, maxLineBytes, fallbackHeader, verify = false } = options
  const scan = await scanFile(handle, { maxLineBytes, verify })
  const header = scan.header ?? fallbackHeader
  const { index } = scan
  const reader = new TreeReader(handle, index, header.version)
  const leaf = await findLeaf(reader, index)
  const active = await reader.activeAt(leaf === null ? -1 : index.find(leaf))
  const repairs = notesOf(scan, header)
  return {
    state: { header, leafId: leaf, active, repairs },
    size: scan.size,
    scan,
    isSound: header.version >= FORMAT_VERSION && repairs.every(isHarmless),
    tornBytes: scan.tornBytes,
    endsWithNewline: scan.endsWithNewline,
  }
}

/** The last entry of the file, or the one it points to. */
async function findLeaf(reader: TreeReader, index: EntryIndex): Promise<EntryId | null> {
  for (let at = index.last(); at >= 0; at = index.last()) {
    const entry = await reader.readOne(at)
    if (entry === undefined) continue
    const pointed = pointedLeaf(entry)
    if (pointed === undefined) return entry.id
    return pointed === null || index.find(pointed) >= 0 ? pointed : entry.parentId
  }
  return null
}

/** Undefined for an entry that is no leaf pointer. */
export function pointedLeaf(entry: {
  readonly type: string
  readonly customType?: unknown
  readonly data?: unknown
}): EntryId | null | undefined {
  if (entry.type !== 'custom' || entry.customType !== LEAF_POINTER) return undefined
  const { leafId } = (entry.data ?? {}) as { readonly leafId?: unknown }
  return typeof leafId === 'string' ? (leafId as EntryId) : leafId === null ? null : undefined
}

/** Worst first. Format 1 knows no parents: linking its lines is no repair. */
export function notesOf(scan: Scan, header: SessionHeader): readonly RepairNote[] {
  const notes = scan.index.notes.filter((note) => header.version >= 2 || note.kind !== 'relinked')
  if (scan.header === undefined && scan.size > 0) notes.unshift({ kind: 'header', line: 1, bytes: 0 })
  return [...notes].sort((a, b) => SEVERITY.indexOf(a.kind) - SEVERITY.indexOf(b.kind))
}

/** Nothing a rewrite would make better. */
function isHarmless(note: RepairNote): boolean {
  return note.kind === 'torn-tail' || note.kind === 'too-long' || note.kind === 'odd-fields'
}

const SEVERITY: readonly RepairNote['kind'][] = [
  'header',
  'corrupt',
  'not-utf8',
  'wrong-shape',
  'too-long',
  'cycle',
  'duplicate-id',
  'relinked',
  'copy',
  'odd-fields',
  'torn-tail',
]
