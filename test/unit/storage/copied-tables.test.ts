import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOM = join(import.meta.dirname, '../../../src/storage/postgres')
/** Of the nodes themselves. `media` was never written to, and is gone. */
const NOT_COPIED = ['nodes', 'media']

it('copies every table of the schema', () => {
  const folder = join(ROOM, 'migrations')
  const sql = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const tables = sql.flatMap((text) => [...text.matchAll(/create table (\w+)/gu)].map(([, name]) => name ?? ''))
  const reader = readFileSync(join(ROOM, 'image-reader.ts'), 'utf8')
  const writer = readFileSync(join(ROOM, 'image-writer.ts'), 'utf8')
  const isNamed = (name: string): boolean => reader.includes(` from ${name}`) && writer.includes(name)
  expect(tables).toContain('sessions')
  expect(tables.filter((name) => !isNamed(name))).toEqual(NOT_COPIED)
})
