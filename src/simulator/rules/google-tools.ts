import { isRecord } from '../../base/json.ts'
import { FUNCTION, SCHEMA, TOOL } from './google-fields.ts'
import { checkFields, type GoogleFindings, proto } from './google-shape.ts'
import { asText } from './wire-text.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/

export function checkGoogleTools(findings: GoogleFindings, body: Record<string, unknown>): void {
  if (!Array.isArray(body.tools)) return
  const seen = new Set<string>()
  body.tools.forEach((tool, index) => {
    const path = `tools[${index}]`
    if (!isRecord(tool)) return
    checkFields(findings, path, tool, TOOL)
    const declarations = proto(tool, 'functionDeclarations')
    if (!Array.isArray(declarations)) return
    declarations.forEach((declaration, place) => {
      if (isRecord(declaration))
        checkDeclaration(findings, `${path}.function_declarations[${place}]`, declaration, seen)
    })
  })
}

function checkDeclaration(
  findings: GoogleFindings,
  path: string,
  declaration: Record<string, unknown>,
  seen: Set<string>,
): void {
  checkFields(findings, path, declaration, FUNCTION)
  const name = asText(declaration.name)
  if (typeof declaration.name !== 'string' || !NAME.test(name)) {
    const text =
      `* GenerateContentRequest.${path}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric ` +
      '(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n'
    findings.add('function-name', `${path}.name`, text)
  }
  if (seen.has(name)) findings.add('function-names-unique', path, `Duplicate function declaration found: ${name}`)
  seen.add(name)
  const json = proto(declaration, 'parametersJsonSchema')
  if (isRecord(declaration.parameters)) {
    checkSchema(findings, `${path}.parameters`, declaration.parameters)
    if (json !== undefined) {
      const text = `* GenerateContentRequest.${path}: only one of parameters and parameters_json_schema can be set\n`
      findings.add('function-schema', path, text)
    }
  }
}

function checkSchema(findings: GoogleFindings, path: string, schema: Record<string, unknown>): void {
  checkFields(findings, path, schema, SCHEMA)
  const refuse = (at: string, text: string): void =>
    findings.add('function-schema', `${path}.${at}`, `* GenerateContentRequest.${path}.${at}: ${text}\n`)
  const type = typeof schema.type === 'string' ? schema.type.toUpperCase() : undefined
  const properties = isRecord(schema.properties) ? schema.properties : undefined
  if (type === 'ARRAY' && !isRecord(schema.items)) refuse('items', 'missing field.')
  if (type === 'OBJECT' && (properties === undefined || Object.keys(properties).length === 0)) {
    refuse('properties', 'should be non-empty for OBJECT type')
  }
  if (type !== 'OBJECT') {
    if (properties !== undefined) refuse('properties', 'only allowed for OBJECT type')
    if (Array.isArray(schema.required)) refuse('required', 'only allowed for OBJECT type')
  }
  if (Array.isArray(schema.enum) && type !== 'STRING') refuse('enum', 'only allowed for STRING type')
  if (Array.isArray(schema.required)) {
    schema.required.forEach((key, index) => {
      if (!Object.hasOwn(properties ?? {}, asText(key))) refuse(`required[${index}]`, 'property is not defined')
    })
  }
  for (const [key, child] of Object.entries(properties ?? {})) {
    if (isRecord(child)) checkSchema(findings, `${path}.properties[${key}]`, child)
  }
  if (isRecord(schema.items)) checkSchema(findings, `${path}.items`, schema.items)
  const choices = proto(schema, 'anyOf')
  if (!Array.isArray(choices)) return
  choices.forEach((child, index) => {
    if (isRecord(child)) checkSchema(findings, `${path}.any_of[${index}]`, child)
  })
}
