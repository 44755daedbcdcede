import { isRecord } from '../../base/json.ts'
import { checkTemplate, templateFamilyOf, type TemplateFamily } from './chat-templates.ts'
import { checkChatPairing } from './openai-completions-pairing.ts'
import {
  CALLED_FUNCTION,
  CHAT_BODY,
  CHAT_MESSAGES,
  CHAT_PARTS,
  CHAT_PARTS_OF_ROLE,
  CHAT_TOOL,
  COMPATIBLE_ASSISTANT,
  FUNCTION,
  IMAGE_URL,
  TOOL_CALL,
} from './openai-fields.ts'
import { OPENAI_COMPLETIONS_RULES } from './openai-rules.ts'
import {
  checkFields,
  checkFunctions,
  checkImageUrl,
  checkToolName,
  emptyArray,
  isReasoningModel,
  tooLong,
} from './openai-shape.ts'
import { type CheckOptions, Findings, type RuleViolation } from './rule.ts'
import { asText, exceedsBytes, wireFacts } from './wire-text.ts'

const MAX_BODY_BYTES = 50 * 1024 * 1024
const MAX_TEXT_CHARS = 10_485_760
const MAX_CALL_ID_CHARS = 40
const MAX_IMAGES = 500
const MAX_STOPS = 4

/** Which server a Chat Completions request is for. */
export interface CompletionsOptions extends CheckOptions {
  /** `compatible`: a local server with a strict chat template, which also knows fields OpenAI does not. */
  readonly dialect?: 'openai' | 'compatible'
  /** For `compatible`: whose chat template renders the request. By default the model's id decides. */
  readonly template?: TemplateFamily
}

export type ChatFindings = Findings<typeof OPENAI_COMPLETIONS_RULES>

export interface ChatMessage {
  readonly [field: string]: unknown
  readonly index: number
  readonly role: string
}

/** Everything about `POST /v1/chat/completions` the service would refuse. */
export function checkOpenAICompletionsRequest(
  body: unknown,
  options: CompletionsOptions = {},
): readonly RuleViolation[] {
  const findings: ChatFindings = new Findings(
    'openai-completions',
    OPENAI_COMPLETIONS_RULES,
    options.profile ?? 'strict',
  )
  if (!isRecord(body)) {
    findings.add('body-object', '', 'We could not parse the JSON body of your request.')
    return findings.all
  }
  const facts = wireFacts(body)
  if (facts.loneSurrogateAt !== undefined) {
    findings.add('valid-unicode', facts.loneSurrogateAt, 'We could not parse the JSON body of your request.')
  }
  if (exceedsBytes(body, facts, MAX_BODY_BYTES, options.bodyBytes))
    findings.add('request-bytes', '', 'Request too large')
  const isCompatible = options.dialect === 'compatible'
  checkFields(findings, '', isCompatible ? knownParameters(body) : body, CHAT_BODY)
  checkSettings(findings, body, isCompatible)
  checkTools(findings, body)
  const messages = readMessages(findings, body.messages, isCompatible)
  checkChatPairing(findings, messages)
  if (isCompatible) {
    const offersTools = Array.isArray(body.tools) && body.tools.length > 0
    checkTemplate(findings, { messages, offersTools }, options.template ?? familyFor(asText(body.model), options))
  }
  return findings.all
}

/** The model's own template; without a known one what every template takes, or, today, what most demand. */
function familyFor(model: string, { profile = 'strict' }: CompletionsOptions): TemplateFamily {
  return templateFamilyOf(model) ?? (profile === 'strict' ? 'every' : 'alternating')
}

/** Compatible servers ignore parameters they do not know. */
function knownParameters(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([key]) => CHAT_BODY.byName.has(key)))
}

function checkSettings(findings: ChatFindings, body: Record<string, unknown>, isCompatible: boolean): void {
  const isReasoning = !isCompatible && isReasoningModel(asText(body.model))
  const { max_tokens: old, max_completion_tokens: current } = body
  if (typeof old === 'number' && isReasoning) {
    const text =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    findings.add('max-tokens', 'max_tokens', text)
  }
  if (typeof old === 'number' && typeof current === 'number' && !isCompatible) {
    findings.add(
      'max-tokens',
      'max_tokens',
      "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    )
  }
  for (const [name, value] of [
    ['max_tokens', old],
    ['max_completion_tokens', current],
  ] as const) {
    if (typeof value !== 'number' || value >= 1) continue
    findings.add(
      'max-tokens',
      name,
      `Invalid '${name}': integer below minimum value. Expected a value >= 1, but got ${value} instead.`,
    )
  }
  for (const [name, max] of [
    ['temperature', 2],
    ['top_p', 1],
  ] as const) {
    const value = body[name]
    if (typeof value !== 'number') continue
    if (isReasoning && value !== 1) {
      findings.add(
        'sampling',
        name,
        `Unsupported value: '${name}' does not support ${value} with this model. Only the default (1) value is supported.`,
      )
    } else if (value < 0 || value > max) {
      findings.add(
        'sampling',
        name,
        `Invalid '${name}': decimal out of range. Expected a value between 0 and ${max}, but got ${value} instead.`,
      )
    }
  }
  if (isRecord(body.stream_options) && body.stream !== true) {
    findings.add(
      'stream-options',
      'stream_options',
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    )
  }
  if (Array.isArray(body.stop) && body.stop.length > MAX_STOPS) {
    const text = `Invalid 'stop': array too long. Expected an array with maximum length ${MAX_STOPS}, but got an array with length ${body.stop.length} instead.`
    findings.add('stop-sequences', 'stop', text)
  }
}

function checkTools(findings: ChatFindings, body: Record<string, unknown>): void {
  const tools = Array.isArray(body.tools) ? body.tools : []
  if (Array.isArray(body.tools) && tools.length === 0) findings.add('tool-count', 'tools', emptyArray('tools'))
  const functions = tools.flatMap((tool, index) => {
    const path = `tools[${index}]`
    if (!isRecord(tool) || (tool.type !== 'function' && typeof tool.type === 'string')) return []
    checkFields(findings, path, tool, CHAT_TOOL)
    if (!isRecord(tool.function)) return []
    checkFields(findings, `${path}.function`, tool.function, FUNCTION)
    const { name, parameters, strict } = tool.function
    return [{ path: `${path}.function`, name, parameters, strict }]
  })
  const names = checkFunctions(findings, functions)
  const choice = body.tool_choice
  if (choice !== undefined && choice !== 'none' && tools.length === 0) {
    const text = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    findings.add('tool-choice', 'tool_choice', text)
  } else if (isRecord(choice) && isRecord(choice.function) && !names.has(asText(choice.function.name))) {
    const text = `Invalid value for 'tool_choice': no function named '${asText(choice.function.name)}' was specified in the 'tools' parameter.`
    findings.add('tool-choice', 'tool_choice.function', text)
  }
  if (typeof body.parallel_tool_calls === 'boolean' && tools.length === 0) {
    const text =
      "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."
    findings.add('parallel-tool-calls', 'parallel_tool_calls', text)
  }
}

function readMessages(findings: ChatFindings, messages: unknown, isCompatible: boolean): readonly ChatMessage[] {
  if (!Array.isArray(messages)) return []
  if (messages.length === 0) findings.add('messages-present', 'messages', emptyArray('messages'))
  let images = 0
  const read = messages.flatMap((message, index): ChatMessage[] => {
    const path = `messages[${index}]`
    if (!isRecord(message)) {
      findings.add('field-type', path, `Invalid type for '${path}': expected an object.`)
      return []
    }
    const role = asText(message.role)
    const allowed = CHAT_MESSAGES.get(role)
    if (allowed === undefined) {
      const values = [...CHAT_MESSAGES.keys()].map((known) => `'${known}'`).join(', ')
      findings.add('field-value', `${path}.role`, `Invalid value: '${role}'. Supported values are: ${values}.`)
      return []
    }
    checkFields(findings, path, message, isCompatible && role === 'assistant' ? COMPATIBLE_ASSISTANT : allowed)
    checkName(findings, path, message.name)
    images += checkContent(findings, path, role, message)
    checkCalls(findings, path, message.tool_calls)
    return [{ ...message, index, role }]
  })
  if (images > MAX_IMAGES)
    findings.add('image-count', 'messages', `Too many images in request. Maximum is ${MAX_IMAGES}, got ${images}.`)
  return read
}

function checkName(findings: ChatFindings, path: string, name: unknown): void {
  if (typeof name !== 'string' || /^[^\s<|\\/>]{1,64}$/.test(name)) return
  const text = `Invalid '${path}.name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.`
  findings.add('message-name', `${path}.name`, text)
}

/** Returns how many images the message holds. */
function checkContent(findings: ChatFindings, path: string, role: string, message: Record<string, unknown>): number {
  const { content } = message
  if (role === 'assistant' && (content === null || content === undefined)) {
    const hasOther =
      message.tool_calls !== undefined || typeof message.refusal === 'string' || isRecord(message.function_call)
    if (!hasOther) {
      findings.add('content-present', `${path}.content`, `Invalid value for 'content': expected a string, got null.`)
    }
  }
  if (typeof content === 'string' && content.length > MAX_TEXT_CHARS) {
    findings.add('string-length', `${path}.content`, tooLong(`${path}.content`, MAX_TEXT_CHARS, content.length))
  }
  if (!Array.isArray(content)) return 0
  if (content.length === 0) findings.add('content-nonempty', `${path}.content`, emptyArray(`${path}.content`))
  return content.filter((part, index) => checkPart(findings, path, `${path}.content[${index}]`, role, part)).length
}

/** True for an image. */
function checkPart(findings: ChatFindings, messagePath: string, path: string, role: string, part: unknown): boolean {
  if (!isRecord(part)) {
    findings.add('field-type', path, `Invalid type for '${path}': expected an object.`)
    return false
  }
  const type = asText(part.type)
  const allowed = CHAT_PARTS_OF_ROLE.get(role) ?? []
  if (type === 'image_url' && role !== 'user') {
    const text =
      `Invalid '${messagePath}'. Image URLs are only allowed for messages with role 'user', ` +
      `but this message with role '${role}' contains an image URL.`
    findings.add('image-role', messagePath, text)
    return false
  }
  const known = CHAT_PARTS.get(type)
  if (known === undefined || !allowed.includes(type)) {
    const values = allowed.map((name) => `'${name}'`).join(', ')
    findings.add('content-part', path, `Invalid value: '${type}'. Supported values are: ${values}.`)
    return false
  }
  checkFields(findings, path, part, known)
  if (typeof part.text === 'string' && part.text.length > MAX_TEXT_CHARS) {
    findings.add('string-length', `${path}.text`, tooLong(`${path}.text`, MAX_TEXT_CHARS, part.text.length))
  }
  if (type !== 'image_url' || !isRecord(part.image_url)) return false
  checkFields(findings, `${path}.image_url`, part.image_url, IMAGE_URL)
  checkImageUrl(findings, `${path}.image_url.url`, part.image_url.url)
  return true
}

function checkCalls(findings: ChatFindings, path: string, calls: unknown): void {
  if (!Array.isArray(calls)) return
  if (calls.length === 0) findings.add('tool-calls-nonempty', `${path}.tool_calls`, emptyArray(`${path}.tool_calls`))
  const seen = new Set<string>()
  calls.forEach((call, index) => {
    const at = `${path}.tool_calls[${index}]`
    if (!isRecord(call)) return findings.add('field-type', at, `Invalid type for '${at}': expected an object.`)
    checkFields(findings, at, call, TOOL_CALL)
    if (isRecord(call.function)) {
      checkFields(findings, `${at}.function`, call.function, CALLED_FUNCTION)
      checkToolName(findings, `${at}.function.name`, call.function.name)
    }
    if (typeof call.id !== 'string') return undefined
    checkCallId(findings, `${at}.id`, call.id)
    if (seen.has(call.id)) findings.add('tool-call-id-unique', `${at}.id`, `Duplicate value for 'id' of '${call.id}'.`)
    return seen.add(call.id)
  })
}

function checkCallId(findings: ChatFindings, at: string, id: string): void {
  if (id === '') {
    const text = `Invalid '${at}': empty string. Expected a string with minimum length 1, but got an empty string instead.`
    findings.add('tool-call-id', at, text)
  } else if (id.length > MAX_CALL_ID_CHARS) {
    findings.add('tool-call-id', at, tooLong(at, MAX_CALL_ID_CHARS, id.length))
  }
}
