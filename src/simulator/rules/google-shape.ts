import { type FieldKind, fieldProblems, type Fields } from './fields.ts'
import type { GOOGLE_RULES } from './google-rules.ts'
import type { Findings } from './rule.ts'

export type GoogleFindings = Findings<typeof GOOGLE_RULES>

export interface GooglePart {
  readonly [field: string]: unknown
}

export interface GoogleContent {
  readonly index: number
  readonly role: string
  readonly parts: readonly GooglePart[]
}

const TYPE_NAMES: ReadonlyMap<FieldKind, string> = new Map([
  ['string', 'TYPE_STRING'],
  ['boolean', 'TYPE_BOOL'],
  ['integer', 'TYPE_INT32'],
  ['number', 'TYPE_DOUBLE'],
  ['object', 'type.googleapis.com/google.protobuf.Struct'],
  ['array', 'TYPE_MESSAGE'],
])

/** Unknown and mistyped fields, in the words of the JSON transcoder that stands before the service. */
export function checkFields(
  findings: GoogleFindings,
  path: string,
  value: Readonly<Record<string, unknown>>,
  allowed: Fields,
): void {
  for (const problem of fieldProblems(value, allowed)) {
    const at = path === '' ? problem.key : `${path}.${problem.key}`
    if (problem.kind === 'unknown') {
      const where = path === '' ? '' : ` at '${path}'`
      findings.add(
        'unknown-field',
        at,
        `Invalid JSON payload received. Unknown name "${problem.key}"${where}: Cannot find field.`,
      )
    } else {
      const type = TYPE_NAMES.get(problem.field.kinds[0] ?? 'string')
      findings.add(
        'field-type',
        at,
        `Invalid value at '${at}' (${type}), ${JSON.stringify(value[problem.key])?.slice(0, 80)}`,
      )
    }
  }
}

/** A field under either of its two names. */
export function proto(value: Readonly<Record<string, unknown>>, key: string): unknown {
  return value[key] ?? value[originalName(key)]
}

const ORIGINAL_NAMES = new Map<string, string>()

export function originalName(key: string): string {
  let name = ORIGINAL_NAMES.get(key)
  if (name === undefined) {
    name = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    ORIGINAL_NAMES.set(key, name)
  }
  return name
}
