import { describe, expect, it } from 'vitest'
import { RowHeights } from '../../../ui/lib/row-heights.ts'

const rows = (count: number, from = 0) => Array.from({ length: count }, (_, at) => ({ key: `row ${from + at}` }))

describe('heights of the rows of a long list', () => {
  it('are assumed until they are measured', () => {
    const heights = new RowHeights(() => 10)
    heights.setRows(rows(5))
    expect(heights.total).toBe(50)
    expect(heights.measure(new Map([['row 1', 30]]))).toBe(true)
    expect([0, 1, 2, 5].map((at) => heights.top(at))).toEqual([0, 10, 40, 70])
    expect(heights.measure(new Map([['row 1', 30]]))).toBe(false)
  })

  it('tell which row covers a place, and the nearest one outside of the list', () => {
    const heights = new RowHeights(() => 10)
    heights.setRows(rows(5))
    expect([-5, 0, 9, 10, 49, 500].map((y) => heights.rowAt(y))).toEqual([0, 0, 0, 1, 4, 4])
    heights.setRows([])
    expect(heights.rowAt(3)).toBe(0)
    expect(heights.total).toBe(0)
  })

  it('stay with their rows when others come in front', () => {
    const heights = new RowHeights(() => 10)
    heights.setRows(rows(3, 2))
    heights.measure(new Map([['row 2', 25]]))
    heights.setRows(rows(5))
    expect(heights.placeOf('row 2')).toBe(2)
    expect(heights.top(3)).toBe(45)
    heights.forgetMeasured()
    expect(heights.top(3)).toBe(30)
  })

  it('say which rows cover a part of the list, with the space before, between and after them', () => {
    const heights = new RowHeights(() => 10)
    heights.setRows(rows(100))
    const shown = heights.between(205, 225, [3, 90, 500])
    expect(shown).toEqual([
      { at: 3, gap: 30 },
      { at: 20, gap: 160 },
      { at: 21, gap: 0 },
      { at: 22, gap: 0 },
      { at: 90, gap: 670 },
    ])
    expect(heights.spaceAfter(shown)).toBe(90)
    heights.setRows([])
    expect(heights.between(0, 100)).toEqual([])
    expect(heights.spaceAfter([])).toBe(0)
  })
})
