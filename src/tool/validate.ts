import { createRequire } from 'node:module'
import type * as AjvModule from 'ajv'
import type { ErrorObject, Options, ValidateFunction } from 'ajv'
import type * as Ajv2020Module from 'ajv/dist/2020.js'
import { isRecord, type JsonObject } from '../base/json.ts'
import { withoutPatterns } from './untrusted-schema.ts'

/** Undefined when the arguments are valid, else a sentence that tells the model what to change. */
export type CheckArguments = (callArguments: JsonObject) => string | undefined

export interface CompileOptions {
  /** The schema came from another program: its regular expressions are not run, its size is bounded. */
  readonly untrusted?: boolean
  /** Compile when it is used first. For schemas known to compile: a start must not pay for tools that nobody calls. */
  readonly late?: boolean
}

const MAX_NAMED_PROBLEMS = 5
const MAX_SCHEMA_CHARS = 256 * 1024

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  validateFormats: false,
  logger: false,
}

/** Throws when the schema cannot be used: not an object schema, not compilable, too large. */
export function compileArguments(schema: JsonObject, options: CompileOptions = {}): CheckArguments {
  if (schema['type'] !== 'object') throw new Error('the schema does not describe an object')
  if (options.untrusted === true && JSON.stringify(schema).length > MAX_SCHEMA_CHARS) {
    throw new Error(`the schema is longer than ${MAX_SCHEMA_CHARS} characters`)
  }
  const checked = options.untrusted === true ? withoutPatterns(schema) : schema
  let validate = options.late === true ? undefined : compile(checked)
  return (callArguments) => {
    validate ??= compile(checked)
    if (isValid(validate, callArguments)) return undefined
    return describeProblems(validate.errors ?? [], schema)
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

/** The compiler is needed with the first call of a tool, not at the start. It is CommonJS, so it can be loaded late and at once. */
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
  const { $schema: dialect, ...body } = schema
  const isDraft07 = typeof dialect === 'string' && dialect.includes('draft-07')
  const { Ajv, Ajv2020, draft07, draft2020 } = compilers()
  const checker = isDraft07 ? draft07 : draft2020
  if (checker.validateSchema(body) !== true) throw new Error(`the schema is invalid: ${checker.errorsText()}`)
  const options = { ...OPTIONS, meta: false, validateSchema: false }
  return (isDraft07 ? new Ajv(options) : new Ajv2020(options)).compile(body)
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

function describeProblems(errors: readonly ErrorObject[], schema: JsonObject): string {
  const problems = [...new Set(errors.map(describeProblem))]
  const named = problems.slice(0, MAX_NAMED_PROBLEMS).join('; ') || 'they are nested too deeply'
  const more = problems.length > MAX_NAMED_PROBLEMS ? `; and ${problems.length - MAX_NAMED_PROBLEMS} more` : ''
  const properties = isRecord(schema['properties']) ? Object.keys(schema['properties']) : []
  const known = properties.length > 0 ? ` Known arguments: ${properties.slice(0, 30).join(', ')}.` : ''
  return `The arguments are not valid: ${named}${more}.${known}`
}

function describeProblem(error: ErrorObject): string {
  const where = error.instancePath === '' ? '' : `"${error.instancePath.slice(1).replaceAll('/', '.')}" `
  const params: Record<string, unknown> = error.params
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
