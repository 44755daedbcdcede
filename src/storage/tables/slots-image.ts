import { crc32 } from 'node:zlib'
import { writeAtomically, type AtomicWriteDeps } from '../../base/atomic-write.ts'
import { openIfThere, type FileHandle, type Files } from '../../base/files.ts'
import { linkRows } from './chains.ts'
import { picked, type Column } from './column.ts'
import type { HashSeed } from './keyed-hash.ts'
import type { Slots } from './slots.ts'
import { steps, type Table } from './table.ts'

/** A column of a part is a quarter of a megabyte: with smaller ones a start makes more reads than it saves memory. */
const SLOTS_AT_ONCE = 65_536
/** Of the file and of each section: four numbers of four bytes, one of eight. */
const HEAD_BYTES = 24
/** In the first format parts have all their columns and no links, and no heads follow. */
const [FORMAT_1, FORMAT_2] = [0x01_63_6c_77, 0x02_63_6c_77] as const
const [TABLE_BEGINS, PART, END_OF_FILE, HEADS] = [1, 2, 3, 4] as const
/** Place, time and length stand before the names. */
const FIRST_NAME = 3
/** Every row has a place and a length. */
const LEAST_BYTES_PER_ROW = 12

/** Tables whose names are hashed with this seed. */
export interface Indexed {
  readonly tables: readonly Table<unknown>[]
  readonly seed: HashSeed
}

/**
 * The index of the rows up to a place of their file, as it is in memory: parts of some thousand slots, column after
 * column, then the heads by which they are found. What does not fit (another format, another processor, another seed,
 * damage) counts as not there.
 */
export async function writeImage(
  deps: AtomicWriteDeps,
  path: string,
  { tables, seed }: Indexed,
  end: number,
  beforeRename: () => void,
): Promise<void> {
  await writeAtomically(
    deps,
    path,
    async (file) => {
      let total = 0
      await file.write(
        head({ kind: FORMAT_2, table: tables.length, rows: 0, checksum: shapeOf(tables, seed), about: end }),
      )
      for (const [table, { slots }] of tables.entries()) {
        const copier = new Copier(slots)
        await file.write(head({ kind: TABLE_BEGINS, table, rows: slots.count, checksum: 0, about: 0 }))
        for (const part of partsOf(slots)) {
          const columns = copier.copy(part)
          const about = bitsOf(columns)
          const used = columns.filter((_, at) => hasBit(about, at))
          await file.write(section({ kind: PART, table, rows: part.length, about }, used))
        }
        for (const [name, heads] of copier.heads.entries())
          await file.write(section({ kind: HEADS, table, rows: heads.length, about: name }, [heads]))
        total += copier.rows
      }
      await file.write(head({ kind: END_OF_FILE, table: 0, rows: total, checksum: 0, about: 0 }))
    },
    { beforeRename },
  )
}

/** Copies rows as columns, a part after the other, linked as if they had the numbers in which they come. */
class Copier {
  readonly #slots: Slots
  readonly heads: readonly Uint32Array<ArrayBuffer>[]
  rows = 0

  constructor(slots: Slots) {
    this.#slots = slots
    this.heads = slots.heads.map((length) => new Uint32Array(length))
  }

  /** The slots may have changed since the last part: each row is copied as it is now. */
  copy(part: readonly number[]): readonly Column[] {
    const { columns, shape } = this.#slots
    const copied = columns.slice(0, -shape.names).map((column) => picked(column, part))
    const links = this.heads.map((heads, name) => {
      const linked = new Uint32Array(part.length)
      linkRows({ hashes: copied[FIRST_NAME + name] as Uint32Array, links: linked, heads, first: this.rows })
      return linked
    })
    this.rows += part.length
    return [...copied, ...links]
  }
}

/** What an image knew. */
interface Loaded {
  /** Up to which place the rows are known. */
  readonly end: number
  /** Of an earlier version: the next one is worth writing. */
  readonly isOld: boolean
}

/**
 * Fills the tables; undefined when nothing was filled: an image of more than the file of rows holds is one of rows that
 * are gone.
 */
export async function loadImage(
  files: Files,
  path: string,
  { tables, seed }: Indexed,
  size: number,
): Promise<Loaded | undefined> {
  const file = await openIfThere(files, path, 'read')
  if (file === undefined) return undefined
  try {
    const first = await readHead(file, 0)
    if (first === undefined) return undefined
    const { kind, about: end } = first
    const isOld = kind === FORMAT_1
    const isKnown = first.table === tables.length && isWhole(first, isOld ? shapeOf(tables) : shapeOf(tables, seed))
    const loader = new Loader({ file, tables, end, isLinked: !isOld })
    if ((isOld || kind === FORMAT_2) && isKnown && end <= size && (await loader.load())) return { end, isOld }
    for (const table of tables) table.clear()
    return undefined
  } finally {
    await file.close()
  }
}

interface LoaderOptions {
  readonly file: FileHandle
  readonly tables: readonly Table<unknown>[]
  readonly end: number
  /** The rows were saved with their links and heads. */
  readonly isLinked: boolean
}

/** What a section holds, and what is done with it when it is whole; false when it does not fit. */
interface Content {
  readonly columns: readonly Column[]
  take(): boolean
}

class Loader {
  readonly #options: LoaderOptions
  readonly #size: number
  readonly #heads: Map<number, Uint32Array<ArrayBuffer>>[]
  #rows = 0

  constructor(options: LoaderOptions) {
    this.#options = options
    this.#size = options.file.stat().size
    this.#heads = options.tables.map(() => new Map())
  }

  /** False when a section is not whole or does not fit. */
  async load(): Promise<boolean> {
    const { file } = this.#options
    for (let position = HEAD_BYTES; ;) {
      const found = await readHead(file, position)
      position += HEAD_BYTES
      if (found?.kind === END_OF_FILE) return isWhole(found, 0) && found.rows === this.#rows && this.#link()
      const content = found === undefined ? undefined : this.#contentOf(found)
      if (found === undefined || content === undefined) return false
      let checksum = 0
      for (const column of content.columns) {
        const bytes = bytesOf(column)
        if ((await readInto(file, bytes, position)) < bytes.length) return false
        checksum = crc32(bytes, checksum)
        position += bytes.length
      }
      if (!isWhole(found, checksum) || !content.take()) return false
    }
  }

  /** A spoilt number must not make a start ask for all the memory there is: no more than the file has is asked for. */
  #contentOf({ kind, table, rows, about }: Head): Content | undefined {
    const slots = this.#options.tables[table]?.slots
    if (slots === undefined) return undefined
    if (kind === TABLE_BEGINS) return { columns: [], take: () => this.#reserve(slots, rows) }
    if (kind === PART) return this.#partOf(slots, rows, about)
    return kind === HEADS && 4 * rows <= this.#size ? this.#headsOf(table, rows, about) : undefined
  }

  #reserve(slots: Slots, rows: number): boolean {
    if (LEAST_BYTES_PER_ROW * rows > this.#size) return false
    slots.reserve(rows)
    return true
  }

  /** Straight into memory, where a column that was not saved is zero already. */
  #partOf(slots: Slots, rows: number, about: number): Content | undefined {
    const { isLinked, end } = this.#options
    const columns = slots.columns.map((column) => column.subarray(slots.end, slots.end + rows))
    if (columns.some(({ length }) => length < rows)) return undefined
    const take = (): boolean => {
      this.#rows += rows
      return slots.load(rows, end)
    }
    const saved = isLinked ? columns.filter((_, at) => hasBit(about, at)) : columns.slice(0, -slots.shape.names)
    return { columns: saved, take }
  }

  #headsOf(table: number, length: number, name: number): Content {
    const heads = new Uint32Array(length)
    const take = (): boolean => {
      this.#heads[table]?.set(name, heads)
      return true
    }
    return { columns: [heads], take }
  }

  /** When all rows are there: a link is judged by where it leads. */
  #link(): boolean {
    const { tables, isLinked } = this.#options
    if (!isLinked) for (const { slots } of tables) slots.relink()
    return !isLinked || tables.every(({ slots }, table) => this.#linkBy(slots, this.#heads[table]))
  }

  #linkBy(slots: Slots, heads: ReadonlyMap<number, Uint32Array<ArrayBuffer>> | undefined): boolean {
    for (let name = 0; name < slots.shape.names; name++) {
      const found = heads?.get(name)
      if (found === undefined || !slots.loadHeads(name, found)) return false
    }
    return true
  }
}

/** Slots of rows on disk, in their order; the caller pauses between parts, and rows move meanwhile: none is left out. */
function* partsOf(slots: Slots): Iterable<readonly number[]> {
  const saved = new Uint8Array(slots.end)
  const isNew = (slot: number): boolean => {
    if (slot >= saved.length || saved[slot] === 1 || slots.placeOf(slot) === undefined) return false
    saved[slot] = 1
    return true
  }
  const walk = slots.walk('newer')
  try {
    for (let part = steps(walk, SLOTS_AT_ONCE); part.length > 0; part = steps(walk, SLOTS_AT_ONCE)) {
      const found = part.filter(isNew)
      if (found.length > 0) yield found
    }
  } finally {
    walk.end()
  }
  // A row that came late stands behind the walk.
  let late: number[] = []
  for (let slot = 0; slot < saved.length; slot++) {
    if (isNew(slot)) late.push(slot)
    if (late.length < SLOTS_AT_ONCE) continue
    yield late
    late = []
  }
  if (late.length > 0) yield late
}

/** A bit for each column that holds more than zeros. */
function bitsOf(columns: readonly Column[]): number {
  return columns.reduce((bits, column, at) => (column.every((value) => value === 0) ? bits : bits + 2 ** at), 0)
}

function hasBit(bits: number, at: number): boolean {
  return Math.floor(bits / 2 ** at) % 2 === 1
}

function bytesOf(column: Column): Uint8Array {
  return new Uint8Array(column.buffer, column.byteOffset, column.byteLength)
}

/** Returns how many bytes there were. */
async function readInto(file: FileHandle, target: Uint8Array, position: number): Promise<number> {
  if (file.readInto !== undefined) return file.readInto(target, position)
  const read = await file.read(position, target.length)
  target.set(read)
  return read.length
}

interface Head {
  readonly kind: number
  readonly table: number
  readonly rows: number
  /** Of what follows; in the file, of the head itself too. */
  readonly checksum: number
  /** Of the file, how far it knows the rows; of a part, which columns it has; of heads, of which name they are. */
  readonly about: number
}

/** In the processor's own order, like the columns: an image from another kind of processor does not fit. */
function head({ kind, table, rows, checksum, about }: Head): Uint8Array {
  const bytes = new ArrayBuffer(HEAD_BYTES)
  const words = new Uint32Array(bytes, 0, 4)
  words.set([kind, table, rows, 0])
  new Float64Array(bytes, 16, 1).set([about])
  words[3] = crc32(new Uint8Array(bytes), checksum)
  return new Uint8Array(bytes)
}

function section(about: Omit<Head, 'checksum'>, columns: readonly Column[]): Uint8Array {
  const body = columns.map(bytesOf)
  const checksum = body.reduce((sum, bytes) => crc32(bytes, sum), 0)
  return Buffer.concat([head({ ...about, checksum }), ...body])
}

function isWhole(found: Head, checksum: number): boolean {
  return new Uint32Array(head({ ...found, checksum }).buffer, 0, 4)[3] === found.checksum
}

async function readHead(file: FileHandle, position: number): Promise<Head | undefined> {
  // Numbers of eight bytes cannot begin anywhere.
  const { buffer, length } = Uint8Array.from(await file.read(position, HEAD_BYTES))
  if (length < HEAD_BYTES) return undefined
  const [kind = 0, table = 0, rows = 0, checksum = 0] = new Uint32Array(buffer, 0, 4)
  const [about = 0] = new Float64Array(buffer, 16, 1)
  return { kind, table, rows, checksum, about }
}

function shapeOf(tables: readonly Table<unknown>[], seed: HashSeed | [] = []): number {
  return crc32(JSON.stringify(tables.map(({ slots: { shape } }) => [shape.names, shape.tags, ...seed])))
}
