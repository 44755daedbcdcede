import { createRequire } from 'node:module'
import type * as AjvModule from 'ajv'
import type { Options, ValidateFunction } from 'ajv'
import type * as Ajv2020Module from 'ajv/dist/2020.js'
import { jsonExcess, isRecord, type JsonObject } from '../base/json.ts'
import { checkWithinBudget, danglingReference, type SchemaProblem } from './budgeted-check.ts'

/** Undefined when the arguments are valid, else a sentence that tells the model what to change. */
export type CheckArguments = (callArguments: JsonObject) => string | undefined

export interface CompileOptions {
  /** The schema came from another program: its size is bounded, it is walked within a budget and never compiled. */
  readonly untrusted?: boolean
  /**
   * One of our own: small, known to be right, and walked instead of compiled. So neither a start nor the first call of
   * a tool pays for the compiler.
   */
  readonly own?: boolean
}

const MAX_NAMED_PROBLEMS = 5
const MAX_SCHEMA_CHARS = 64 * 1024
const MAX_SCHEMA_DEPTH = 64
/** Of the arguments for a tool of another program. */
const MAX_ARGUMENT_CHARS = 1024 * 1024

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  validateFormats: false,
  logger: false,
}

/** Throws when the schema cannot be used: not an object schema, not valid, too large. */
export function compileArguments(schema: JsonObject, options: CompileOptions = {}): CheckArguments {
  if (schema['type'] !== 'object') throw new Error('the schema does not describe an object')
  if (options.untrusted === true) return untrustedCheck(schema)
  if (options.own === true) return ownCheck(schema)
  const validate = compile(schema)
  return (callArguments) => {
    if (isValid(validate, callArguments)) return undefined
    return describeProblems(validate.errors ?? [], schema)
  }
}

function ownCheck(schema: JsonObject): CheckArguments {
  return (callArguments) => {
    const problems = checkWithinBudget(schema, callArguments)
    // The budget is far above what our schemas need: only arguments of absurd size or depth exhaust it.
    if (problems === 'undecided') return describeProblems([], schema)
    return problems.length === 0 ? undefined : describeProblems(problems, schema)
  }
}

/** Loads the compiler, which takes longer than a message should wait: before those that need it arrive. */
export function loadSchemaCompiler(): void {
  compilers()
}

/** Model APIs refuse a request with an invalid schema in it, so one is found out before it is offered. */
function untrustedCheck(schema: JsonObject): CheckArguments {
  const text = JSON.stringify(schema)
  if (text.length > MAX_SCHEMA_CHARS) throw new Error(`the schema is longer than ${MAX_SCHEMA_CHARS} characters`)
  if (jsonExcess(text, { maxDepth: MAX_SCHEMA_DEPTH, maxMarks: MAX_SCHEMA_CHARS }) !== undefined)
    throw new Error('the schema is nested too deeply')
  checkDialect(schema)
  const dangling = danglingReference(schema)
  if (dangling !== undefined) throw new Error(`can't resolve reference ${dangling.slice(0, 100)}`)
  if (checkWithinBudget(schema, {}) === 'undecided') throw new Error('its references lead in circles or multiply')
  return (callArguments) => {
    const { length } = JSON.stringify(callArguments)
    if (length > MAX_ARGUMENT_CHARS)
      return `The arguments are too long: ${length} characters of JSON, at most ${MAX_ARGUMENT_CHARS} are taken.`
    const problems = checkWithinBudget(schema, callArguments)
    // The server that wrote the schema checks its arguments itself: what was not decided here is decided there.
    if (problems === 'undecided' || problems.length === 0) return undefined
    return describeProblems(problems, schema)
  }
}

interface Compilers {
  readonly Ajv: typeof AjvModule.Ajv
  readonly Ajv2020: typeof Ajv2020Module.Ajv2020
  /** Compiled once: checking a schema against its own dialect is the slow part. */
  readonly draft07: AjvModule.Ajv
  readonly draft2020: Ajv2020Module.Ajv2020
}

let loaded: Compilers | undefined

/** Needed for tools of plugins and MCP servers only. It is CommonJS, so it can be loaded late and at once. */
function compilers(): Compilers {
  if (loaded === undefined) {
    const require = createRequire(import.meta.url)
    const { Ajv } = require('ajv') as typeof AjvModule
    const { Ajv2020 } = require('ajv/dist/2020.js') as typeof Ajv2020Module
    loaded = { Ajv, Ajv2020, draft07: new Ajv(OPTIONS), draft2020: new Ajv2020(OPTIONS) }
  }
  return loaded
}

/** An instance for each: schemas may share an `$id`, and one that fails to compile leaves its instance in disorder. */
function compile(schema: JsonObject): ValidateFunction {
  const { body, isDraft07 } = checkDialect(schema)
  const { Ajv, Ajv2020 } = compilers()
  const options = { ...OPTIONS, meta: false, validateSchema: false }
  return (isDraft07 ? new Ajv(options) : new Ajv2020(options)).compile(body)
}

function checkDialect(schema: JsonObject): { readonly body: JsonObject; readonly isDraft07: boolean } {
  const { $schema: dialect, ...body } = schema
  const isDraft07 = typeof dialect === 'string' && dialect.includes('draft-07')
  const { draft07, draft2020 } = compilers()
  const checker = isDraft07 ? draft07 : draft2020
  if (checker.validateSchema(body) !== true) throw new Error(`the schema is invalid: ${checker.errorsText()}`)
  return { body, isDraft07 }
}

/** A schema that refers to itself without end, or arguments nested too deep, exhaust the stack: that is not valid. */
function isValid(validate: ValidateFunction, callArguments: JsonObject): boolean {
  try {
    return validate(callArguments)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    validate.errors = null
    return false
  }
}

function describeProblems(errors: readonly SchemaProblem[], schema: JsonObject): string {
  const problems = [...new Set(errors.map(describeProblem))]
  const named = problems.slice(0, MAX_NAMED_PROBLEMS).join('; ') || 'they are nested too deeply'
  const more = problems.length > MAX_NAMED_PROBLEMS ? `; and ${problems.length - MAX_NAMED_PROBLEMS} more` : ''
  const properties = isRecord(schema['properties']) ? Object.keys(schema['properties']) : []
  const known = properties.length > 0 ? ` Known arguments: ${properties.slice(0, 30).join(', ')}.` : ''
  return `The arguments are not valid: ${named}${more}.${known}`
}

function describeProblem(error: SchemaProblem): string {
  const where = error.instancePath === '' ? '' : `"${error.instancePath.slice(1).replaceAll('/', '.')}" `
  const { params } = error
  switch (error.keyword) {
    case 'required':
      return `${where}is missing "${String(params['missingProperty'])}"`.trimStart()
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `${where}has an unknown argument "${String(params['additionalProperty'] ?? params['unevaluatedProperty'])}"`.trimStart()
    case 'enum':
      return `${where}must be one of ${JSON.stringify(params['allowedValues'])}`
    case 'const':
      return `${where}must be ${JSON.stringify(params['allowedValue'])}`
    default:
      return `${where}${error.message ?? 'is not valid'}`
  }
}
