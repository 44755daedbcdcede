import { removeUnfinished, writeAtomically } from '../../base/atomic-write.ts'
import { errnoOf, makeDurableDirectory, openIfThere, type FileHandle, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { inParts } from '../../base/in-parts.ts'
import type { JournalTopic } from '../../base/journal.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { Mailbox } from '../../base/async.ts'
import { seedOf, type HashSeed } from './keyed-hash.ts'
import { loadImage, writeImage, type Indexed } from './slots-image.ts'
import { decodeLine, encodeLines, headOf, isWhole, jsonIn, type Line } from './table-line.ts'
import { Table, type Row, type TableForm, type TableNumber, type Tables } from './table.ts'

export interface TableFileOptions {
  readonly files: Files
  readonly ids: Ids
  readonly log: Log
  readonly directory: string
  /** Says why this process may no longer write here. */
  readonly fence?: () => Error | undefined
  /** Changed rows in memory; with more they are written without waiting for the journal. */
  readonly unwrittenRows?: number
  /** Lines that a start reads one by one after a foreseen stop. */
  readonly readLines?: number
  /** Bytes of rows that are no longer the newest before the file is written anew; at least as many as are. */
  readonly wasteBytes?: number
}

/** What was found missing when the file was opened. */
export interface TableLosses {
  /** The file, or its end, is gone. */
  readonly isCut: boolean
  readonly damagedRows: number
}

/** Which file it is, and how long. */
interface FileState {
  readonly generation: number
  readonly end: number
}

const TOPIC = 'rows'
const BLOCK_BYTES = 1024 * 1024
const NEWLINE = 10
const LINES_AT_ONCE = 512
/** After a crash a start reads more lines, the more there are: saving the index costs as much as there are rows. */
const ROWS_PER_READ_LINE = 16
const NAME = /^(?<generation>[1-9]\d{0,14})\.(?<kind>rows|slots)$/u

/**
 * Rows of several tables that were not changed lately, in one file that is only appended to: the newest line of a row
 * counts. The journal makes changes durable; the changed rows follow here before the journal forgets them, so that
 * memory, the journal's snapshots and the time of a start do not grow with what is known. Any line that is whole is a
 * fact, wherever a crash left it. An image of the index saves a start from reading the lines.
 */
export class TableFile implements JournalTopic<FileState>, Tables {
  readonly name = TOPIC
  readonly #options: Required<TableFileOptions>
  readonly #tables: Table<unknown>[] = []
  /** Writes of every kind, one after the other. */
  readonly #writes = new Mailbox()
  #generation = 0
  #seed: HashSeed | undefined
  #reader: FileHandle | undefined
  #writer: FileHandle | undefined
  /** Lines up to here are counted in the tables. */
  #end = 0
  /** What may stand behind them is of a write that failed or of a crash: it is cut off before the next one. */
  #isTorn = false
  /** Lines that the image of the index does not have. */
  #linesBehindImage = 0
  /** Places of lines that could not be read, found on opening. */
  #damaged: number[] = []
  /** What the journal knows to have been here. */
  #expected: FileState | undefined
  #isStarted = false
  #flushing: Promise<void> | undefined
  readonly #reads = new Set<Promise<unknown>>()
  #scans = 0
  #compacting: Promise<void> | undefined
  #hasToldDamage = false

  constructor(options: TableFileOptions) {
    this.#options = {
      fence: () => undefined,
      unwrittenRows: 8_192,
      readLines: 4_096,
      wasteBytes: 4 * 1024 * 1024,
      ...options,
    }
  }

  /** Before `open`. */
  table<V>(number: TableNumber, form: TableForm<V>): Table<V> {
    const table = new Table<V>(form, {
      seed: () => this.#requireSeed(),
      changed: () => this.#onChanged(),
      read: (place, length) => this.#read(place, length),
      readNow: (place, length) => this.#readNow(place, length),
      scan: (visit, atEnd, pause) => this.#scanLive(number, { visit, atEnd, pause }),
    })
    this.#tables[number] = table
    return table
  }

  /** Changes nothing on disk. */
  async open(): Promise<void> {
    const { files, ids, log, directory } = this.#options
    const generations = (await this.#names()).flatMap(({ kind, generation }) => (kind === 'rows' ? [generation] : []))
    this.#generation = Math.max(0, ...generations)
    this.#reader = this.#generation === 0 ? undefined : await openIfThere(files, this.#path('rows'), 'read')
    const header = this.#reader === undefined ? undefined : await readHeader(this.#reader)
    this.#seed = seedOf(header?.seed ?? ids.hex(16))
    if (this.#reader === undefined) return
    if (header === undefined) {
      log.error('the file of session and usage rows cannot be read from its beginning; what it held is lost', {
        directory,
      })
      await this.#reader.close()
      this.#reader = undefined
      return
    }
    const { size } = this.#reader.stat()
    const image = await loadImage(files, this.#path('slots'), this.#indexed, size)
    this.#end = image?.end ?? header.bytes
    if (image?.isOld === true) this.#linesBehindImage = Number.POSITIVE_INFINITY
    await this.#readTail()
  }

  /** After recovery: from here on this process writes. */
  async start(): Promise<TableLosses> {
    const { files, log, directory } = this.#options
    const expected = this.#expected
    const isCut =
      expected !== undefined &&
      (this.#generation < expected.generation || (this.#generation === expected.generation && this.#end < expected.end))
    const damagedRows =
      expected?.generation === this.#generation ? this.#damaged.filter((place) => place < expected.end).length : 0
    if (isCut) log.error('rows that the journal no longer holds are gone; a backup may have them', { directory })
    this.#logDamage(damagedRows)
    for (const { name, generation } of await this.#names())
      if (generation !== this.#generation) await files.remove(`${directory}/${name}`)
    await removeUnfinished(files, { directory })
    this.#isStarted = true
    this.#onChanged()
    return { isCut, damagedRows }
  }

  read(data: unknown): FileState | undefined {
    if (!isRecord(data) || typeof data['generation'] !== 'number' || typeof data['end'] !== 'number') return undefined
    return { generation: data['generation'], end: data['end'] }
  }

  apply(state: FileState): void {
    this.#expected = state
  }

  *snapshot(): Iterable<FileState> {
    if (this.#generation > 0) yield { generation: this.#generation, end: this.#end }
  }

  settle(): Promise<void> {
    return this.#writes.run(async () => {
      await this.#write()
      const rows = this.#tables.reduce((sum, table) => sum + table.size, 0)
      if (this.#linesBehindImage > Math.max(this.#options.readLines, rows / ROWS_PER_READ_LINE)) await this.#saveImage()
    })
  }

  async close(): Promise<void> {
    if (this.#isStarted && this.#linesBehindImage > this.#options.readLines)
      await this.#writes.run(() => this.#saveImage())
    await this.#writes.idle()
    await Promise.allSettled(this.#reads)
    await this.#reader?.close()
    await this.#writer?.close()
    this.#reader = undefined
    this.#writer = undefined
  }

  #onChanged(): void {
    if (!this.#isStarted || this.#flushing !== undefined) return
    const unwritten = this.#tables.reduce((sum, table) => sum + table.unwritten, 0)
    if (unwritten <= this.#options.unwrittenRows) return
    this.#flushing = this.#writes
      .run(() => this.#write())
      .catch((error: unknown) =>
        this.#options.log.error('changed rows could not be written; the journal still has them', {
          errno: errnoOf(error),
        }),
      )
      .finally(() => (this.#flushing = undefined))
  }

  async #write(): Promise<void> {
    await this.#append()
    const { wasteBytes } = this.#options
    const placed = this.#tables.reduce((sum, { slots }) => sum + slots.placedBytes, 0)
    if (this.#end - placed > placed + wasteBytes && this.#scans === 0) {
      this.#compacting = this.#compact().finally(() => (this.#compacting = undefined))
      await this.#compacting
    }
  }

  async #append(): Promise<void> {
    const taken = this.#tables.map((table) => table.takeUnwritten())
    if (taken.every(({ rows, gone }) => rows.length === 0 && gone.length === 0)) return
    try {
      this.#requireOwnership()
      const writer = await this.#openWriter()
      const placed = this.#tables.map(() => new Map<number, { place: number; length: number }>())
      if (this.#isTorn) await writer.truncate(this.#end)
      this.#isTorn = true
      let end = this.#end
      let lines = 0
      for (const part of inParts(this.#linesOf(taken), LINES_AT_ONCE)) {
        const { bytes, lengths } = encodeLines(part.map(({ line }) => line))
        await writer.write(bytes, end)
        for (const [at, { line, slot }] of part.entries()) {
          const length = lengths[at] ?? 0
          if (slot !== undefined) placed[line.table]?.set(slot, { place: end, length })
          end += length
        }
        lines += part.length
      }
      await writer.sync()
      this.#requireOwnership()
      this.#isTorn = false
      this.#end = end
      this.#linesBehindImage += lines
      for (const [number, table] of this.#tables.entries()) table.written(placed[number] ?? new Map())
    } catch (error) {
      for (const table of this.#tables) table.failed()
      throw error
    }
  }

  *#linesOf(taken: readonly ReturnType<Table<unknown>['takeUnwritten']>[]): Iterable<{ line: Line; slot?: number }> {
    for (const [table, { rows, gone }] of taken.entries()) {
      const hashOf = (key: string): number => this.#tables[table]?.nameHashOf(key) ?? 0
      for (const key of gone) yield { line: { table, hash: hashOf(key), key, value: undefined } }
      for (const [slot, { key, value }] of rows) yield { line: { table, hash: hashOf(key), key, value }, slot }
    }
  }

  async #openWriter(): Promise<FileHandle> {
    if (this.#writer !== undefined) return this.#writer
    const { files, directory } = this.#options
    if (this.#reader === undefined) {
      await makeDurableDirectory(files, directory)
      // One whose beginning is gone stays where it is until the next start.
      this.#generation++
      this.#end = await this.#writeNew(async () => undefined)
      this.#reader = await files.open(this.#path('rows'), 'read')
    }
    this.#writer = await files.open(this.#path('rows'), 'update')
    return this.#writer
  }

  /** Returns how long the file is. */
  async #writeNew(content: (file: FileHandle, from: number) => Promise<unknown>): Promise<number> {
    const [a, b] = this.#requireSeed()
    const seed = [a, b].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('')
    const header = Buffer.from(`${JSON.stringify({ file: 'clew rows', version: 1, seed })}\n`)
    let size = 0
    await writeAtomically(
      this.#options,
      this.#path('rows'),
      async (file) => {
        await file.write(header)
        await content(file, header.length)
        size = file.stat().size
      },
      { beforeRename: () => this.#requireOwnership() },
    )
    return size
  }

  /** Only the newest line of each row, in a file of the next generation. */
  async #compact(): Promise<void> {
    const { files } = this.#options
    const moved = this.#tables.map(({ slots }) => new Float64Array(slots.end))
    const before = this.#generation
    const old = [this.#reader, this.#writer]
    this.#generation++
    try {
      const end = await this.#writeNew((file, from) => this.#copyLive(file, from, moved))
      const reader = await files.open(this.#path('rows'), 'read')
      const writer = await files.open(this.#path('rows'), 'update')
      // Without a pause: places and file belong together.
      this.#reader = reader
      this.#writer = writer
      this.#end = end
    } catch (error) {
      this.#generation = before
      throw error
    }
    this.#isTorn = false
    this.#linesBehindImage = Number.POSITIVE_INFINITY
    const lost = this.#tables.map((table, number) => table.moved(moved[number] ?? new Float64Array(0)))
    this.#logDamage(lost.reduce((sum, rows) => sum + rows, 0))
    await Promise.allSettled(this.#reads)
    for (const handle of old) await handle?.close()
    for (const kind of ['rows', 'slots'] as const) await files.remove(this.#path(kind, before))
  }

  async #copyLive(file: FileHandle, from: number, moved: readonly Float64Array[]): Promise<void> {
    let target = from
    let kept: Buffer[] = []
    await this.#scan(0, this.#end, {
      line: (bytes, start, newline, place) => {
        const [table = 0, slot] = this.#liveAt(bytes, start, newline, place) ?? []
        const column = moved[table]
        if (slot === undefined || column === undefined || !isWhole(bytes, start, newline)) return
        column[slot] = target
        kept.push(bytes.subarray(start, newline + 1))
        target += newline + 1 - start
      },
      block: async () => {
        if (kept.length > 0) await file.write(Buffer.concat(kept))
        kept = []
      },
    })
  }

  async #saveImage(): Promise<void> {
    const { files, ids, log } = this.#options
    try {
      await writeImage({ files, ids }, this.#path('slots'), this.#indexed, this.#end, () => this.#requireOwnership())
      this.#linesBehindImage = 0
    } catch (error) {
      log.warn('the index of session and usage rows could not be saved; the next start takes longer', {
        errno: errnoOf(error),
      })
    }
  }

  async #readTail(): Promise<void> {
    let end = this.#end
    await this.#scan(this.#end, Number.POSITIVE_INFINITY, {
      line: (bytes, start, newline, place) => {
        end = place + newline + 1 - start
        const line = decodeLine(bytes, start, newline)
        const table = line === undefined ? undefined : this.#tables[line.table]
        if (line === undefined || table === undefined) {
          this.#damaged.push(place)
          return
        }
        this.#linesBehindImage++
        if (line.value === undefined) table.lost(line.key)
        else table.found(line.key, line.value, place, newline + 1 - start)
      },
    })
    this.#isTorn = (this.#reader?.stat().size ?? 0) > end
    this.#end = end
  }

  /** Every line in a part of the file, whole or not. */
  async #scan(from: number, to: number, { line, block }: LineVisitor): Promise<void> {
    const reader = this.#reader
    if (reader === undefined) return
    let rest: Buffer = Buffer.alloc(0)
    let position = from
    while (position < to) {
      const read = await this.#reading(reader.read(position, Math.min(BLOCK_BYTES, to - position)))
      if (read.length === 0) break
      const bytes =
        rest.length === 0 ? Buffer.from(read.buffer, read.byteOffset, read.length) : Buffer.concat([rest, read])
      const offset = position - rest.length
      position += read.length
      let start = 0
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
        line(bytes, start, end, offset + start)
        start = end + 1
      }
      rest = bytes.subarray(start)
      await block?.()
    }
  }

  /** The newest lines of a table's rows; `atEnd` is called when all that is left is in memory. */
  async #scanLive(number: number, { visit, atEnd, pause }: RowVisitor): Promise<void> {
    await this.#compacting
    this.#scans++
    try {
      for (let from = 0; from < this.#end;) {
        const to = this.#end
        await this.#scan(from, to, {
          line: (bytes, start, newline, place) => {
            const live = this.#liveAt(bytes, start, newline, place)
            if (live?.[0] === number && isWhole(bytes, start, newline)) visit(live[1], jsonIn(bytes, start, newline))
          },
          ...(pause === undefined ? {} : { block: pause }),
        })
        from = to
      }
      atEnd()
    } finally {
      this.#scans--
    }
  }

  #liveAt(
    bytes: Buffer,
    start: number,
    newline: number,
    place: number,
  ): readonly [table: number, slot: number] | undefined {
    const head = headOf(bytes, start, newline)
    const slot = head === undefined ? undefined : this.#tables[head.table]?.slots.atPlace(head.hash, place)
    return head === undefined || slot === undefined ? undefined : [head.table, slot]
  }

  async #read(place: number, length: number): Promise<Row<unknown> | undefined> {
    const reader = this.#reader
    return reader === undefined ? undefined : this.#rowIn(await this.#reading(reader.read(place, length)))
  }

  #readNow(place: number, length: number): Row<unknown> | undefined {
    return this.#reader === undefined ? undefined : this.#rowIn(this.#reader.readNow(place, length))
  }

  async #reading<T>(read: Promise<T>): Promise<T> {
    this.#reads.add(read)
    try {
      return await read
    } finally {
      this.#reads.delete(read)
    }
  }

  #rowIn(read: Uint8Array): Row<unknown> | undefined {
    const bytes = Buffer.from(read.buffer, read.byteOffset, read.length)
    const line = decodeLine(bytes, 0, bytes.length - 1)
    if (line?.value !== undefined) return { key: line.key, value: line.value }
    if (!this.#hasToldDamage) this.#logDamage(1)
    this.#hasToldDamage = true
    return undefined
  }

  #logDamage(rows: number): void {
    if (rows > 0) this.#options.log.error('session or usage rows are damaged; what they held is lost', { rows })
  }

  async #names(): Promise<readonly { name: string; kind: string | undefined; generation: number }[]> {
    const { files, directory } = this.#options
    return (await files.list(directory)).flatMap((name) => {
      const found = NAME.exec(name)?.groups
      return found === undefined ? [] : [{ name, kind: found['kind'], generation: Number(found['generation']) }]
    })
  }

  #path(kind: 'rows' | 'slots', generation = this.#generation): string {
    return `${this.#options.directory}/${generation}.${kind}`
  }

  get #indexed(): Indexed {
    return { tables: this.#tables, seed: this.#requireSeed() }
  }

  #requireSeed(): HashSeed {
    if (this.#seed === undefined) throw new Error('the file of rows is not open')
    return this.#seed
  }

  #requireOwnership(): void {
    const lost = this.#options.fence()
    if (lost !== undefined) throw lost
  }
}

interface RowVisitor {
  visit(slot: number, text: string): void
  atEnd(): void
  readonly pause: (() => Promise<void>) | undefined
}

interface LineVisitor {
  line(bytes: Buffer, start: number, newline: number, place: number): void
  block?(): Promise<void>
}

async function readHeader(file: FileHandle): Promise<{ readonly seed: string; readonly bytes: number } | undefined> {
  const bytes = Buffer.from(await file.read(0, 1024))
  const end = bytes.indexOf(NEWLINE)
  const header = end < 0 ? undefined : parseJson(bytes.toString('utf8', 0, end))
  const seed = isRecord(header) && header['version'] === 1 ? header['seed'] : undefined
  return typeof seed === 'string' && /^[0-9a-f]{16}$/u.test(seed) ? { seed, bytes: end + 1 } : undefined
}
