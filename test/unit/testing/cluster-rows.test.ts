import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readDocument } from '../../support/documents.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const { text } = readDocument('docs/maintainers/cluster-rows.md')
const [held = ''] = text.split('## Not as the plan has it')
const rows = held.split('\n').filter((line) => /^\| (?!sentence|---)/u.test(line))

it('there is a row for each of the sentences', () => {
  expect(rows.length).toBeGreaterThan(40)
})

it.each(rows.map((row) => [row.split('|')[1]?.trim() ?? '', row] as const))(
  '%s is held by files that exist',
  (_, row) => {
    const [, , , by = ''] = row.split('|')
    expect(/`test\/|chaos|contract|npm run bench/u.test(by)).toBe(true)
    const named = [...row.matchAll(/`((?:test|src|ui|scripts)\/[\w./-]+)`/gu)].map(([, path = '']) => path)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  },
)
