import { expect, test } from 'vitest'
import { fromColumn, mapTexts, toColumn } from '../../../../src/storage/postgres/column-text.ts'

const HOSTILE = ['plain', 'é 界 😀', 'a\u0000b', '\ud800', 'x\udc00y', '\uf8ff0000', '\uf8ff', '']

test('any text survives a column, ordinary ones as they are', () => {
  for (const text of HOSTILE) {
    expect(fromColumn(toColumn(text))).toBe(text)
    expect(toColumn(text)).not.toContain('\u0000')
    expect(toColumn(text).isWellFormed?.() ?? true).toBe(true)
  }
  expect(toColumn('é 界 😀')).toBe('é 界 😀')
})

test('two texts never become one', () => {
  expect(new Set(HOSTILE.map(toColumn)).size).toBe(HOSTILE.length)
})

test('every text of a JSON value is changed, and nothing else', () => {
  expect(mapTexts({ a: ['b', 1, null, true, { c: 'd' }] }, (text) => text.toUpperCase())).toEqual({
    A: ['B', 1, null, true, { C: 'D' }],
  })
})
