import { z } from 'zod'
import { isRecord, type JsonObject } from '../base/json.ts'
import { describeAllowed, describeFound } from './allowed.ts'
import type { Expanded } from './environment.ts'
import { nearestKey, schemaAt } from './known-keys.ts'
import type { KeyPath } from './problem.ts'
import { fileSchema, type FileConfig } from './schema.ts'
import { isSecret } from './secret-keys.ts'

export interface Finding {
  readonly kind: 'unknown-key' | 'invalid'
  readonly path: KeyPath
  readonly message: string
}

/** The library compiles a function for each object of the schema, which pays for many values and not for one file. */
export const PARSE = { jitless: true } as const

let jsonSchemaOfFile: JsonObject | undefined

/** The schema that editors get, and that error texts are made from. Made once: it costs some milliseconds. */
export function jsonSchema(): JsonObject {
  jsonSchemaOfFile ??= makeJsonSchema()
  return jsonSchemaOfFile
}

function makeJsonSchema(): JsonObject {
  // Draft 7 is what editors understand everywhere.
  // The library's type is wider than the plain JSON it builds
  return z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-7' }) as unknown as JsonObject
}

/** Unknown keys are reported and then left out, so that a file with foreign keys still gives a configuration. */
export function validate(expanded: Expanded): {
  readonly config: FileConfig | undefined
  readonly findings: readonly Finding[]
} {
  let { value } = expanded
  let result = fileSchema.safeParse(value, PARSE)
  if (result.success) return { config: result.data, findings: [] }

  const schema = jsonSchema()
  const findings: Finding[] = []
  // Twice at most changes the outcome: once for texts from the environment, once for unknown keys.
  const coerced = coerceFromEnvironment(value, result.error.issues, expanded)
  if (coerced !== value) result = fileSchema.safeParse((value = coerced), PARSE)
  const unknown = result.success ? [] : unknownKeys(result.error.issues)
  if (unknown.length > 0) {
    for (const path of unknown) findings.push(unknownKey(schema, path))
    result = fileSchema.safeParse((value = without(value, unknown)), PARSE)
  }
  if (result.success) return { config: result.data, findings }
  return { config: undefined, findings: [...findings, ...invalid(schema, value, expanded, result.error.issues)] }
}

type Issue = z.core.$ZodIssue

function unknownKeys(issues: readonly Issue[]): KeyPath[] {
  return issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...toPath(issue.path), key]) : [],
  )
}

function unknownKey(schema: JsonObject, path: KeyPath): Finding {
  const near = nearestKey(schema, path.slice(0, -1), String(path.at(-1)))
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  return { kind: 'unknown-key', path, message: `unknown key${hint}` }
}

function invalid(schema: JsonObject, value: unknown, expanded: Expanded, issues: readonly Issue[]): Finding[] {
  return issues.map((issue) => {
    const path = deepestPath(issue)
    const node = schemaAt(schema, path) ?? {}
    const variable = expanded.fromEnvironment.get(JSON.stringify(path))
    // The value of a variable may be a secret: it is not shown.
    const found =
      variable === undefined ? describeFound(valueAt(value, path), isSecret(path), node) : `the value of $${variable}`
    if (issue.code === 'invalid_key')
      return { kind: 'invalid', path, message: 'a name without spaces and slashes is expected' }
    return { kind: 'invalid', path, message: `expected ${describeAllowed(node)}, found ${found}` }
  })
}

/** A list of models with one bad name is a problem of that name, not of the list. */
function deepestPath(issue: Issue): KeyPath {
  const path = toPath(issue.path)
  if (issue.code !== 'invalid_union') return path
  const inner = issue.errors.map((errors) => errors[0]).find((error) => error !== undefined && error.path.length > 0)
  return inner === undefined ? path : [...path, ...toPath(inner.path)]
}

/** `"port": "$PORT"`: a variable is always text, so where a number or a flag is expected it is read as one. */
function coerceFromEnvironment(
  value: Record<string, unknown>,
  issues: readonly Issue[],
  { fromEnvironment }: Expanded,
): Record<string, unknown> {
  let coerced = value
  for (const issue of issues) {
    const path = toPath(issue.path)
    if (issue.code !== 'invalid_type' || !fromEnvironment.has(JSON.stringify(path))) continue
    const text = String(valueAt(value, path)).trim()
    if (issue.expected === 'number' || issue.expected === 'int') {
      if (text !== '' && Number.isFinite(Number(text))) coerced = withValue(coerced, path, Number(text))
    } else if (issue.expected === 'boolean' && /^(true|false|1|0)$/i.test(text)) {
      coerced = withValue(coerced, path, /^(true|1)$/i.test(text))
    }
  }
  return coerced
}

function toPath(path: readonly PropertyKey[]): KeyPath {
  return path.map((part) => (typeof part === 'symbol' ? String(part) : part))
}

function valueAt(value: unknown, path: KeyPath): unknown {
  let current = value
  for (const part of path) {
    if (Array.isArray(current)) current = current[Number(part)]
    else current = isRecord(current) && Object.hasOwn(current, part) ? current[part] : undefined
  }
  return current
}

/** A copy in which one value differs; missing sections on the way are made. */
export function withValue(
  value: Record<string, unknown>,
  path: KeyPath,
  replacement: unknown,
): Record<string, unknown> {
  const [head, ...rest] = path
  if (head === undefined) return value
  const child = value[head]
  if (rest.length === 0) return { ...value, [head]: replacement }
  if (Array.isArray(child))
    return { ...value, [head]: child.map((item, index) => (index === rest[0] ? replacement : item)) }
  return { ...value, [head]: withValue(isRecord(child) ? child : {}, rest, replacement) }
}

function without(value: Record<string, unknown>, paths: readonly KeyPath[]): Record<string, unknown> {
  const copy = structuredClone(value)
  for (const path of paths) {
    const parent = valueAt(copy, path.slice(0, -1))
    if (isRecord(parent)) delete parent[String(path.at(-1))]
  }
  return copy
}
