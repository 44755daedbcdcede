import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { expressionsBelow, expressionsOf, slowness } from './support/expressions.ts'

const found = expressionsBelow(join(import.meta.dirname, '..', 'src'))
/** What `npm run check:expressions` found to be linear. The verdict depends on the expression alone, so it stays true. */
const known = new Set(
  JSON.parse(readFileSync(join(import.meta.dirname, 'support', 'linear-expressions.json'), 'utf8')) as string[],
)

/** Built out of texts all the same, each on a text that is cut first, with every repetition bounded. */
const BUILT = {
  'dashboard/routes.ts': 'the path of a request, which the HTTP parser bounds to 16 KB; anchored at both ends',
  'gateway/message-routes.ts': 'the path of a request, which the HTTP parser bounds to 16 KB; anchored at both ends',
  'gateway/http.ts': 'the path of a request, which the HTTP parser bounds to 16 KB; anchored at both ends',
  'provider/length-numbers.ts': 'one sentence of a provider, at most 2 000 characters',
}

describe('regular expressions of the sources', () => {
  it('are written out, so that they can be judged', () => {
    expect(found.literals.length).toBeGreaterThan(200)
    expect(found.built.filter((place) => !Object.hasOwn(BUILT, place.split(':')[0] ?? ''))).toEqual([])
  })

  it('take time in proportion to the text, whatever it is', { timeout: 600_000 }, () => {
    const slow = found.literals
      .filter(({ text }) => !known.has(text))
      .flatMap((expression) => {
        const how = slowness(expression)
        return how === undefined ? [] : [`${expression.place} ${expression.text}: ${how}`]
      })
    expect(slow).toEqual([])
  })
})

describe('the check', () => {
  it.each([
    [String.raw`/^(a+)+$/`, 'exponential'],
    [String.raw`/model.*not found/`, '2nd degree polynomial'],
    [String.raw`/\s+$/`, '2nd degree polynomial'],
  ])('sees that %s is slow', (text, how) => {
    const [expression] = expressionsOf('a.ts', `const x = ${text}`).literals
    expect(expression).toMatchObject({ place: 'a.ts:1', text })
    expect(expression && slowness(expression)).toContain(how)
  })

  it('sees expressions built out of texts', () => {
    expect(expressionsOf('a.ts', '\nconst x = new RegExp(given)\nconst y = RegExp(given)').built).toEqual([
      'a.ts:2',
      'a.ts:3',
    ])
  })
})
