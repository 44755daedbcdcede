import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { Files } from '../../../src/base/files.ts'
import { silentLog } from '../../../src/base/log.ts'
import { SessionDirectory } from '../../../src/storage/local/directory.ts'
import { loadImage, writeImage } from '../../../src/storage/tables/slots-image.ts'
import { Table, type RowDisk, type TableForm } from '../../../src/storage/tables/table.ts'
import { TableFile } from '../../../src/storage/tables/table-file.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const PATH = '/1.slots'
const SEED = [1, 2] as const
const LENGTH = 10
/** More than fit into one part of an image. */
const MANY = 80_000

const DISK: RowDisk = {
  seed: () => SEED,
  changed: () => undefined,
  read: async () => undefined,
  readNow: () => undefined,
  scan: async () => undefined,
}

function tableOf(names = 3): Table<unknown> {
  const form: TableForm<unknown> = {
    shape: { names, tags: 2 },
    nameOf: (key) => key,
    namesOf: () => [],
    tagsOf: () => [],
    timeOf: () => 0,
    decode: (value) => value,
  }
  return new Table(form, DISK)
}

/** The key of a row, one of a thousand shared names, none; a tag of three, none. */
function marksOf(row: number, at = Math.floor(row / 2)) {
  return { names: [keyOf(row), row % 5 === 0 ? 0 : (row % 1_000) + 1, 0], tags: [(row % 3) + 1, 0], at }
}

function keyOf(row: number): number {
  return Math.imul(row + 1, 2_654_435_761) >>> 0
}

/** Rows behind one another on the disk, with some gone and some put again. */
function filled(rows: number): Table<unknown> {
  const table = tableOf()
  const { slots } = table
  const slotOf = new Map<number, number>()
  const put = (row: number, at?: number): void => {
    const slot = slots.put(slotOf.get(row), marksOf(row, at))
    slotOf.set(row, slot)
    slots.setPlace(slot, row * LENGTH, LENGTH)
  }
  for (let row = 0; row < rows; row++) put(row)
  for (let row = 0; row < rows; row += 7) {
    slots.remove(slotOf.get(row) ?? 0)
    slotOf.delete(row)
  }
  for (let row = 0; row < rows; row += 14) put(row, row)
  for (let row = 1; row < rows; row += 70) put(row, 3)
  return table
}

function seenIn({ slots }: Table<unknown>, rows: number) {
  const placesOf = (found: readonly number[]): readonly (number | undefined)[] =>
    found.map((slot) => slots.placeOf(slot)?.place).toSorted((a = 0, b = 0) => a - b)
  const walked = (direction: 'newer' | 'older') => {
    const walk = slots.walk(direction)
    const seen: unknown[] = []
    for (let slot = walk.step(); slot !== undefined; slot = walk.step())
      seen.push([slots.placeOf(slot), slots.timeOf(slot)])
    walk.end()
    return seen
  }
  return {
    facts: [slots.count, slots.placedBytes, slots.newestTime],
    newer: walked('newer'),
    older: walked('older'),
    keys: Array.from({ length: rows }, (_, row) => placesOf(slots.withName(0, keyOf(row)))),
    names: Array.from({ length: 1_001 }, (_, name) => placesOf(slots.withName(1, name))),
    tags: [1, 2, 3, 4].map((hash) => placesOf(slots.tagged([[0, hash]], rows))),
  }
}

async function saved(tables: readonly Table<unknown>[], rows: number, files = new MemoryFiles()): Promise<MemoryFiles> {
  await writeImage({ files, ids: new SeededIds() }, PATH, { tables, seed: SEED }, rows * LENGTH, () => undefined)
  return files
}

function load(files: Files, tables: readonly Table<unknown>[], size = Number.POSITIVE_INFINITY) {
  return loadImage(files, PATH, { tables, seed: SEED }, size)
}

async function bytesIn(files: Files): Promise<Buffer> {
  const file = await files.open(PATH, 'read')
  return Buffer.from(await file.read(0, file.stat().size))
}

async function diskWith(bytes: Uint8Array): Promise<MemoryFiles> {
  const files = new MemoryFiles()
  const file = await files.open(PATH, 'create')
  await file.write(bytes)
  return files
}

interface Section {
  kind: number
  table: number
  rows: number
  about: number
  body: Buffer
}

const [BEGINS, PART, END, HEADS] = [1, 2, 3, 4]
const ROWS = 100
/** Of a part: place, time and length, the names that are used, the tag that is used, the links of the names. */
const COLUMNS = ['place', 'time', 'length', 'key', 'name', 'tag', 'keyLink', 'nameLink'] as const
const widthOf = (column: number): number => (column < 2 ? 8 : 4)

function sectionsIn(bytes: Buffer): Section[] {
  const sections: Section[] = []
  for (let at = 0; at < bytes.length;) {
    const [kind, table, rows] = [0, 4, 8].map((offset) => bytes.readUInt32LE(at + offset)) as [number, number, number]
    const width = COLUMNS.reduce((sum, _, column) => sum + widthOf(column), 0)
    const size = kind === PART ? rows * width : kind === HEADS ? rows * 4 : 0
    const body = Buffer.from(bytes.subarray(at + 24, at + 24 + size))
    sections.push({ kind, table, rows, about: bytes.readDoubleLE(at + 16), body })
    at += 24 + size
  }
  return sections
}

/** With checksums that fit, whatever the sections say; that of the file counts the shape in. */
function bytesOf(sections: readonly Section[], original: Buffer): Buffer {
  return Buffer.concat(
    sections.flatMap(({ kind, table, rows, about, body }, at) => {
      if (at === 0) return [original.subarray(0, 24)]
      const head = Buffer.alloc(24)
      for (const [word, value] of [kind, table, rows].entries()) head.writeUInt32LE(value, word * 4)
      head.writeDoubleLE(about, 16)
      head.writeUInt32LE(crc32(head, crc32(body)), 12)
      return [head, body]
    }),
  )
}

/** Where the number of a row stands in the body of its part. */
function placeIn(column: (typeof COLUMNS)[number], row: number, rows: number): number {
  const at = COLUMNS.indexOf(column)
  return COLUMNS.slice(0, at).reduce((sum, _, before) => sum + rows * widthOf(before), 0) + row * widthOf(at)
}

describe('an image of the index of rows', () => {
  it('holds all rows, their order and their names, of several tables', async () => {
    const [many, few, none] = [filled(MANY), filled(10), tableOf()]
    const files = await saved([many, few, none], MANY)
    const loaded = [tableOf(), tableOf(), tableOf()]
    expect(await load(files, loaded)).toEqual({ end: MANY * LENGTH, isOld: false })
    for (const [at, table] of [many, few, none].entries())
      expect(isDeepStrictEqual(seenIn(loaded[at] ?? none, MANY), seenIn(table, MANY)), `table ${at}`).toBe(true)
  })

  it('is the same from a disk that cannot read into memory of the caller', async () => {
    const table = filled(ROWS)
    const files = await saved([table], ROWS)
    const open = files.open.bind(files)
    files.open = async (path, mode) => {
      const { readInto: _, ...handle } = await open(path, mode)
      return handle
    }
    const loaded = tableOf()
    expect(await load(files, [loaded])).toEqual({ end: ROWS * LENGTH, isOld: false })
    expect(seenIn(loaded, ROWS)).toEqual(seenIn(table, ROWS))
  })

  it('lets rows change, leave and come as in the table that it was made of', async () => {
    const table = filled(1_000)
    const loaded = tableOf()
    await load(await saved([table], 1_000), [loaded])
    for (const { slots } of [table, loaded]) {
      const slotOf = (row: number): number | undefined => slots.withName(0, keyOf(row))[0]
      for (let row = 2; row < 1_000; row += 3) {
        const slot = slotOf(row)
        if (slot !== undefined) slots.put(slot, { ...marksOf(row, 600 - row), tags: [4, 0] })
      }
      for (let row = 1; row < 1_000; row += 4) {
        const slot = slotOf(row)
        if (slot !== undefined) slots.remove(slot)
      }
      for (let row = 1_000; row < 1_500; row++) slots.setPlace(slots.put(undefined, marksOf(row)), row * LENGTH, LENGTH)
    }
    expect(seenIn(loaded, 1_500)).toEqual(seenIn(table, 1_500))
    const again = tableOf()
    await load(await saved([loaded], 1_500), [again])
    expect(seenIn(again, 1_500)).toEqual(seenIn(table, 1_500))
  })

  it('is sound although rows change while it is written, and has those that did not', async () => {
    const table = filled(MANY)
    const { slots } = table
    const changed = new Set<number>()
    const files = new MemoryFiles()
    const open = files.open.bind(files)
    files.open = async (path, mode) => {
      const handle = await open(path, mode)
      const write = async (bytes: Uint8Array | string, position?: number): Promise<void> => {
        // When a part is written, its rows are copied already.
        const isPart = bytes.length > MANY
        for (let row = 3; isPart && row < MANY; row += 101) {
          const slot = slots.withName(0, keyOf(row))[0]
          if (slot === undefined) continue
          // Behind what was saved of the order of times, and with the name and place that it had.
          if (row % 3 === 0) {
            slots.put(slot, marksOf(row, 0))
            continue
          }
          changed.add(row)
          if (row % 3 === 1) slots.remove(slot)
          else slots.put(slot, { names: [keyOf(row), 900, 901], tags: [1, 1], at: MANY })
        }
        await handle.write(bytes, position)
      }
      return { ...handle, write }
    }
    const before = seenIn(table, MANY)
    await saved([table], MANY, files)
    expect(changed.size).toBeGreaterThan(30)
    const loaded = tableOf()
    expect(await load(files, [loaded])).toEqual({ end: MANY * LENGTH, isOld: false })
    const after = seenIn(loaded, MANY)
    const lost = before.keys.filter((places, row) => !changed.has(row) && !isDeepStrictEqual(after.keys[row], places))
    expect(lost).toEqual([])
  })

  it('of another seed, of other tables, or of more rows than the disk has counts as not there', async () => {
    const files = await saved([filled(ROWS)], ROWS)
    const other = loadImage(files, PATH, { tables: [tableOf()], seed: [1, 3] }, Number.POSITIVE_INFINITY)
    expect(await other).toBeUndefined()
    expect(await load(files, [tableOf(4)])).toBeUndefined()
    expect(await load(files, [tableOf(), tableOf()])).toBeUndefined()
    expect(await load(files, [tableOf()], ROWS * LENGTH - 1)).toBeUndefined()
    expect(await load(files, [tableOf()], ROWS * LENGTH)).toBeDefined()
    expect(await load(new MemoryFiles(), [tableOf()])).toBeUndefined()
  })

  it('counts as not there when one byte of it is another one, or when it is cut', async () => {
    const whole = await bytesIn(await saved([filled(ROWS)], ROWS))
    for (let at = 0; at < whole.length; at++) {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8))
      const tables = [tableOf()]
      expect(await load(await diskWith(damaged), tables), `byte ${at}`).toBeUndefined()
      expect(tables[0]?.size).toBe(0)
    }
    for (let size = 0; size < whole.length; size += 3)
      expect(await load(await diskWith(whole.subarray(0, size)), [tableOf()]), `${size} bytes`).toBeUndefined()
  })

  const heads = (sections: Section[]): Section[] => sections.filter(({ kind }) => kind === HEADS)
  const part = (sections: Section[]): Section => sections.find(({ kind }) => kind === PART) as Section
  const begin = (sections: Section[]): Section => sections.find(({ kind }) => kind === BEGINS) as Section
  const word = (column: 'keyLink' | 'nameLink', row: number, value: number) => (sections: Section[]) => {
    const { body, rows } = part(sections)
    body.writeUInt32LE(value, placeIn(column, row, rows))
  }
  const place = (value: number) => (sections: Section[]) => {
    const { body, rows } = part(sections)
    body.writeDoubleLE(value, placeIn('place', 5, rows))
  }
  it.each<readonly [what: string, change: (sections: Section[]) => unknown]>([
    ['a link to its own row', word('keyLink', 8, 9)],
    ['a link to a row behind', word('nameLink', 8, 20)],
    ['a link to no row', word('keyLink', 80, 0xffff_ffff)],
    ['a link in the first row', word('nameLink', 0, 1)],
    ['a head of no row', (sections) => heads(sections)[0]?.body.writeUInt32LE(ROWS + 1, 0)],
    ['a place behind what is known of the disk', place(ROWS * LENGTH - LENGTH + 1)],
    ['a place before the disk', place(-1)],
    ['a place that is no number', place(Number.NaN)],
    ['heads that are no power of two', (sections) => cut(heads(sections)[0], 3)],
    ['no heads of a name', (sections) => cut(heads(sections)[1], 0)],
    ['the heads of one name twice', (sections) => Object.assign(heads(sections)[1] ?? {}, { about: 0 })],
    ['heads without an end', (sections) => Object.assign(heads(sections)[0] ?? {}, { rows: 0xffff_ffff })],
    ['fewer rows announced than there are', (sections) => (begin(sections).rows = 70)],
    ['more rows announced than the file can hold', (sections) => (begin(sections).rows = 0xffff_ffff)],
    ['a part of more rows than announced', (sections) => (part(sections).rows = 0xffff_ffff)],
    ['a table that is not known', (sections) => (part(sections).table = 1)],
    ['a section that is not known', (sections) => (begin(sections).kind = 9)],
    ['another number of rows at its end', (sections) => (sections.at(-1) as Section).rows--],
    ['no end', (sections) => sections.pop()],
  ])('with %s counts as not there, although its checksums fit', async (_, change) => {
    const whole = await bytesIn(await saved([filled(ROWS)], ROWS))
    const sections = sectionsIn(whole)
    expect(sections.map(({ kind }) => kind).slice(1)).toEqual([BEGINS, PART, HEADS, HEADS, HEADS, END])
    expect(bytesOf(sections, whole)).toEqual(whole)
    change(sections)
    const tables = [tableOf()]
    expect(await load(await diskWith(bytesOf(sections, whole)), tables)).toBeUndefined()
    expect(tables[0]?.size).toBe(0)
  })

  function cut(section: Section | undefined, rows: number): void {
    if (section === undefined) return
    section.rows = rows
    section.body = section.body.subarray(0, rows * 4)
  }
})

/** Written by the version before links were saved: a row that came late, one that is gone, one that was put again. */
const FIRST_FORMAT = join(import.meta.dirname, '..', '..', 'fixtures', 'rows-with-first-image.json')

describe('an image of the first format', () => {
  const ROWS_FOLDER = '/home/rows'

  async function disk(): Promise<MemoryFiles> {
    const files = new MemoryFiles()
    await files.makeDirectory(ROWS_FOLDER)
    for (const [path, base64] of Object.entries(JSON.parse(readFileSync(FIRST_FORMAT, 'utf8')) as object)) {
      const file = await files.open(path, 'create')
      await file.write(Buffer.from(String(base64), 'base64'))
    }
    return files
  }

  async function openRows(files: MemoryFiles) {
    const kept = new TableFile({ files, ids: new SeededIds(), log: silentLog, directory: ROWS_FOLDER })
    const rows = new SessionDirectory(new ManualClock(), kept)
    await kept.open()
    await kept.start()
    return { kept, rows }
  }

  async function formatOf(files: MemoryFiles): Promise<number> {
    const image = await files.open(`${ROWS_FOLDER}/1.slots`, 'read')
    return (await image.read(0, 4))[3] ?? 0
  }

  async function expectAllRows(rows: SessionDirectory): Promise<void> {
    const { sessions } = await rows.list({ limit: 10 })
    expect(sessions.map(({ key, record }) => [key, record.updatedAt])).toEqual([
      ['a', 7],
      ['d', 3],
      ['late', 2],
      ['B', 2],
    ])
    for (const { key, record } of sessions) {
      expect((await rows.resolve(key.toUpperCase()))?.key).toBe(key)
      expect((await rows.byId(record.sessionId))?.key).toBe(key)
    }
    expect(await rows.resolve('c')).toBeUndefined()
    const marked = await rows.marked({ kind: 'root', value: 'r' }, { owner: 'ann', sees: 'own' }, 5)
    expect(marked.map(({ key }) => key)).toEqual(['a', 'B'])
  }

  it('is read, and written in the present format at the next stop', async () => {
    const files = await disk()
    const before = await openRows(files)
    await expectAllRows(before.rows)
    expect(await formatOf(files)).toBe(1)
    // So few rows that a stop without the image would not write one.
    await before.kept.close()
    expect(await formatOf(files)).toBe(2)
    const after = await openRows(files)
    await expectAllRows(after.rows)
    await after.kept.close()
  })

  it('is not needed when it is damaged', async () => {
    for (let at = 0; at < 304; at++) {
      const files = await disk()
      const image = await files.open(`${ROWS_FOLDER}/1.slots`, 'update')
      const [byte = 0] = await image.read(at, 1)
      await image.write(Uint8Array.of(byte ^ (1 << (at % 8))), at)
      const { kept, rows } = await openRows(files)
      await expectAllRows(rows)
      await kept.close()
      expect(await formatOf(files), `byte ${at}`).toBe(at === 3 ? 1 ^ (1 << 3) : 1)
    }
  })
})
