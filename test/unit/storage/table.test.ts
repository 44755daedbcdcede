import { expect, it } from 'vitest'
import { Table, type RowDisk, type TableForm } from '../../../src/storage/tables/table.ts'

interface Value {
  readonly other: string
  readonly tag: string
}

const FORM: TableForm<Value> = {
  shape: { names: 2, tags: 1 },
  nameOf: (key) => key.toLowerCase(),
  namesOf: ({ other }) => [other],
  tagsOf: (_, { tag }) => [tag],
  timeOf: () => 0,
  decode: (value) => value as Value,
}

it('a name is hashed once for each question', async () => {
  let hashed = 0
  const disk: RowDisk = {
    seed() {
      hashed++
      return [1, 2]
    },
    changed: () => undefined,
    read: async () => undefined,
    readNow: () => undefined,
    scan: async () => undefined,
  }
  const table = new Table(FORM, disk)
  const hashesOf = async (work: () => unknown): Promise<number> => {
    const before = hashed
    await work()
    return hashed - before
  }
  const value = { other: 'b', tag: 'c' }
  expect(await hashesOf(() => table.put('A', value))).toBe(3)
  expect(await hashesOf(() => table.put('A', value))).toBe(3)
  expect(await hashesOf(() => table.get('A'))).toBe(1)
  expect(await hashesOf(() => table.find('A'))).toBe(1)
  expect(await hashesOf(() => table.delete('A'))).toBe(1)
  expect(await table.find('A')).toBeUndefined()
})
