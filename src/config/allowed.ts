import { isRecord, type JsonObject } from '../base/json.ts'
import { createRedactor } from '../base/redact.ts'

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

const redact = createRedactor({ maxTextLength: 60 })

/** Secrets are described by their type only. */
export function describeFound(value: unknown, secret: boolean): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'string') {
    if (value === '') return 'an empty text'
    return secret ? 'a text' : `the text ${JSON.stringify(redact(value))}`
  }
  return secret ? `a ${typeof value}` : JSON.stringify(value)
}

function orList(items: readonly string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
}
