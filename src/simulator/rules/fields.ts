import { assertNever } from '../../base/assert-never.ts'

export type FieldKind = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null' | 'any'

export interface Field {
  readonly required: boolean
  readonly kinds: readonly FieldKind[]
  /** The only strings allowed. */
  readonly values?: readonly string[]
}

export type Fields = ReadonlyMap<string, Field>

export type FieldProblem =
  | { readonly kind: 'missing'; readonly key: string; readonly field: Field }
  | { readonly kind: 'unknown'; readonly key: string }
  | { readonly kind: 'type'; readonly key: string; readonly field: Field }
  | { readonly kind: 'value'; readonly key: string; readonly field: Field }

export const required = (...kinds: FieldKind[]): Field => ({ required: true, kinds })
export const optional = (...kinds: FieldKind[]): Field => ({ required: false, kinds })
export const oneOf = (...values: string[]): Field => ({ required: true, kinds: ['string'], values })
export const maybeOneOf = (...values: string[]): Field => ({ required: false, kinds: ['string', 'null'], values })

/** A map, because field names come from outside: `constructor` must be an unknown field like any other. */
export const fields = (table: Readonly<Record<string, Field>>): Fields => new Map(Object.entries(table))

const NONE: readonly FieldProblem[] = []

/** Compares an object with the fields its place allows. A field whose value is undefined is not on the wire. */
export function fieldProblems(value: Readonly<Record<string, unknown>>, allowed: Fields): readonly FieldProblem[] {
  let problems: FieldProblem[] | undefined
  for (const [key, field] of allowed) {
    if (field.required && value[key] === undefined) (problems ??= []).push({ kind: 'missing', key, field })
  }
  for (const key in value) {
    const content = value[key]
    if (content === undefined) continue
    const field = allowed.get(key)
    if (field === undefined) (problems ??= []).push({ kind: 'unknown', key })
    else if (!field.kinds.some((kind) => isKind(content, kind))) (problems ??= []).push({ kind: 'type', key, field })
    else if (field.values !== undefined && typeof content === 'string' && !field.values.includes(content)) {
      ;(problems ??= []).push({ kind: 'value', key, field })
    }
  }
  return problems ?? NONE
}

export function isKind(value: unknown, kind: FieldKind): boolean {
  switch (kind) {
    case 'any':
      return true
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === kind
    default:
      return assertNever(kind)
  }
}
