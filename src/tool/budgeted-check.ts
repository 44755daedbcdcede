import { isRecord, type JsonValue } from '../base/json.ts'

/** As the compiled checks name it. */
export interface SchemaProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string
}

/** Comparisons of one check: about 5 ms. Real schemas need some hundreds. */
const MAX_STEPS = 100_000
/** Of schemas in schemas at one place of the value, and of values in values. */
const MAX_DEPTH = 200
const MAX_PROBLEMS = 20

/**
 * Holds a value against a schema that another program wrote, by walking both. Compiled, such a schema can run for years:
 * references that double at every level, unique items among thousands. Here every comparison is paid from a budget.
 * Regular expressions and unique items are not looked at. An empty list: nothing is wrong. `undecided`: the budget is used up.
 */
export function checkWithinBudget(
  schema: JsonValue,
  value: JsonValue,
  maxSteps = MAX_STEPS,
): readonly SchemaProblem[] | 'undecided' {
  try {
    return new BudgetedCheck(schema, maxSteps).check(schema, value, '', 0)
  } catch (thrown) {
    if (thrown instanceof BudgetUsedUp) return 'undecided'
    throw thrown
  }
}

/** The first reference of a schema that leads nowhere. */
export function danglingReference(schema: JsonValue): string | undefined {
  const open: unknown[] = [schema]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== 'object' || value === null) continue
    const reference = '$ref' in value ? value.$ref : undefined
    if (typeof reference === 'string' && resolveReference(schema, reference) === undefined) return reference
    for (const inner of Object.values(value)) if (inner !== undefined) open.push(inner)
  }
  return undefined
}

class BudgetUsedUp extends Error {}

type Schema = Readonly<Record<string, unknown>>
type Problems = readonly SchemaProblem[]

class BudgetedCheck {
  readonly #root: unknown
  #steps: number

  constructor(root: unknown, maxSteps: number) {
    this.#root = root
    this.#steps = maxSteps
  }

  check(schema: unknown, value: unknown, path: string, depth: number): Problems {
    this.#pay(1)
    if (depth > MAX_DEPTH) throw new BudgetUsedUp()
    if (schema === false) return [problem('false schema', path, {}, 'is not allowed')]
    if (!isRecord(schema)) return []
    const problems = [
      ...this.#type(schema, value, path),
      ...this.#values(schema, value, path),
      ...this.#combined(schema, value, path, depth),
      ...(typeof value === 'number' ? numberProblems(schema, value, path) : []),
      ...(typeof value === 'string' ? textProblems(schema, value, path) : []),
      ...(Array.isArray(value) ? this.#items(schema, value, path, depth) : []),
      ...(isRecord(value) ? this.#properties(schema, value, path, depth) : []),
    ]
    return problems.slice(0, MAX_PROBLEMS)
  }

  #isValid(schema: unknown, value: unknown, path: string, depth: number): boolean {
    return this.check(schema, value, path, depth).length === 0
  }

  #type({ type }: Schema, value: unknown, path: string): Problems {
    if (type === undefined) return []
    const types: readonly unknown[] = Array.isArray(type) ? type : [type]
    if (types.some((name) => isOfType(value, name))) return []
    return [problem('type', path, {}, `must be ${types.join(' or ')}`)]
  }

  #values(schema: Schema, value: unknown, path: string): Problems {
    const allowed = schema['enum']
    if (Array.isArray(allowed) && !allowed.some((one: unknown) => this.#isEqual(one, value)))
      return [problem('enum', path, { allowedValues: allowed.slice(0, 50) })]
    if ('const' in schema && !this.#isEqual(schema['const'], value))
      return [problem('const', path, { allowedValue: schema['const'] })]
    return []
  }

  /** Schemas for the same value. */
  #combined(schema: Schema, value: unknown, path: string, depth: number): Problems {
    const all = listOf(schema['allOf']).flatMap((one) => this.check(one, value, path, depth + 1))
    const referred = '$ref' in schema ? this.#referred(schema['$ref'], value, path, depth + 1) : []
    return [...referred, ...all, ...this.#chosen(schema, value, path, depth + 1)]
  }

  #chosen(schema: Schema, value: unknown, path: string, depth: number): Problems {
    const problems: SchemaProblem[] = []
    const { anyOf, oneOf, not } = schema
    if (Array.isArray(anyOf) && !anyOf.some((one) => this.#isValid(one, value, path, depth)))
      problems.push(problem('anyOf', path, {}, 'must match a schema in anyOf'))
    if (Array.isArray(oneOf) && oneOf.filter((one) => this.#isValid(one, value, path, depth)).length !== 1)
      problems.push(problem('oneOf', path, {}, 'must match exactly one schema in oneOf'))
    if (not !== undefined && this.#isValid(not, value, path, depth))
      problems.push(problem('not', path, {}, 'must NOT be valid'))
    if (schema['if'] !== undefined) {
      const branch = this.#isValid(schema['if'], value, path, depth) ? schema['then'] : schema['else']
      problems.push(...this.check(branch ?? true, value, path, depth))
    }
    return problems
  }

  #items(schema: Schema, values: readonly unknown[], path: string, depth: number): Problems {
    // Draft 7 has the list in `items` and the rest in `additionalItems`.
    const { items } = schema
    const first = listOf(Array.isArray(items) ? items : schema['prefixItems'])
    const rest = Array.isArray(items) ? schema['additionalItems'] : items
    const { contains } = schema
    return [
      ...sizeProblems(schema, values.length, path, 'Items', 'items'),
      ...values.flatMap((value, at) => this.check(first[at] ?? rest ?? true, value, `${path}/${at}`, depth + 1)),
      ...(contains === undefined || values.some((value) => this.#isValid(contains, value, path, depth + 1))
        ? []
        : [problem('contains', path, {}, 'must contain a valid item')]),
    ]
  }

  #properties(schema: Schema, value: Schema, path: string, depth: number): Problems {
    const names = Object.keys(value)
    this.#pay(names.length)
    const missing = [...listOf(schema['required']), ...requiredBy(schema['dependentRequired'], value)].filter(
      (name) => typeof name === 'string' && !Object.hasOwn(value, name),
    )
    this.#pay(missing.length)
    return [
      ...sizeProblems(schema, names.length, path, 'Properties', 'properties'),
      ...missing.map((missingProperty) => problem('required', path, { missingProperty })),
      ...names.flatMap((name) => this.#property(schema, name, value[name], path, depth)),
    ]
  }

  #property(schema: Schema, name: string, value: unknown, path: string, depth: number): Problems {
    const { properties, additionalProperties, propertyNames } = schema
    const at = `${path}/${name.slice(0, 100)}`
    const named = propertyNames === undefined ? [] : this.check(propertyNames, name, at, depth + 1)
    if (isRecord(properties) && Object.hasOwn(properties, name))
      return [...named, ...this.check(properties[name], value, at, depth + 1)]
    // The patterns that would allow it are not run.
    if (additionalProperties === undefined || 'patternProperties' in schema) return named
    if (additionalProperties === false)
      return [...named, problem('additionalProperties', path, { additionalProperty: name.slice(0, 100) })]
    return [...named, ...this.check(additionalProperties, value, at, depth + 1)]
  }

  #referred(reference: unknown, value: unknown, path: string, depth: number): Problems {
    if (typeof reference !== 'string') return []
    this.#pay(reference.length)
    return this.check(resolveReference(this.#root, reference), value, path, depth)
  }

  #isEqual(one: unknown, other: unknown): boolean {
    this.#pay(1)
    if (one === other) return true
    if (Array.isArray(one) && Array.isArray(other))
      return one.length === other.length && one.every((item, at) => this.#isEqual(item, other[at]))
    if (!isRecord(one) || !isRecord(other)) return false
    const names = Object.keys(one)
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && this.#isEqual(one[name], other[name]))
    )
  }

  #pay(steps: number): void {
    this.#steps -= steps
    if (this.#steps < 0) throw new BudgetUsedUp()
  }
}

/** Within the document only. */
function resolveReference(root: unknown, reference: string): unknown {
  if (!/^#(?:\/|$)/.test(reference)) return undefined
  let at = root
  for (const segment of reference.split('/').slice(1)) {
    const name = decoded(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    const item: unknown = Array.isArray(at) ? at[Number(name)] : undefined
    at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : item
  }
  return at
}

function numberProblems(schema: Schema, value: number, path: string): Problems {
  const limit = (keyword: string, sign: string, isKept: (bound: number) => boolean): Problems => {
    const bound = schema[keyword]
    return typeof bound !== 'number' || isKept(bound) ? [] : [problem(keyword, path, {}, `must be ${sign} ${bound}`)]
  }
  return [
    ...limit('minimum', '>=', (bound) => value >= bound),
    ...limit('maximum', '<=', (bound) => value <= bound),
    ...limit('exclusiveMinimum', '>', (bound) => value > bound),
    ...limit('exclusiveMaximum', '<', (bound) => value < bound),
    ...limit('multipleOf', 'multiple of', (bound) => bound <= 0 || Number.isInteger(value / bound)),
  ]
}

/** Characters are counted as JSON Schema does, by code point; a text far over the limit need not be counted. */
function textProblems(schema: Schema, value: string, path: string): Problems {
  if (schema['minLength'] === undefined && schema['maxLength'] === undefined) return []
  return sizeProblems(schema, Array.from(value).length, path, 'Length', 'characters')
}

function sizeProblems(schema: Schema, size: number, path: string, keyword: string, unit: string): Problems {
  const least = schema[`min${keyword}`]
  const most = schema[`max${keyword}`]
  return [
    ...(typeof least === 'number' && size < least
      ? [problem(`min${keyword}`, path, {}, `must NOT have fewer than ${least} ${unit}`)]
      : []),
    ...(typeof most === 'number' && size > most
      ? [problem(`max${keyword}`, path, {}, `must NOT have more than ${most} ${unit}`)]
      : []),
  ]
}

function requiredBy(dependencies: unknown, value: Schema): readonly unknown[] {
  if (!isRecord(dependencies)) return []
  return Object.entries(dependencies).flatMap(([name, needed]) => (Object.hasOwn(value, name) ? listOf(needed) : []))
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value)
    default:
      return typeof value === type
  }
}

function problem(
  keyword: string,
  instancePath: string,
  params: SchemaProblem['params'],
  message?: string,
): SchemaProblem {
  return { keyword, instancePath, params, ...(message === undefined ? {} : { message }) }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
