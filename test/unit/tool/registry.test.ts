import { describe, expect, it } from 'vitest'
import { createToolRegistry } from '../../../src/tool/registry.ts'
import { compileArguments } from '../../../src/tool/validate.ts'
import { aTool } from '../../support/tool-call.ts'

describe('the tool registry', () => {
  it('lists tools by name, whatever the order they came in', () => {
    const names = (...list: readonly string[]) =>
      createToolRegistry(list.map((name) => aTool({ name })))
        .specs()
        .map((spec) => spec.name)
    expect(names('time', 'calculator', 'files')).toEqual(['calculator', 'files', 'time'])
    expect(names('files', 'time', 'calculator')).toEqual(['calculator', 'files', 'time'])
  })

  it('refuses names no model accepts, names used twice and schemas that do not compile', () => {
    expect(() => createToolRegistry([aTool({ name: 'two words' })])).toThrow('not a usable tool name')
    expect(() => createToolRegistry([aTool({ name: 'a' }), aTool({ name: 'a' })])).toThrow('two tools')
    expect(() => createToolRegistry([aTool({ name: 'a', parameters: { type: 'string' } })])).toThrow('an object')
    expect(() => createToolRegistry([aTool({ name: 'a', parameters: { type: 'object', required: 7 } })])).toThrow(
      'schema is invalid',
    )
  })

  it('asks changing sources anew and never lets them replace a built-in tool', () => {
    const source = [{ tool: aTool({ name: 'time', description: 'false' }), check: () => undefined }]
    const registry = createToolRegistry([aTool({ name: 'time', description: 'true' })], [() => source])
    expect(registry.find('time')?.tool.description).toBe('true')
    source.push({ tool: aTool({ name: 'later' }), check: () => undefined })
    expect(registry.specs().map((spec) => spec.name)).toEqual(['later', 'time'])
  })
})

describe('schemas of other programs', () => {
  it('are compiled in both dialects that servers use', () => {
    const properties = { n: { type: 'integer' } }
    for (const $schema of ['http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft/2020-12/schema']) {
      const check = compileArguments({ $schema, type: 'object', properties }, { untrusted: true })
      expect(check({ n: 1 })).toBeUndefined()
      expect(check({ n: 'one' })).toBe('The arguments are not valid: "n" must be integer. Known arguments: n.')
    }
  })

  it('may refer to themselves', () => {
    const check = compileArguments({ type: 'object', properties: { child: { $ref: '#' } } }, { untrusted: true })
    expect(check({ child: { child: {} } })).toBeUndefined()
    expect(check({ child: { child: 1 } })).toContain('"child.child" must be object')
  })

  it('do not get their regular expressions run', () => {
    const check = compileArguments(
      {
        type: 'object',
        properties: { pattern: { type: 'string', pattern: '^(a+)+$' } },
        patternProperties: { '^(x+)+$': { type: 'string' } },
        additionalProperties: false,
      },
      { untrusted: true },
    )
    expect(check({ pattern: `${'a'.repeat(60)}!`, other: 1 })).toBeUndefined()
    expect(check({ pattern: 7 })).toContain('"pattern" must be string')
  })

  it('that are too large, too deep or refer to what is not there are refused', () => {
    let deep: Record<string, unknown> = { type: 'object' }
    for (let i = 0; i < 100; i++) deep = { type: 'object', properties: { a: deep } }
    expect(() => compileArguments(deep as never, { untrusted: true })).toThrow('nested too deeply')
    const large = { type: 'object', description: 'x'.repeat(300_000) }
    expect(() => compileArguments(large, { untrusted: true })).toThrow('longer than')
    const dangling = { type: 'object', properties: { a: { $ref: 'https://example.com/x.json' } } }
    expect(() => compileArguments(dangling, { untrusted: true })).toThrow("can't resolve reference")
  })

  it('that refer to themselves without end are refused', () => {
    const circle = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }
    expect(() => compileArguments({ type: 'object', ...circle }, { untrusted: true })).toThrow('circles')
    expect(() => compileArguments({ type: 'object', allOf: [{ $ref: '#' }] }, { untrusted: true })).toThrow('circles')
  })
})
