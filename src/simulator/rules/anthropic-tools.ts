import { isRecord } from '../../base/json.ts'
import { type AnthropicFindings, checkFields } from './anthropic-shape.ts'
import { TOOL, TOOL_CHOICE } from './anthropic-fields.ts'
import { asText } from './wire-text.ts'

const NAME = /^[a-zA-Z0-9_-]{1,128}$/

export function checkAnthropicTools(findings: AnthropicFindings, body: Record<string, unknown>): void {
  const names = new Set<string>()
  const tools = Array.isArray(body.tools) ? body.tools : []
  tools.forEach((tool, index) => {
    if (!isRecord(tool))
      return findings.add('field-type', `tools.${index}`, `tools.${index}: Input should be a valid dictionary`)
    // Tools the service itself runs have a dated type and their own fields; we do not use them and do not judge them.
    const isServerTool = typeof tool.type === 'string' && tool.type !== 'custom'
    if (!isServerTool) checkTool(findings, `tools.${index}.custom`, tool)
    if (typeof tool.name !== 'string') return undefined
    if (names.has(tool.name)) findings.add('tool-names-unique', `tools.${index}`, 'tools: Tool names must be unique.')
    return names.add(tool.name)
  })
  checkToolChoice(findings, body, names)
}

function checkTool(findings: AnthropicFindings, path: string, tool: Record<string, unknown>): void {
  checkFields(findings, path, tool, TOOL)
  if (typeof tool.name === 'string' && !NAME.test(tool.name)) {
    findings.add('tool-name', `${path}.name`, `${path}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
  }
  const schema = tool.input_schema
  if (!isRecord(schema)) return
  if (schema.type !== 'object') {
    const text = schema.type === undefined ? 'Field required' : "Input should be 'object'"
    findings.add('tool-schema', `${path}.input_schema.type`, `${path}.input_schema.type: ${text}`)
  }
  if (['oneOf', 'allOf', 'anyOf'].some((word) => schema[word] !== undefined)) {
    const text = `${path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`
    findings.add('tool-schema', `${path}.input_schema`, text)
  }
}

function checkToolChoice(findings: AnthropicFindings, body: Record<string, unknown>, names: ReadonlySet<string>): void {
  const choice = body.tool_choice
  if (!isRecord(choice)) return
  checkFields(findings, 'tool_choice', choice, TOOL_CHOICE)
  if (names.size === 0) {
    findings.add('tool-choice', 'tool_choice', 'tool_choice: tool_choice may only be specified while providing tools.')
  } else if (choice.type === 'tool' && !names.has(asText(choice.name))) {
    findings.add('tool-choice', 'tool_choice.name', `Tool '${asText(choice.name)}' not found in provided tools`)
  }
}
