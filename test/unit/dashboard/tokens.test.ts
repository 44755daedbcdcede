import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const CSS = readFileSync(join(import.meta.dirname, '..', '..', '..', 'ui', 'styles', 'tokens.css'), 'utf8')
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
