import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FAULTS } from '../scripts/history-faults.ts'

const root = resolve(import.meta.dirname, '..')

// `npm run mutate:history` is too slow for every run; that it still can put its faults in is not.
describe('the faults of npm run mutate:history', () => {
  test.each(FAULTS)('$name: the text to replace is there once', ({ file, find, replace }) => {
    expect(readFileSync(resolve(root, file), 'utf8').split(find)).toHaveLength(2)
    expect(replace).not.toBe(find)
  })

  test('have names of their own', () => {
    expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length)
  })
})
