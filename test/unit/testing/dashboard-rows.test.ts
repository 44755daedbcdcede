import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readDocument } from '../../support/documents.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const { text } = readDocument('docs/maintainers/dashboard-rows.md')
const rows = text.split('\n').filter((line) => /^\| (?!sentence|page \|| budget|budget|---)/u.test(line))

it('has a row for each part of the design', () => {
  expect(rows.length).toBeGreaterThan(80)
})

it.each(rows.map((row) => [row.split('|')[1]?.trim() ?? '', row] as const))(
  '%s: every file named is there, and something holds it',
  (_, row) => {
    const named = [...row.matchAll(/`((?:test|ui|src)\/[\w./-]+)`/gu)].map(([, path = '']) => path)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    expect(/`test\/|by eye|by reading|does not compile|decisions\//u.test(row)).toBe(true)
  },
)
