import { assertNever } from '../../base/assert-never.ts'

export type FieldKind = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null' | 'any'

export interface Field {
  readonly required: boolean
  readonly kinds: readonly FieldKind[]
  /** The only strings allowed. */
  readonly values?: readonly string[]
}

/** What a place allows. Lookups go through a map: `constructor` from outside is an unknown field like any other. */
export interface Fields {
  readonly byName: ReadonlyMap<string, Field>
  readonly required: readonly string[]
}

export type FieldProblem =
  | { readonly kind: 'missing'; readonly key: string; readonly field: Field }
  | { readonly kind: 'unknown'; readonly key: string }
  | { readonly kind: 'type'; readonly key: string; readonly field: Field }
  | { readonly kind: 'value'; readonly key: string; readonly field: Field }

export const required = (...kinds: FieldKind[]): Field => ({ required: true, kinds })
export const optional = (...kinds: FieldKind[]): Field => ({ required: false, kinds })
export const oneOf = (...values: string[]): Field => ({ required: true, kinds: ['string'], values })
export const maybeOneOf = (...values: string[]): Field => ({ required: false, kinds: ['string', 'null'], values })

export function fields(table: Readonly<Record<string, Field>>): Fields {
  return {
    byName: new Map(Object.entries(table)),
    required: Object.keys(table).filter((key) => table[key]?.required === true),
  }
}

/** The same fields with some added or replaced. */
export function extend(base: Fields, table: Readonly<Record<string, Field>>): Fields {
  return fields({ ...Object.fromEntries(base.byName), ...table })
}

const NONE: readonly FieldProblem[] = []

/** Compares an object with the fields its place allows. A field whose value is undefined is not on the wire. */
export function fieldProblems(value: Readonly<Record<string, unknown>>, allowed: Fields): readonly FieldProblem[] {
  let problems: FieldProblem[] | undefined
  for (const key of allowed.required) {
    const field = allowed.byName.get(key)
    if (field !== undefined && value[key] === undefined) (problems ??= []).push({ kind: 'missing', key, field })
  }
  for (const key in value) {
    const content = value[key]
    if (content === undefined) continue
    const field = allowed.byName.get(key)
    if (field === undefined) (problems ??= []).push({ kind: 'unknown', key })
    else if (!isOneOf(content, field.kinds)) (problems ??= []).push({ kind: 'type', key, field })
    else if (field.values !== undefined && typeof content === 'string' && !field.values.includes(content)) {
      ;(problems ??= []).push({ kind: 'value', key, field })
    }
  }
  return problems ?? NONE
}

function isOneOf(value: unknown, kinds: readonly FieldKind[]): boolean {
  for (const kind of kinds) if (isKind(value, kind)) return true
  return false
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
