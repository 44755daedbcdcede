import { isRecord } from '../../base/json.ts'
import {
  INPUT_PARTS,
  ITEMS,
  OUTPUT_PARTS,
  REASONING,
  RESPONSES_BODY,
  RESPONSES_TOOL,
  SUMMARY_PART,
} from './openai-fields.ts'
import { checkResponsesOrder } from './openai-responses-order.ts'
import { OPENAI_RESPONSES_RULES } from './openai-rules.ts'
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
const MAX_ID_CHARS = 64
const MAX_IMAGES = 500
const MIN_OUTPUT_TOKENS = 16
const ID_PREFIX: ReadonlyMap<string, string> = new Map([
  ['message', 'msg'],
  ['function_call', 'fc'],
  ['reasoning', 'rs'],
])

export type ResponsesFindings = Findings<typeof OPENAI_RESPONSES_RULES>

export interface ResponsesItem {
  readonly [field: string]: unknown
  readonly index: number
  /** `message` also for the short form without a type. */
  readonly kind: string
}

/** Everything about `POST /v1/responses` the service would refuse. */
export function checkOpenAIResponsesRequest(body: unknown, options: CheckOptions = {}): readonly RuleViolation[] {
  const findings: ResponsesFindings = new Findings(
    'openai-responses',
    OPENAI_RESPONSES_RULES,
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
  checkFields(findings, '', body, RESPONSES_BODY)
  checkSettings(findings, body)
  const names = checkTools(findings, body.tools)
  checkToolChoice(findings, body.tool_choice, names)
  const items = readItems(findings, body)
  checkResponsesOrder(findings, items, body.store === false, options.issued)
  return findings.all
}

function checkSettings(findings: ResponsesFindings, body: Record<string, unknown>): void {
  const limit = body.max_output_tokens
  if (typeof limit === 'number' && limit < MIN_OUTPUT_TOKENS) {
    const text = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${MIN_OUTPUT_TOKENS}, but got ${limit} instead.`
    findings.add('max-output-tokens', 'max_output_tokens', text)
  }
  if (isRecord(body.reasoning)) checkFields(findings, 'reasoning', body.reasoning, REASONING)
  for (const [name, max] of [
    ['temperature', 2],
    ['top_p', 1],
  ] as const) {
    const value = body[name]
    if (typeof value !== 'number') continue
    if (isReasoningModel(asText(body.model))) {
      findings.add('sampling', name, `Unsupported parameter: '${name}' is not supported with this model.`)
    } else if (value < 0 || value > max) {
      findings.add(
        'sampling',
        name,
        `Invalid '${name}': decimal out of range. Expected a value between 0 and ${max}, but got ${value} instead.`,
      )
    }
  }
}

function checkTools(findings: ResponsesFindings, tools: unknown): ReadonlySet<string> {
  if (!Array.isArray(tools)) return new Set()
  const functions = tools.flatMap((tool, index) => {
    // Tools the service itself runs have other types and fields; we do not use them and do not judge them.
    if (!isRecord(tool) || (tool.type !== 'function' && typeof tool.type === 'string')) return []
    const path = `tools[${index}]`
    checkFields(findings, path, tool, RESPONSES_TOOL)
    return [{ path, name: tool.name, parameters: tool.parameters, strict: tool.strict }]
  })
  return checkFunctions(findings, functions)
}

function checkToolChoice(findings: ResponsesFindings, choice: unknown, names: ReadonlySet<string>): void {
  if (typeof choice === 'string' && !['none', 'auto', 'required'].includes(choice)) {
    const text = `Invalid value: '${choice}'. Supported values are: 'none', 'auto', and 'required'.`
    findings.add('field-value', 'tool_choice', text)
  }
  if (!isRecord(choice) || choice.type !== 'function') return
  if (!names.has(asText(choice.name))) {
    findings.add('tool-choice', 'tool_choice', `Tool choice 'function' not found in 'tools' parameter.`)
  }
}

function readItems(findings: ResponsesFindings, body: Record<string, unknown>): readonly ResponsesItem[] {
  const { input } = body
  const continues = [body.previous_response_id, body.conversation, body.prompt].some(
    (value) => value !== undefined && value !== null,
  )
  if (!continues && (input === undefined || (Array.isArray(input) && input.length === 0))) {
    const text = "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation_id' must be provided."
    findings.add('input-present', 'input', text)
  }
  if (!Array.isArray(input)) return []
  let images = 0
  const items = input.flatMap((item, index): ResponsesItem[] => {
    const path = `input[${index}]`
    if (!isRecord(item)) {
      findings.add('field-type', path, `Invalid type for '${path}': expected an object.`)
      return []
    }
    const kind = typeof item.type === 'string' ? item.type : item.role === undefined ? 'item_reference' : 'message'
    const allowed = ITEMS.get(kind)
    if (allowed === undefined) {
      findings.add(
        'item-type',
        `${path}.type`,
        `Invalid value: '${kind}'. Supported values are: ${[...ITEMS.keys()].join(', ')}.`,
      )
      return []
    }
    checkFields(findings, path, item, allowed)
    checkIds(findings, path, kind, item)
    images += checkContent(findings, path, kind, item)
    return [{ ...item, index, kind }]
  })
  if (images > MAX_IMAGES)
    findings.add('image-count', 'input', `Too many images in request. Maximum is ${MAX_IMAGES}, got ${images}.`)
  return items
}

function checkIds(findings: ResponsesFindings, path: string, kind: string, item: Record<string, unknown>): void {
  const { id, call_id: callId } = item
  if (typeof callId === 'string') {
    if (callId === '') {
      const text = `Invalid '${path}.call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.`
      findings.add('call-id', `${path}.call_id`, text)
    }
    if (callId.length > MAX_ID_CHARS)
      findings.add('call-id', `${path}.call_id`, tooLong(`${path}.call_id`, MAX_ID_CHARS, callId.length))
  }
  if (kind === 'function_call') checkToolName(findings, `${path}.name`, item.name)
  if (typeof id !== 'string') return
  const prefix = ID_PREFIX.get(kind)
  if (!/^[A-Za-z0-9_-]+$/.test(id)) {
    const text =
      `Invalid '${path}.id': '${id}'. Expected an ID that contains letters, numbers, underscores, or dashes, ` +
      'but this value contained additional characters.'
    findings.add('item-id', `${path}.id`, text)
  } else if (id.length > MAX_ID_CHARS) {
    findings.add('item-id', `${path}.id`, tooLong(`${path}.id`, MAX_ID_CHARS, id.length))
  } else if (prefix !== undefined && !id.startsWith(prefix)) {
    findings.add('item-id', `${path}.id`, `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`)
  }
}

/** Returns how many images the item holds. */
function checkContent(findings: ResponsesFindings, path: string, kind: string, item: Record<string, unknown>): number {
  if (kind === 'reasoning' && Array.isArray(item.summary)) {
    item.summary.forEach((part, index) => {
      if (isRecord(part)) checkFields(findings, `${path}.summary[${index}]`, part, SUMMARY_PART)
    })
    return 0
  }
  const key = kind === 'function_call_output' ? 'output' : 'content'
  const content = item[key]
  if (typeof content === 'string' && content.length > MAX_TEXT_CHARS) {
    findings.add('string-length', `${path}.${key}`, tooLong(`${path}.${key}`, MAX_TEXT_CHARS, content.length))
  }
  if (!Array.isArray(content)) return 0
  if (content.length === 0) findings.add('content-nonempty', `${path}.${key}`, emptyArray(`${path}.${key}`))
  const allowed = item.role === 'assistant' ? OUTPUT_PARTS : INPUT_PARTS
  let images = 0
  content.forEach((part, index) => {
    const at = `${path}.${key}[${index}]`
    if (!isRecord(part)) return findings.add('field-type', at, `Invalid type for '${at}': expected an object.`)
    const fieldsOfPart = typeof part.type === 'string' ? allowed.get(part.type) : undefined
    if (fieldsOfPart === undefined) {
      const values = [...allowed.keys()].map((name) => `'${name}'`).join(' and ')
      return findings.add('content-part', at, `Invalid value: '${asText(part.type)}'. Supported values are: ${values}.`)
    }
    checkFields(findings, at, part, fieldsOfPart)
    if (typeof part.text === 'string' && part.text.length > MAX_TEXT_CHARS) {
      findings.add('string-length', `${at}.text`, tooLong(`${at}.text`, MAX_TEXT_CHARS, part.text.length))
    }
    if (part.type !== 'input_image') return undefined
    images++
    return checkImageUrl(findings, `${at}.image_url`, part.image_url)
  })
  return images
}
