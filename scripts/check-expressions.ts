/**
 * `npm run check:expressions`: judges the regular expressions of the sources and writes down those that are linear, so that
 * `npm test` has to judge only the ones that are new. `-- --all` judges those again that are written down, too.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expressionsBelow, slowness } from '../test/support/expressions.ts'

const root = join(import.meta.dirname, '..')
const { literals } = expressionsBelow(join(root, 'src'))
const expressions = new Map(literals.map((expression) => [expression.text, expression]))
const list = join(root, 'test/support/linear-expressions.json')
const known = new Set(process.argv.includes('--all') ? [] : (JSON.parse(readFileSync(list, 'utf8')) as string[]))
const linear: string[] = []
for (const expression of expressions.values()) {
  const how = known.has(expression.text) ? undefined : slowness(expression)
  if (how === undefined) linear.push(expression.text)
  else {
    process.exitCode = 1
    console.log(`${expression.place} ${expression.text}: ${how}`)
  }
}
writeFileSync(list, `${JSON.stringify(linear.toSorted(), undefined, 2)}\n`)
console.log(`${expressions.size} expressions, ${linear.length} of them linear`)
