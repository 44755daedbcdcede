import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../../src/base/json.ts'
import { checkWithinBudget } from '../../../src/tool/budgeted-check.ts'
import { compileArguments } from '../../../src/tool/validate.ts'
import { processorMs, slownessHere } from '../../support/processor-time.ts'

/** `{x: {}}` is held against 2 to the power of the levels. */
function doubling(levels: number): JsonObject {
  const names = Array.from({ length: levels }, (_, level) => `a${level}`)
  const $defs = Object.fromEntries(
    names.map((name, level) => {
      const next = names[level + 1]
      return [
        name,
        next === undefined ? { type: 'object' } : { allOf: [{ $ref: `#/$defs/${next}` }, { $ref: `#/$defs/${next}` }] },
      ]
    }),
  )
  return { type: 'object', properties: { x: { $ref: '#/$defs/a0' } }, $defs }
}

describe('a schema that another program wrote', () => {
  it.each([22, 30, 60])('with references that double on %i levels is given up in time', (levels) => {
    const check = compileArguments(doubling(levels), { untrusted: true })
    expect(processorMs(() => check({ x: {} }))).toBeLessThan(500 * slownessHere())
    expect(check({ x: {} })).toBeUndefined()
  })

  it('that doubles with every level of the value is given up, too', () => {
    const child = { properties: { x: { $ref: '#' } } }
    let value: JsonObject = {}
    for (let level = 0; level < 60; level++) value = { x: value }
    expect(checkWithinBudget({ type: 'object', allOf: [child, child] }, value)).toBe('undecided')
  })

  it('does not get unique items looked for', () => {
    const schema: JsonObject = { type: 'object', properties: { list: { type: 'array', uniqueItems: true } } }
    const list = Array.from({ length: 60_000 }, (_, n) => ({ n }))
    expect(compileArguments(schema, { untrusted: true })({ list })).toBeUndefined()
  })

  it('gets no arguments beyond a size', () => {
    const check = compileArguments({ type: 'object' }, { untrusted: true })
    expect(check({ text: 'x'.repeat(1024 * 1024) })).toContain('too long')
  })

  it('is paid for by the comparison', () => {
    const schema = { enum: Array.from({ length: 1000 }, (_, n) => n) }
    expect(checkWithinBudget(schema, 999, 2000)).toEqual([])
    expect(checkWithinBudget(schema, 999, 500)).toBe('undecided')
  })

  it('is judged as the compiled one would be', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
    const leaf = fc.oneof(
      fc.constantFrom<JsonValue>(
        true,
        false,
        {},
        { type: 'string' },
        { type: 'integer' },
        { type: ['null', 'number'] },
      ),
      fc.record({ minimum: fc.integer({ min: -3, max: 3 }), exclusiveMaximum: fc.integer({ min: -3, max: 5 }) }),
      fc.record({ minLength: fc.nat(2), maxLength: fc.nat(3) }),
      fc.record({ enum: fc.array(fc.constantFrom<JsonValue>(1, 'a', null, [1], { a: 1 }), { minLength: 1 }) }),
      fc.record({ const: fc.constantFrom<JsonValue>(1, 'a', { a: 1 }) }),
      fc.constant<JsonValue>({ $ref: '#/$defs/d' }),
      fc.record({ multipleOf: fc.constantFrom(1, 2, 3) }),
    )
    const schemas = fc.letrec<{ schema: JsonValue }>((tie) => {
      const one = tie('schema')
      const many = fc.array(one, { minLength: 1, maxLength: 3 })
      return {
        schema: fc.oneof(
          { depthSize: 'small' },
          leaf as fc.Arbitrary<JsonValue>,
          fc.record({ allOf: many }),
          fc.record({ anyOf: many }),
          fc.record({ oneOf: many }),
          fc.record({ not: one }),
          fc.record({ if: one, then: one, else: one }),
          fc.record({ items: one, minItems: fc.nat(2), prefixItems: many }),
          fc.record({ contains: one }),
          fc.record({
            properties: fc.dictionary(fc.constantFrom('a', 'b'), one),
            required: fc.subarray(['a', 'b']),
            additionalProperties: one,
            maxProperties: fc.nat(3),
          }),
          fc.record({ propertyNames: one, dependentRequired: fc.constant({ a: ['b'] }) }),
        ),
      }
    }).schema
    const values = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<JsonValue>(null, true, 1, 2, -1, 1.5, 'a', 'abc', '', '😀😀'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value')),
      ),
    })).value
    const $defs = { d: { type: ['string', 'object'] } }
    fc.assert(
      fc.property(schemas, values, (schema, value) => {
        const whole = typeof schema === 'object' ? { ...(schema as JsonObject), $defs } : schema
        const expected = ajv.validate(whole as object, value)
        const problems = checkWithinBudget(whole, value)
        expect(problems).not.toBe('undecided')
        expect(problems.length === 0).toBe(expected)
      }),
      { seed: 20261116, numRuns: 400 },
    )
  })
})
