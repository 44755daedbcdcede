import { isRecord } from '../../base/json.ts'
import { fieldProblems, type Fields } from './fields.ts'
import { decodedBytes, imageInfo, isBase64 } from './image-info.ts'
import { BODY, CALLED_FUNCTION, CHUNKS, FUNCTION, IMAGE_URL, MESSAGES, TOOL, TOOL_CALL } from './mistral-fields.ts'
import { checkMistralOrder } from './mistral-order.ts'
import { MISTRAL_RULES } from './mistral-rules.ts'
import { type CheckOptions, Findings, type RuleViolation } from './rule.ts'
import { asText, exceedsBytes, wireFacts } from './wire-text.ts'

const MAX_BODY_BYTES = 50 * 1024 * 1024
const MAX_IMAGES = 8
const MAX_IMAGE_BYTES = 10 * 1024 * 1024
const CALL_ID = /^[a-zA-Z0-9]{9}$/
const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const DATA_URL = /^data:(image\/[a-z+.-]+);base64,/i
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

export type MistralFindings = Findings<typeof MISTRAL_RULES>

export interface MistralMessage {
  readonly [field: string]: unknown
  readonly index: number
  readonly role: string
}

/** Everything about Mistral's `POST /v1/chat/completions` the service would refuse. */
export function checkMistralRequest(body: unknown, options: CheckOptions = {}): readonly RuleViolation[] {
  const findings: MistralFindings = new Findings('mistral', MISTRAL_RULES, options.profile ?? 'strict')
  if (!isRecord(body)) {
    findings.add('body-object', 'body', 'Input should be a valid dictionary or object to extract fields from')
    return findings.all
  }
  const facts = wireFacts(body)
  if (facts.loneSurrogateAt !== undefined) findings.add('valid-unicode', facts.loneSurrogateAt, 'JSON decode error')
  if (exceedsBytes(body, facts, MAX_BODY_BYTES, options.bodyBytes))
    findings.add('request-bytes', 'body', 'Request entity too large')
  checkFields(findings, '', body, BODY)
  checkSampling(findings, body)
  checkTools(findings, body.tools)
  const messages = readMessages(findings, body.messages)
  checkMistralOrder(findings, messages)
  return findings.all
}

function checkFields(
  findings: MistralFindings,
  path: string,
  value: Readonly<Record<string, unknown>>,
  allowed: Fields,
): void {
  for (const problem of fieldProblems(value, allowed)) {
    const at = path === '' ? problem.key : `${path}.${problem.key}`
    if (problem.kind === 'missing') findings.add('required-field', at, 'Field required')
    else if (problem.kind === 'unknown') findings.add('unknown-field', at, 'Extra inputs are not permitted')
    else findings.add('field-type', at, `Input should be ${(problem.field.values ?? problem.field.kinds).join(' or ')}`)
  }
}

function checkSampling(findings: MistralFindings, body: Record<string, unknown>): void {
  for (const [name, max] of [
    ['temperature', 1.5],
    ['top_p', 1],
  ] as const) {
    const value = body[name]
    if (typeof value === 'number' && (value < 0 || value > max)) {
      findings.add('sampling', name, `Input should be greater than or equal to 0 and less than or equal to ${max}`)
    }
  }
}

function checkTools(findings: MistralFindings, tools: unknown): void {
  if (!Array.isArray(tools)) return
  tools.forEach((tool, index) => {
    const path = `tools.${index}`
    if (!isRecord(tool)) return findings.add('field-type', path, 'Input should be a valid dictionary')
    checkFields(findings, path, tool, TOOL)
    if (!isRecord(tool.function)) return undefined
    checkFields(findings, `${path}.function`, tool.function, FUNCTION)
    checkName(findings, `${path}.function.name`, tool.function.name)
    const schema = tool.function.parameters
    if (
      isRecord(schema) &&
      schema.type !== undefined &&
      typeof schema.type !== 'string' &&
      !Array.isArray(schema.type)
    ) {
      findings.add(
        'tool-schema',
        `${path}.function.parameters`,
        'Invalid tool schema: type is not valid under any of the given schemas',
      )
    }
    return undefined
  })
}

function checkName(findings: MistralFindings, path: string, name: unknown): void {
  if (typeof name !== 'string' || FUNCTION_NAME.test(name)) return
  const text = `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`
  findings.add('function-name', path, text)
}

function readMessages(findings: MistralFindings, messages: unknown): readonly MistralMessage[] {
  if (!Array.isArray(messages)) return []
  if (messages.length === 0) findings.add('messages-present', 'messages', 'Conversation must have at least one message')
  let images = 0
  const read = messages.flatMap((message, index): MistralMessage[] => {
    const role = isRecord(message) ? message.role : undefined
    const allowed = typeof role === 'string' ? MESSAGES.get(role) : undefined
    if (!isRecord(message) || allowed === undefined || typeof role !== 'string') {
      const text = `Input tag '${asText(role)}' found using 'role' does not match any of the expected tags: 'system', 'user', 'assistant', 'tool'`
      findings.add('field-type', `messages.${index}`, text)
      return []
    }
    const path = `messages.${index}.${role}`
    checkFields(findings, path, message, allowed)
    images += checkContent(findings, path, message.content)
    if (role === 'assistant') checkAssistant(findings, path, message)
    if (role === 'tool') {
      checkToolContent(findings, path, message.content)
      checkCallId(findings, `${path}.tool_call_id`, message.tool_call_id)
      checkName(findings, `${path}.name`, message.name)
    }
    return [{ ...message, index, role }]
  })
  if (images > MAX_IMAGES)
    findings.add('image-count', 'messages', `Too many images in request. Maximum is ${MAX_IMAGES}.`)
  return read
}

function checkToolContent(findings: MistralFindings, path: string, content: unknown): void {
  if (!Array.isArray(content)) return
  content.forEach((chunk, index) => {
    if (!isRecord(chunk) || chunk.type === 'text') return
    findings.add('tool-content-text', `${path}.content.${index}.type`, "Input should be 'text'")
  })
}

function checkAssistant(findings: MistralFindings, path: string, message: Record<string, unknown>): void {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : []
  const { content } = message
  const hasContent = Array.isArray(content) ? content.length > 0 : typeof content === 'string' && content !== ''
  if (!hasContent && calls.length === 0) {
    findings.add('assistant-content', path, 'Assistant message must have either content or tool_calls, but not none.')
  }
  calls.forEach((call, index) => {
    const at = `${path}.tool_calls.${index}`
    if (!isRecord(call)) return findings.add('field-type', at, 'Input should be a valid dictionary')
    checkFields(findings, at, call, TOOL_CALL)
    checkCallId(findings, `${at}.id`, call.id)
    if (!isRecord(call.function)) return undefined
    checkFields(findings, `${at}.function`, call.function, CALLED_FUNCTION)
    return checkName(findings, `${at}.function.name`, call.function.name)
  })
}

function checkCallId(findings: MistralFindings, path: string, id: unknown): void {
  if (typeof id !== 'string') return findings.add('tool-call-id', path, 'Tool call id has to be defined.')
  if (CALL_ID.test(id)) return undefined
  return findings.add('tool-call-id', path, `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`)
}

/** Returns how many images the content holds. */
function checkContent(findings: MistralFindings, path: string, content: unknown): number {
  if (!Array.isArray(content)) return 0
  return content.filter((chunk, index) => {
    const at = `${path}.content.${index}`
    const known = isRecord(chunk) && typeof chunk.type === 'string' ? CHUNKS.get(chunk.type) : undefined
    if (!isRecord(chunk) || known === undefined) {
      findings.add('field-type', at, "Input tag found using 'type' does not match any of the expected tags")
      return false
    }
    checkFields(findings, at, chunk, known)
    if (chunk.type !== 'image_url') return false
    checkImage(findings, `${at}.image_url`, chunk.image_url)
    return true
  }).length
}

function checkImage(findings: MistralFindings, path: string, image: unknown): void {
  if (isRecord(image)) checkFields(findings, path, image, IMAGE_URL)
  const url = isRecord(image) ? image.url : image
  if (typeof url !== 'string' || /^https?:\/\//i.test(url)) return undefined
  const head = DATA_URL.exec(url)
  const data = head === null ? '' : url.slice(head[0].length)
  if (head === null || !isBase64(data))
    return findings.add('image-url', path, 'Image, "url" must be a valid URL or base64 data URL')
  const info = imageInfo(data)
  if (
    info === undefined ||
    !IMAGE_TYPES.includes(info.mimeType) ||
    !IMAGE_TYPES.includes((head[1] ?? '').toLowerCase())
  ) {
    return findings.add('image-format', path, 'Image could not be loaded: unsupported format')
  }
  if (decodedBytes(data) > MAX_IMAGE_BYTES) findings.add('image-bytes', path, 'Image size exceeds the limit of 10MB')
  return undefined
}
