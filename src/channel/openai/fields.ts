import { isRecord, type JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'

export type Fields = Readonly<Record<string, unknown>>

/** A refusal that names the parameter, as OpenAI's own do. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError('FIELD_INVALID', message, { field: param })
}

/** Absent and null are the same in both APIs. */
export function given(fields: Fields, name: string): unknown {
  return fields[name] ?? undefined
}

export function optionalText(fields: Fields, name: string, param = name): string | undefined {
  const value = given(fields, name)
  if (value === undefined || typeof value === 'string') return value
  throw invalid(param, `'${param}' must be a string`)
}

export function requiredText(fields: Fields, name: string, param = name): string {
  const value = optionalText(fields, name, param)
  if (value === undefined || value === '') throw invalid(param, `'${param}' is missing`)
  return value
}

export function optionalFlag(fields: Fields, name: string): boolean | undefined {
  const value = given(fields, name)
  if (value === undefined || typeof value === 'boolean') return value
  throw invalid(name, `'${name}' must be true or false`)
}

export function optionalNumber(
  fields: Fields,
  name: string,
  range: { readonly min: number; readonly max: number; readonly whole?: boolean },
): number | undefined {
  const value = given(fields, name)
  if (value === undefined) return undefined
  const isWrong = typeof value !== 'number' || !(value >= range.min && value <= range.max)
  if (isWrong || (range.whole === true && !Number.isInteger(value)))
    throw invalid(
      name,
      `'${name}' must be a ${range.whole === true ? 'whole ' : ''}number from ${range.min} to ${range.max}`,
    )
  return value
}

export function optionalObject(fields: Fields, name: string, param = name): Fields | undefined {
  const value = given(fields, name)
  if (value === undefined || isRecord(value)) return value
  throw invalid(param, `'${param}' must be an object`)
}

export function requiredObject(value: unknown, param: string): Fields {
  if (isRecord(value)) return value
  throw invalid(param, `'${param}' must be an object`)
}

export function optionalList(fields: Fields, name: string, param = name): readonly unknown[] | undefined {
  const value = given(fields, name)
  if (value === undefined || Array.isArray(value)) return value
  throw invalid(param, `'${param}' must be a list`)
}

/** A JSON Schema, or any other object that is passed on as it is. */
export function jsonObject(value: unknown, param: string): JsonObject {
  return requiredObject(value, param) as JsonObject
}

/** What cannot be done here, so that it is not passed over in silence. */
export function refuse(fields: Fields, name: string, why: string): void {
  if (given(fields, name) !== undefined) throw invalid(name, `'${name}' is not supported here: ${why}`)
}
