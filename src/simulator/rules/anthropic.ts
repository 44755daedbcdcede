import { isRecord } from '../../base/json.ts'
import { checkAnthropicImages } from './anthropic-images.ts'
import {
  BLOCKS,
  BLOCKS_OF_ROLE,
  BODY,
  CACHE_CONTROL,
  COUNT_BODY,
  MESSAGE,
  RESULT_BLOCKS,
  SYSTEM_BLOCK,
} from './anthropic-fields.ts'
import { checkAnthropicPairing } from './anthropic-pairing.ts'
import { ANTHROPIC_RULES } from './anthropic-rules.ts'
import { checkAnthropicThinking } from './anthropic-thinking.ts'
import { checkAnthropicTools } from './anthropic-tools.ts'
import {
  type AnthropicBlock,
  type AnthropicFindings,
  type AnthropicMessage,
  checkFields,
  claudeVersion,
} from './anthropic-shape.ts'
import { type CheckOptions, Findings, type RuleViolation } from './rule.ts'
import { asText, exceedsBytes, wireFacts } from './wire-text.ts'

const MAX_BODY_BYTES = 32 * 1024 * 1024
const MAX_CACHE_BREAKPOINTS = 4
/** `claude-<family>-4-6` as a number: the first models that refuse an assistant message at the end. */
const FIRST_WITHOUT_PREFILL = 406

/** Everything about `POST /v1/messages` (or `count_tokens`) the service would refuse. */
export function checkAnthropicRequest(
  body: unknown,
  options: CheckOptions & { readonly countTokens?: boolean } = {},
): readonly RuleViolation[] {
  const findings: AnthropicFindings = new Findings('anthropic', ANTHROPIC_RULES, options.profile ?? 'strict')
  if (!isRecord(body)) {
    findings.add('body-object', '', 'The request body is not valid JSON: expected an object')
    return findings.all
  }
  const facts = wireFacts(body)
  if (facts.loneSurrogateAt !== undefined) {
    findings.add(
      'valid-unicode',
      facts.loneSurrogateAt,
      'The request body is not valid JSON: no low surrogate in string',
    )
  }
  if (exceedsBytes(body, facts, MAX_BODY_BYTES, options.bodyBytes)) {
    findings.add('request-bytes', '', 'Request exceeds the maximum size')
  }
  checkFields(findings, '', body, options.countTokens === true ? COUNT_BODY : BODY)
  checkLimits(findings, body)
  checkSystem(findings, body.system)
  const messages = readMessages(findings, body.messages)
  checkRoles(findings, messages, asText(body.model))
  checkTexts(findings, messages)
  checkAnthropicPairing(findings, messages)
  checkAnthropicThinking(findings, body, messages, options.issued)
  checkAnthropicImages(findings, messages)
  checkAnthropicTools(findings, body)
  checkCacheBreakpoints(findings, body)
  return findings.all
}

function checkLimits(findings: AnthropicFindings, body: Record<string, unknown>): void {
  const limit = body.max_tokens
  if (typeof limit === 'number' && (!Number.isInteger(limit) || limit < 1)) {
    findings.add('max-tokens', 'max_tokens', 'max_tokens: Input should be greater than or equal to 1')
  }
  if (body.model === '') {
    findings.add('field-type', 'model', 'model: String should have at least 1 character')
  }
  if (Array.isArray(body.stop_sequences)) {
    body.stop_sequences.forEach((sequence, index) => {
      if (typeof sequence === 'string' && sequence.trim() !== '') return
      findings.add(
        'stop-sequences',
        `stop_sequences.${index}`,
        'stop_sequences: each stop sequence must contain non-whitespace',
      )
    })
  }
}

function checkSystem(findings: AnthropicFindings, system: unknown): void {
  if (!Array.isArray(system)) return
  system.forEach((block, index) => {
    const path = `system.${index}`
    if (!isRecord(block)) return findings.add('field-type', path, `${path}: Input should be a valid dictionary`)
    checkFields(findings, path, block, SYSTEM_BLOCK)
    if (block.text === '') findings.add('text-nonempty', path, 'system: text content blocks must be non-empty')
  })
}

/** The messages whose shape can be understood; what cannot is reported and left out of the later checks. */
function readMessages(findings: AnthropicFindings, messages: unknown): readonly AnthropicMessage[] {
  if (!Array.isArray(messages)) return []
  if (messages.length === 0) findings.add('messages-present', 'messages', 'messages: at least one message is required')
  return messages.flatMap((message, index): AnthropicMessage[] => {
    const path = `messages.${index}`
    if (!isRecord(message)) {
      findings.add('field-type', path, `${path}: Input should be a valid dictionary`)
      return []
    }
    checkFields(findings, path, message, MESSAGE)
    const role = asText(message.role)
    if (typeof message.content === 'string') return [{ index, role, content: message.content }]
    if (!Array.isArray(message.content)) return []
    return [{ index, role, content: readBlocks(findings, `${path}.content`, message.content, role) }]
  })
}

function readBlocks(
  findings: AnthropicFindings,
  path: string,
  blocks: readonly unknown[],
  role: string,
): AnthropicBlock[] {
  return blocks.flatMap((block, index): AnthropicBlock[] => {
    const at = `${path}.${index}`
    const read = readBlock(findings, at, block, BLOCKS_OF_ROLE.get(role))
    if (read === undefined) return []
    if (read.type === 'tool_result' && Array.isArray(read.content)) {
      read.content.forEach((inner, place) => readBlock(findings, `${at}.content.${place}`, inner, RESULT_BLOCKS))
    }
    return [read]
  })
}

function readBlock(
  findings: AnthropicFindings,
  path: string,
  block: unknown,
  allowed: ReadonlySet<string> | undefined,
): AnthropicBlock | undefined {
  if (!isRecord(block)) {
    findings.add('field-type', path, `${path}: Input should be a valid dictionary`)
    return undefined
  }
  const type = block.type
  const known = typeof type === 'string' ? BLOCKS.get(type) : undefined
  if (known === undefined || typeof type !== 'string') {
    const tags = [...BLOCKS.keys()].map((tag) => `'${tag}'`).join(', ')
    const tag = `Input tag '${asText(type)}' found using 'type' does not match any of the expected tags: ${tags}`
    findings.add('block-type', path, `${path}: ${tag}`)
    return undefined
  }
  if (allowed?.has(type) === false) {
    const home = type === 'tool_use' || type.includes('thinking') ? 'assistant' : 'user'
    findings.add('block-role', path, `${path}: \`${type}\` blocks can only be in \`${home}\` messages`)
  }
  checkFields(findings, `${path}.${type}`, block, known)
  return { ...block, type }
}

function checkRoles(findings: AnthropicFindings, messages: readonly AnthropicMessage[], model: string): void {
  const first = messages[0]
  if (first !== undefined && first.role !== 'user') {
    findings.add('first-role', 'messages', 'messages: first message must use the "user" role')
  }
  messages.forEach((message, place) => {
    const before = messages[place - 1]
    if (message.role === 'system') {
      const text = `messages.${message.index}.role: Input should be 'user' or 'assistant'`
      findings.add('system-message', `messages.${message.index}.role`, text)
    }
    if (before?.role === message.role) {
      const text = `messages: roles must alternate between "user" and "assistant", but found multiple "${message.role}" roles in a row`
      findings.add('alternation', `messages.${message.index}`, text)
    }
  })
  const last = messages.at(-1)
  if (last?.role === 'assistant' && claudeVersion(model) >= FIRST_WITHOUT_PREFILL) {
    const text = 'This model does not support assistant message prefill. The conversation must end with a user message.'
    findings.add('prefill', `messages.${last.index}`, text)
  }
}

function checkTexts(findings: AnthropicFindings, messages: readonly AnthropicMessage[]): void {
  for (const message of messages) {
    const path = `messages.${message.index}`
    const isFinalAssistant = message === messages.at(-1) && message.role === 'assistant'
    if (message.content.length === 0 && !isFinalAssistant) {
      const text = `${path}: all messages must have non-empty content except for the optional final assistant message`
      findings.add('message-content', path, text)
    }
    for (const [at, text] of textsOf(message, path)) {
      if (text === '') findings.add('text-nonempty', at, 'messages: text content blocks must be non-empty')
      else if (text.trim() === '')
        findings.add('text-not-blank', at, 'messages: text content blocks must contain non-whitespace text')
    }
    if (isFinalAssistant && /\s$/.test(finalText(message))) {
      findings.add('final-whitespace', path, 'messages: final assistant content cannot end with trailing whitespace')
    }
  }
}

function* textsOf(message: AnthropicMessage, path: string): Iterable<readonly [string, string]> {
  if (typeof message.content === 'string') {
    if (message.content !== '') yield [`${path}.content`, message.content]
    return
  }
  for (const [index, block] of message.content.entries()) {
    const at = `${path}.content.${index}`
    if (typeof block.text === 'string' && block.type === 'text') yield [at, block.text]
    if (block.type !== 'tool_result' || !Array.isArray(block.content)) continue
    for (const [place, inner] of block.content.entries()) {
      if (isRecord(inner) && inner.type === 'text' && typeof inner.text === 'string')
        yield [`${at}.content.${place}`, inner.text]
    }
  }
}

function finalText(message: AnthropicMessage): string {
  if (typeof message.content === 'string') return message.content
  const last = message.content.at(-1)
  return last?.type === 'text' && typeof last.text === 'string' ? last.text : ''
}

function checkCacheBreakpoints(findings: AnthropicFindings, body: Record<string, unknown>): void {
  let count = 0
  const visit = (value: unknown, path: string): void => {
    if (!isRecord(value)) return
    const control = value.cache_control
    if (isRecord(control)) {
      count++
      checkFields(findings, `${path}.cache_control`, control, CACHE_CONTROL)
    }
    if (Array.isArray(value.content)) value.content.forEach((inner, index) => visit(inner, `${path}.content.${index}`))
  }
  for (const key of ['tools', 'system', 'messages']) {
    const list = body[key]
    if (Array.isArray(list)) list.forEach((item, index) => visit(item, `${key}.${index}`))
  }
  if (count > MAX_CACHE_BREAKPOINTS) {
    const text = `A maximum of ${MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found ${count}.`
    findings.add('cache-breakpoints', 'cache_control', text)
  }
}
