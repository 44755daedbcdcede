import { isRecord } from '../../base/json.ts'
import type { AnthropicBlock, AnthropicFindings, AnthropicMessage } from './anthropic-shape.ts'
import { asText } from './wire-text.ts'

const ID = /^[a-zA-Z0-9_-]+$/
const MAX_NAME_CHARS = 200

/** Calls and results: who answers whom, where, and how often. */
export function checkAnthropicPairing(findings: AnthropicFindings, messages: readonly AnthropicMessage[]): void {
  const seen = new Set<string>()
  messages.forEach((message, place) => {
    for (const [index, block] of blocksOf(message, 'tool_use')) checkCall(findings, message, index, block, seen)
    const calls = blocksOf(message, 'tool_use').map(([, block]) => asText(block.id))
    if (calls.length > 0) checkAnswered(findings, message, calls, messages[place + 1])
    checkResults(findings, message, messages[place - 1])
  })
}

export function blocksOf(message: AnthropicMessage | undefined, type: string): (readonly [number, AnthropicBlock])[] {
  if (message === undefined || typeof message.content === 'string') return []
  return [...message.content.entries()].filter(([, block]) => block.type === type)
}

function checkCall(
  findings: AnthropicFindings,
  message: AnthropicMessage,
  index: number,
  block: AnthropicBlock,
  seen: Set<string>,
): void {
  const path = `messages.${message.index}.content.${index}`
  const { id, name, input } = block
  if (typeof id === 'string') {
    if (!ID.test(id)) {
      const text = `${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`
      findings.add('tool-use-id', `${path}.tool_use.id`, text)
    }
    if (seen.has(id)) findings.add('tool-use-id-unique', path, `${path}: \`tool_use\` ids must be unique`)
    seen.add(id)
  }
  if (typeof name === 'string' && (name === '' || name.length > MAX_NAME_CHARS)) {
    const size = name === '' ? 'at least 1 character' : `at most ${MAX_NAME_CHARS} characters`
    findings.add('tool-use-name', `${path}.tool_use.name`, `${path}.tool_use.name: String should have ${size}`)
  }
  if (input !== undefined && !isRecord(input)) {
    findings.add(
      'tool-use-input',
      `${path}.tool_use.input`,
      `${path}.tool_use.input: Input should be a valid dictionary`,
    )
  }
}

function checkAnswered(
  findings: AnthropicFindings,
  message: AnthropicMessage,
  calls: readonly string[],
  next: AnthropicMessage | undefined,
): void {
  const answered = new Set(blocksOf(next, 'tool_result').map(([, block]) => asText(block.tool_use_id)))
  const open = calls.filter((id) => !answered.has(id))
  if (open.length === 0) return
  const path = `messages.${message.index}`
  findings.add(
    'tool-use-answered',
    path,
    `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  )
}

function checkResults(
  findings: AnthropicFindings,
  message: AnthropicMessage,
  before: AnthropicMessage | undefined,
): void {
  const expected = new Set(blocksOf(before, 'tool_use').map(([, block]) => asText(block.id)))
  const seen = new Set<string>()
  let otherBlockSeen = false
  for (const [index, block] of typeof message.content === 'string' ? [] : message.content.entries()) {
    if (block.type !== 'tool_result') {
      otherBlockSeen = true
      continue
    }
    const path = `messages.${message.index}.content.${index}`
    const id = asText(block.tool_use_id)
    if (!ID.test(id)) {
      const text = `${path}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'`
      findings.add('tool-use-id', `${path}.tool_result.tool_use_id`, text)
    }
    if (!expected.has(id)) {
      const text =
        `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
        'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
      findings.add('tool-result-expected', path, text)
    }
    if (seen.has(id)) {
      const text = `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`
      findings.add('tool-result-single', path, text)
    }
    if (otherBlockSeen) {
      const text =
        `messages.${message.index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}. ` +
        'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
      findings.add('tool-result-first', path, text)
    }
    checkErrorResult(findings, path, block)
    seen.add(id)
  }
}

function checkErrorResult(findings: AnthropicFindings, path: string, block: AnthropicBlock): void {
  if (block.is_error !== true || !Array.isArray(block.content)) return
  if (block.content.every((inner) => isRecord(inner) && inner.type === 'text')) return
  const text = `${path}.tool_result: all content must be type "text" if "is_error" is true`
  findings.add('tool-result-error-text', path, text)
}
