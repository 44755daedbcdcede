import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readDocument } from '../../support/documents.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const { text } = readDocument('docs/maintainers/security-rows.md')
const rows = text.split('\n').filter((line) => /^\| (?!row|area|---)/u.test(line))

it('every finding of the audit has its row, in order', () => {
  const numbers = rows.flatMap((line) => /^\| (\d+) \|/u.exec(line)?.[1] ?? [])
  expect(numbers.map(Number)).toEqual(Array.from({ length: 22 }, (_, at) => at + 1))
})

it.each(rows.map((row) => [row.split('|')[1]?.trim() ?? '', row] as const))(
  '%s is held by files that exist',
  (_, row) => {
    const named = [...row.matchAll(/`(test\/[\w./-]+)`/gu)].map(([, path = '']) => path)
    expect(named.length > 0 || row.includes('attack')).toBe(true)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  },
)
