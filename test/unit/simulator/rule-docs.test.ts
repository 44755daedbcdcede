import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { renderRuleDocs } from '../../../src/simulator/rules/rule-docs.ts'
import { ALL_RULES } from '../../../src/simulator/rules/all-rules.ts'

const PAGE = new URL('../../../docs/maintainers/provider-rules.md', import.meta.url)

/** `UPDATE_DOCS=1 npx vitest run test/unit/simulator/rule-docs.test.ts` rewrites the page. */
test('docs/maintainers/provider-rules.md lists every rule as the code has it', async () => {
  if (process.env.UPDATE_DOCS === '1') await writeFile(PAGE, renderRuleDocs())
  expect(await readFile(PAGE, 'utf8')).toBe(renderRuleDocs())
})

test('every rule says what it demands, who says so and when', () => {
  for (const rule of Object.values(ALL_RULES).flatMap((table) => Object.values(table))) {
    expect(rule.demand).toMatch(/^[A-Z`].*[.)]$/)
    expect(rule.source).not.toBe('')
    expect(rule.date).toMatch(/^20\d\d-\d\d-\d\d$/)
  }
})

test('the checkers import nothing but the room base and themselves', async () => {
  const { readdir } = await import('node:fs/promises')
  const room = new URL('../../../src/simulator/rules/', import.meta.url)
  for (const file of await readdir(room)) {
    const text = await readFile(new URL(file, room), 'utf8')
    for (const [, path] of text.matchAll(/from '([^']+)'/g)) expect(path).toMatch(/^\.\/|^\.\.\/\.\.\/base\//)
  }
})
