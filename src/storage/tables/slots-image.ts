import { crc32 } from 'node:zlib'
import { writeAtomically, type AtomicWriteDeps } from '../../base/atomic-write.ts'
import { openIfThere, type FileHandle, type Files } from '../../base/files.ts'
import type { SavedSlots, Shape, Slots } from './slots.ts'
import { steps, type Table } from './table.ts'

const SLOTS_AT_ONCE = 8_192
/** Of the file and of each part: four numbers of four bytes, one of eight. */
const HEAD_BYTES = 24
const [FORMAT, TABLE_BEGINS, PART, END_OF_FILE] = [0x01_63_6c_77, 1, 2, 3] as const

/**
 * The index of the rows up to a place of their file, as it is in memory: parts of some thousand slots, column after
 * column. What does not fit (another format, another processor, damage) counts as not there.
 */
export async function writeImage(
  deps: AtomicWriteDeps,
  path: string,
  tables: readonly Table<unknown>[],
  end: number,
  beforeRename: () => void,
): Promise<void> {
  await writeAtomically(
    deps,
    path,
    async (file) => {
      let total = 0
      await file.write(head({ kind: FORMAT, table: tables.length, rows: 0, checksum: shapeOf(tables), end }))
      for (const [table, { slots }] of tables.entries()) {
        await file.write(head({ kind: TABLE_BEGINS, table, rows: slots.count, checksum: 0, end }))
        for (const part of partsOf(slots)) {
          const body = Buffer.concat(columnsOf(slots.saved(part)).map(bytesOf))
          await file.write(head({ kind: PART, table, rows: part.length, checksum: crc32(body), end }))
          await file.write(body)
          total += part.length
        }
      }
      await file.write(head({ kind: END_OF_FILE, table: 0, rows: total, checksum: 0, end }))
    },
    { beforeRename },
  )
}

/**
 * Fills the tables; returns up to which place the rows are known, undefined when nothing was filled: an image of more
 * than the file of rows holds is one of rows that are gone.
 */
export async function loadImage(
  files: Files,
  path: string,
  tables: readonly Table<unknown>[],
  size: number,
): Promise<number | undefined> {
  const file = await openIfThere(files, path, 'read')
  if (file === undefined) return undefined
  try {
    const first = await readHead(file, 0)
    const fits = first?.kind === FORMAT && first.table === tables.length && isWhole(first, shapeOf(tables))
    if (fits && first.end <= size && (await fill(file, tables))) return first.end
    for (const table of tables) table.clear()
    return undefined
  } finally {
    await file.close()
  }
}

/** False when a part is not whole. */
async function fill(file: FileHandle, tables: readonly Table<unknown>[]): Promise<boolean> {
  let total = 0
  for (let position = HEAD_BYTES; ;) {
    const part = await readHead(file, position)
    position += HEAD_BYTES
    if (part?.kind === END_OF_FILE) return isWhole(part, 0) && part.rows === total
    const slots = part === undefined ? undefined : tables[part.table]?.slots
    if (part === undefined || slots === undefined) return false
    if (part.kind === TABLE_BEGINS) {
      if (!isWhole(part, 0)) return false
      slots.prepare(part.rows)
    } else {
      // A spoilt number of rows must not make a start ask for all the memory there is.
      if (part.rows > SLOTS_AT_ONCE) return false
      const body = aligned(await file.read(position, part.rows * bytesPerSlot(slots.shape)))
      if (part.kind !== PART || !isWhole(part, crc32(body))) return false
      slots.load(savedIn(slots.shape, body, part.rows))
      position += body.length
      total += part.rows
    }
  }
}

/** Slots of rows on disk, in their order; the caller pauses between parts, and rows move meanwhile: none is left out. */
function* partsOf(slots: Slots): Iterable<readonly number[]> {
  const saved = new Uint8Array(slots.end)
  const fresh = (found: readonly number[]): number[] =>
    found.filter((slot) => {
      if (slot >= saved.length || saved[slot] === 1 || slots.placeOf(slot) === undefined) return false
      saved[slot] = 1
      return true
    })
  const walk = slots.walk('newer')
  try {
    for (let part = steps(walk, SLOTS_AT_ONCE); part.length > 0; part = steps(walk, SLOTS_AT_ONCE)) {
      const found = fresh(part)
      if (found.length > 0) yield found
    }
  } finally {
    walk.end()
  }
  // A row that came late stands behind the walk.
  for (let first = 0; first < saved.length; first += SLOTS_AT_ONCE) {
    const found = fresh(Array.from({ length: SLOTS_AT_ONCE }, (_, at) => first + at))
    if (found.length > 0) yield found
  }
}

function columnsOf({ place, at, length, names, tags }: SavedSlots): readonly (Float64Array | Uint32Array)[] {
  return [place, at, length, ...names, ...tags]
}

function savedIn({ names, tags }: Shape, { buffer, byteOffset }: Uint8Array, rows: number): SavedSlots {
  const words = (column: number): Uint32Array =>
    new Uint32Array(buffer, byteOffset + 16 * rows + 4 * rows * column, rows)
  return {
    place: new Float64Array(buffer, byteOffset, rows),
    at: new Float64Array(buffer, byteOffset + 8 * rows, rows),
    length: words(0),
    names: Array.from({ length: names }, (_, name) => words(1 + name)),
    tags: Array.from({ length: tags }, (_, tag) => words(1 + names + tag)),
  }
}

function bytesPerSlot({ names, tags }: Shape): number {
  return 20 + 4 * (names + tags)
}

function bytesOf(column: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(column.buffer, column.byteOffset, column.byteLength)
}

/** Numbers of eight bytes cannot begin anywhere. */
function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset % 8 === 0 ? bytes : Uint8Array.from(bytes)
}

interface Head {
  readonly kind: number
  readonly table: number
  readonly rows: number
  /** Of what follows; in the file, of the head itself too. */
  readonly checksum: number
  readonly end: number
}

/** In the processor's own order, like the columns: an image from another kind of processor does not fit. */
function head({ kind, table, rows, checksum, end }: Head): Uint8Array {
  const bytes = new ArrayBuffer(HEAD_BYTES)
  const words = new Uint32Array(bytes, 0, 4)
  words.set([kind, table, rows, 0])
  new Float64Array(bytes, 16, 1).set([end])
  words[3] = crc32(new Uint8Array(bytes), checksum)
  return new Uint8Array(bytes)
}

function isWhole(found: Head, checksum: number): boolean {
  return new Uint32Array(head({ ...found, checksum }).buffer, 0, 4)[3] === found.checksum
}

async function readHead(file: FileHandle, position: number): Promise<Head | undefined> {
  const read = await file.read(position, HEAD_BYTES)
  if (read.length < HEAD_BYTES) return undefined
  const { buffer, byteOffset } = aligned(read)
  const [kind = 0, table = 0, rows = 0, checksum = 0] = new Uint32Array(buffer, byteOffset, 4)
  const [end = 0] = new Float64Array(buffer, byteOffset + 16, 1)
  return { kind, table, rows, checksum, end }
}

function shapeOf(tables: readonly Table<unknown>[]): number {
  return crc32(JSON.stringify(tables.map(({ slots: { shape } }) => [shape.names, shape.tags])))
}
