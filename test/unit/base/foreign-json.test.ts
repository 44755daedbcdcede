import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FOREIGN_JSON, JsonGauge, jsonExcess, parseForeignJson } from '../../../src/base/json.ts'

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

describe('JSON that another party wrote', () => {
  it('is parsed as JSON.parse does it while it keeps to the bounds', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parseForeignJson(text)).toEqual(JSON.parse(text))
      }),
      { seed: 20261116, numRuns: 500 },
    )
  })

  it.each([
    ['at the depth', nested(FOREIGN_JSON.maxDepth), undefined],
    ['one deeper', nested(FOREIGN_JSON.maxDepth + 1), 'depth'],
    ['brackets that never close', '['.repeat(3_000_000), 'depth'],
    ['objects in objects', '{"a":'.repeat(300), 'depth'],
    ['many values', `[${'1,'.repeat(FOREIGN_JSON.maxMarks)}1]`, 'marks'],
    ['many empty lists', `[${'[],'.repeat(FOREIGN_JSON.maxMarks)}1]`, 'marks'],
    ['brackets inside a string', JSON.stringify({ a: '['.repeat(1_000_000) }), undefined],
    ['escaped quotes inside a string', JSON.stringify({ a: '"['.repeat(300_000) }), undefined],
    ['backslashes before the closing quote', JSON.stringify(['\\', '\\\\', '[[['.repeat(100)]), undefined],
    ['a string that never ends', `"${'\\'.repeat(1_000_000)}`, undefined],
  ] as const)('%s', (_name, text, excess) => {
    expect(jsonExcess(text)).toBe(excess)
    if (excess !== undefined) expect(parseForeignJson(text)).toBeUndefined()
  })

  it('is judged alike whether it is there or still arriving', () => {
    const bounds = { maxDepth: 3, maxMarks: 20 }
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.integer({ min: 1, max: 7 }), (text, size) => {
        const gauge = new JsonGauge({ isEventStream: false, bounds })
        const bytes = Buffer.from(text)
        let isAllowed = true
        for (let at = 0; at < bytes.length; at += size) isAllowed &&= gauge.allows(bytes.subarray(at, at + size))
        expect(isAllowed).toBe(jsonExcess(text, bounds) === undefined)
      }),
      { seed: 20261116, numRuns: 1000 },
    )
  })

  it('begins anew with each event of a stream', () => {
    const gauge = new JsonGauge({ isEventStream: true, bounds: { maxDepth: 2, maxMarks: 6 } })
    for (let event = 0; event < 10; event++) {
      expect(gauge.allows(Buffer.from(': a "comment\n\ndata: {"a": [1, 2]}\n\n'))).toBe(true)
    }
    expect(gauge.allows(Buffer.from('data: [[[1]]]\n\n'))).toBe(false)
  })
})
