import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const styleSheet = (name: string): string =>
  readFileSync(join(import.meta.dirname, '..', '..', '..', 'ui', 'styles', name), 'utf8')

const CSS = styleSheet('tokens.css')
const THEMES = ['light', 'dark'] as const

/** Colours of the design, by name: [light, dark]. */
const TOKENS = new Map(
  [...CSS.matchAll(/--([\w-]+): light-dark\((#[\da-f]{3,6}), (#[\da-f]{3,6})\);/gu)].map(
    ([, name = '', light = '', dark = '']) => [name, [light, dark]] as const,
  ),
)

function luminance(colour: string): number {
  const digits = colour.length === 4 ? colour.slice(1).replaceAll(/./gu, '$&$&') : colour.slice(1)
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => {
    const value = Number.parseInt(digits.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x)
  return (high + 0.05) / (low + 0.05)
}

const GROUNDS = ['paper', 'surface', 'sunken'] as const
const KINDS = ['system', 'tools', 'user', 'model', 'result', 'summary'] as const

/** What is read on what: 4.5 to 1 for text, 3 to 1 for what is only seen (WCAG 2.2, 1.4.3 and 1.4.11). */
const PAIRS: readonly (readonly [front: string, back: string, least: number])[] = [
  ...GROUNDS.flatMap((ground) => [
    ...['ink', 'ink-2', 'ink-3', 'thread-text', 'good', 'bad'].map((text) => [text, ground, 4.5] as const),
    ...['thread', 'focus', ...KINDS].map((shape) => [shape, ground, 3] as const),
  ]),
  ...KINDS.map((kind) => [`${kind}-text`, `${kind}-tint`, 4.5] as const),
  ['thread-text', 'thread-tint', 4.5],
  ['on-thread', 'thread', 4.5],
]

describe.each(THEMES)('the %s theme', (theme) => {
  it('has enough contrast wherever something is read or seen', () => {
    const at = THEMES.indexOf(theme)
    const colourOf = (name: string): string => TOKENS.get(name)?.[at] ?? `no colour ${name}`
    const weak = PAIRS.filter(([front, back, least]) => !(contrast(colourOf(front), colourOf(back)) >= least))
    expect(weak.map(([front, back]) => `${front} on ${back}: ${contrast(colourOf(front), colourOf(back))}`)).toEqual([])
  })
})

/** As the design has them: its colours by name, light and dark. */
const DESIGN = `
paper #faf8f4 #141312, surface #fff #1c1b19, sunken #f3f0ea #100f0e, line #e5e0d6 #2f2d29, line-strong #cfc8ba #48443d,
ink #1e1b16 #f0ece4, ink-2 #544e44 #bdb6a9, ink-3 #6e675b #979082,
thread #c0391b #ff8062, thread-text #a12c12 #ff9c84, thread-tint #fbeae4 #3a201a,
good #157347 #5cc98f, bad #b3261e #ff8a80, focus #1d5fd1 #7fb0ff,
system #6b7280 #8a93a1, tools #7a5bd0 #a58bf0, user #2a6bd8 #6ea3f7,
model #0f8566 #42bd97, result #bf7408 #e0a03c, summary #b83d78 #e57bad`

/** Type and space of the design. Lines and offsets of up to three pixels are drawing; more than 28 is layout. */
const SIZES = [12, 13, 14, 16, 22, 26]
const WEIGHTS = [400, 500, 600, 650]
const SPACES = [0, 1, 2, 3, 4, 8, 12, 16, 20, 28]
const LARGEST_SPACE = 28

describe('the style sheets', () => {
  const sheets = `${styleSheet('base.css')}\n${styleSheet('pages.css')}`
  const numbersOf = (property: RegExp): readonly number[] =>
    [...sheets.matchAll(property)].flatMap(([, value = '']) =>
      [...value.matchAll(/(?<![\w.])(\d+(?:\.\d+)?)(?:px|em|rem)?(?![\w.%])/gu)].map(([, digits]) => Number(digits)),
    )

  it('have the colours of the design', () => {
    for (const row of DESIGN.trim().split(/,\s+/u)) {
      const [name = '', ...colours] = row.split(' ')
      expect(TOKENS.get(name), name).toEqual(colours)
    }
    expect(sheets.match(/#[\da-f]{3,8}\b/giu) ?? []).toEqual([])
  })

  it('use only the sizes, weights and spaces of the design', () => {
    expect(numbersOf(/font-size:([^;]+);/gu).filter((size) => !SIZES.includes(size))).toEqual([])
    expect(numbersOf(/font-weight:([^;]+);/gu).filter((weight) => !WEIGHTS.includes(weight))).toEqual([])
    const spaces = numbersOf(/(?<![\w-])(?:padding|margin|gap|row-gap|column-gap)[a-z-]*:([^;]+);/gu)
    expect(spaces.length).toBeGreaterThan(100)
    expect(spaces.filter((space) => space <= LARGEST_SPACE && !SPACES.includes(space))).toEqual([])
  })
})
