import { isRecord } from '../../base/json.ts'
import { type Field, type FieldKind, fieldProblems, type Fields, isKind } from './fields.ts'
import { imageInfo, isBase64 } from './image-info.ts'
import type { Findings, RuleTable } from './rule.ts'
import { asText } from './wire-text.ts'

/** The rules both OpenAI APIs have in common, so that shared checks can name them. */
export type OpenAiFindings = Pick<Findings<RuleTable>, 'add'>

const TYPE_NAMES: ReadonlyMap<FieldKind, string> = new Map([
  ['string', 'a string'],
  ['array', 'an array of objects'],
  ['object', 'an object'],
  ['integer', 'an integer'],
  ['number', 'a decimal'],
  ['boolean', 'a boolean'],
  ['null', 'null'],
])

const TOOL_NAME = /^[a-zA-Z0-9_-]+$/
const MAX_TOOL_NAME_CHARS = 64
const MAX_TOOLS = 128
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const DATA_URL = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i

/** Missing, unknown and mistyped parameters, in the words of the service. */
export function checkFields(
  findings: OpenAiFindings,
  path: string,
  value: Readonly<Record<string, unknown>>,
  allowed: Fields,
): boolean {
  const problems = fieldProblems(value, allowed)
  for (const problem of problems) {
    const at = path === '' ? problem.key : `${path}.${problem.key}`
    if (problem.kind === 'missing') findings.add('required-field', at, `Missing required parameter: '${at}'.`)
    else if (problem.kind === 'unknown') findings.add('unknown-field', at, `Unknown parameter: '${at}'.`)
    else if (problem.kind === 'value') findings.add('field-value', at, wrongValue(value[problem.key], problem.field))
    else findings.add('field-type', at, wrongType(at, value[problem.key], problem.field))
  }
  return problems.length === 0
}

function wrongValue(value: unknown, field: Field): string {
  const values = (field.values ?? []).map((known) => `'${known}'`)
  const list = values.length > 1 ? `${values.slice(0, -1).join(', ')}, and ${values.at(-1)}` : (values[0] ?? '')
  return `Invalid value: '${asText(value)}'. Supported values are: ${list}.`
}

function wrongType(at: string, value: unknown, field: Field): string {
  const expected = field.kinds.map((kind) => TYPE_NAMES.get(kind)).join(' or ')
  const got = (['null', 'array', 'object', 'integer', 'number', 'boolean', 'string'] as const).find((kind) =>
    isKind(value, kind),
  )
  return `Invalid type for '${at}': expected ${expected}, but got ${TYPE_NAMES.get(got ?? 'null')} instead.`
}

export function tooLong(at: string, limit: number, length: number): string {
  return `Invalid '${at}': string too long. Expected a string with maximum length ${limit}, but got a string with length ${length} instead.`
}

export function emptyArray(at: string): string {
  return `Invalid '${at}': empty array. Expected an array with minimum length 1, but got an empty array instead.`
}

function badPattern(at: string, pattern: string): string {
  return `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '${pattern}'.`
}

export function checkToolName(findings: OpenAiFindings, at: string, name: unknown): void {
  if (typeof name !== 'string') return
  if (!TOOL_NAME.test(name)) findings.add('tool-name', at, badPattern(at, '^[a-zA-Z0-9_-]+$'))
  else if (name.length > MAX_TOOL_NAME_CHARS)
    findings.add('tool-name', at, tooLong(at, MAX_TOOL_NAME_CHARS, name.length))
}

export interface FunctionTool {
  readonly path: string
  readonly name: unknown
  readonly parameters: unknown
  readonly strict: unknown
}

/** Function definitions, wherever the API keeps them. Returns the names that `tool_choice` may use. */
export function checkFunctions(findings: OpenAiFindings, tools: readonly FunctionTool[]): ReadonlySet<string> {
  if (tools.length > MAX_TOOLS) {
    const text = `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}, but got an array with length ${tools.length} instead.`
    findings.add('tool-count', 'tools', text)
  }
  const names = new Set<string>()
  for (const tool of tools) {
    checkToolName(findings, `${tool.path}.name`, tool.name)
    if (typeof tool.name === 'string') {
      if (names.has(tool.name)) findings.add('tool-names-unique', tool.path, `Duplicate tool name: '${tool.name}'.`)
      names.add(tool.name)
    }
    if (isRecord(tool.parameters)) {
      checkSchema(findings, `${tool.path}.parameters`, asText(tool.name), tool.parameters, tool.strict === true)
    }
  }
  return names
}

function checkSchema(
  findings: OpenAiFindings,
  path: string,
  name: string,
  schema: Record<string, unknown>,
  isStrict: boolean,
): void {
  const refuse = (reason: string): void =>
    findings.add('tool-schema', path, `Invalid schema for function '${name}': ${reason}`)
  if (Object.keys(schema).length > 0 && schema.type !== 'object') {
    refuse(
      `schema must be a JSON Schema of 'type: "object"', got 'type: "${typeof schema.type === 'string' ? schema.type : 'None'}"'.`,
    )
  }
  const visit = (node: unknown, context: string): void => {
    if (!isRecord(node)) return
    if (node.type === 'array' && node.items === undefined)
      refuse(`In context=(${context}), array schema missing items.`)
    const properties = isRecord(node.properties) ? node.properties : {}
    if (isStrict && node.type === 'object') {
      if (node.additionalProperties !== false) {
        refuse(`In context=(${context}), 'additionalProperties' is required to be supplied and to be false.`)
      }
      const listed = Array.isArray(node.required) ? node.required : []
      const missing = Object.keys(properties).find((key) => !listed.includes(key))
      if (missing !== undefined) {
        refuse(
          `In context=(${context}), 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`,
        )
      }
    }
    for (const [key, child] of Object.entries(properties)) visit(child, `'properties', '${key}'`)
    visit(node.items, `${context}, 'items'`)
  }
  visit(schema, '')
}

/** An image as a URL or a data URL. */
export function checkImageUrl(findings: OpenAiFindings, at: string, url: unknown): void {
  if (typeof url !== 'string') return
  if (/^https?:\/\//i.test(url)) return
  const head = DATA_URL.exec(url)
  if (head === null) {
    const text = `Invalid '${at}'. Expected a valid URL, but got a value with an invalid format.`
    return findings.add('image-url', at, text)
  }
  const mimeType = (head[1] ?? '').toLowerCase()
  const data = url.slice(head[0].length)
  if (!isBase64(data)) {
    return findings.add(
      'image-data',
      at,
      `Invalid '${at}'. Expected a base64-encoded data URL with an image MIME type.`,
    )
  }
  const info = imageInfo(data)
  if (!IMAGE_TYPES.includes(mimeType) || info === undefined || !IMAGE_TYPES.includes(info.mimeType)) {
    const text =
      'You uploaded an unsupported image. Please make sure your image has of one the following formats: ' +
      "['png', 'jpeg', 'gif', 'webp']."
    return findings.add('image-format', at, text)
  }
  return undefined
}

/** Reasoning models sample in their own way; gpt-5.1 and later take sampling settings again when reasoning is off. */
export function isReasoningModel(model: string): boolean {
  return /^(?:o\d|gpt-5(?![.\d]))/.test(model)
}
