import { describe, expect, test } from 'vitest'
import type { RuleTable, RuleViolation } from '../../src/simulator/rules/rule.ts'

/** A request the service refuses, and the nearest one it accepts. */
export interface RuleCase {
  readonly bad: unknown
  readonly good: unknown
  /** Rules that the same fault cannot help breaking too. */
  readonly also?: readonly string[]
  readonly options?: Readonly<Record<string, unknown>>
  /** When the accepted neighbour differs in what is known about the request rather than in the request. */
  readonly goodOptions?: Readonly<Record<string, unknown>>
}

export type RuleCases<Table extends RuleTable> = { readonly [Name in keyof Table]: RuleCase | readonly RuleCase[] }

type Check = (body: unknown, options?: Readonly<Record<string, unknown>>) => readonly RuleViolation[]

/** One test per rule, named by it. The type of `cases` makes a rule without a case a compile error. */
export function describeRules<Table extends RuleTable>(
  api: string,
  table: Table,
  check: Check,
  cases: RuleCases<Table>,
): void {
  describe(api, () => {
    test.each(Object.keys(table))(`${api}/%s refuses the violation and accepts its nearest neighbour`, (name) => {
      const entry = cases[name]
      for (const { bad, good, also = [], options, goodOptions } of [entry].flat() as RuleCase[]) {
        expect(check(good, goodOptions ?? options)).toEqual([])
        const found = check(bad, options)
        const broken = new Set(found.map((violation) => violation.rule))
        expect(broken).toEqual(new Set([name, ...also].map((rule) => `${api}/${rule}`)))
        expect(found.every((violation) => violation.message !== '')).toBe(true)
      }
    })
  })
}

/** A deep copy with one change. */
export function edit<T>(value: T, change: (copy: T) => void): T {
  const copy = structuredClone(value)
  change(copy)
  return copy
}

/** Base64 of a PNG header with this size: as much of an image as a header check can see. */
export function png(width = 2, height = 2): string {
  const bytes = Buffer.alloc(45)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes.toString('base64')
}

export function gif(): string {
  return Buffer.from('GIF89a\x02\x00\x02\x00\x00\x00\x00;', 'latin1').toString('base64')
}
