import { isRecord, type JsonObject } from '../base/json.ts'

/** What a schema allows, as the object of "expected …". */
export function describeAllowed(schema: JsonObject): string {
  if (typeof schema['title'] === 'string') return schema['title']
  const values = valuesOf(schema)
  if (values.length > 0) return orList(values.map((value) => JSON.stringify(value)))
  if (schema['type'] === 'integer' || schema['type'] === 'number') {
    return `${schema['type'] === 'integer' ? 'a whole number' : 'a number'}${rangeOf(schema)}`
  }
  if (schema['type'] === 'string') return schema['minLength'] === 1 ? 'a text that is not empty' : 'a text'
  if (schema['type'] === 'boolean') return 'true or false'
  if (schema['type'] !== 'array') return 'an object'
  return isRecord(schema['items']) ? `a list, each item ${describeAllowed(schema['items'])}` : 'a list'
}

function valuesOf(schema: JsonObject): unknown[] {
  if (Array.isArray(schema['enum'])) return [...schema['enum']]
  return schema['const'] === undefined ? [] : [schema['const']]
}

function rangeOf(schema: JsonObject): string {
  const { minimum, maximum } = schema
  const low = typeof minimum === 'number' && minimum > Number.MIN_SAFE_INTEGER
  const high = typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
  if (low && high) return ` from ${minimum} to ${maximum}`
  if (low) return ` of at least ${minimum}`
  return high ? ` of at most ${maximum}` : ''
}

/** A slip of the keyboard is a word or a number; a password in the wrong place is, with luck, neither. */
const WORD = /^[A-Za-z][A-Za-z_-]{0,19}$/
const NUMBER = /^[-+]?[\d.,]{1,15} ?[A-Za-z]{0,2}$/

/**
 * A secret is described by its type only, and so is a text that may be one in the wrong place: anything but a word or a
 * number, and any text where a section belongs. Of an address only its scheme is shown; the rest may hold a password.
 */
export function describeFound(value: unknown, secret: boolean, allowed: JsonObject): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'string') {
    if (value === '') return 'an empty text'
    if (secret || isSection(allowed)) return 'a text'
    const scheme = /^([a-z][a-z+]{0,15}):\/\//i.exec(value)?.[1]
    if (scheme !== undefined) return `an address beginning with ${scheme.toLowerCase()}://`
    return WORD.test(value) || NUMBER.test(value) ? `the text ${JSON.stringify(value)}` : 'a text'
  }
  return secret ? `a ${typeof value}` : JSON.stringify(value)
}

function isSection({ type, properties, additionalProperties }: JsonObject): boolean {
  return type === 'object' || properties !== undefined || additionalProperties !== undefined
}

function orList(items: readonly string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
}
