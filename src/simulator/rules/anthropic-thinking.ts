import { isRecord } from '../../base/json.ts'
import {
  type AnthropicBlock,
  type AnthropicFindings,
  type AnthropicMessage,
  checkFields,
  claudeVersion,
} from './anthropic-shape.ts'
import { THINKING } from './anthropic-fields.ts'
import { blocksOf } from './anthropic-pairing.ts'
import type { IssuedValues } from './rule.ts'
import { asText } from './wire-text.ts'

const MIN_BUDGET_TOKENS = 1024
const FIRST_ADAPTIVE = 406
const FIRST_ADAPTIVE_ONLY = 407
const SIGNATURE = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Thinking settings, and the blocks that earlier answers left in the history. */
export function checkAnthropicThinking(
  findings: AnthropicFindings,
  body: Record<string, unknown>,
  messages: readonly AnthropicMessage[],
  issued: IssuedValues | undefined,
): void {
  const config = isRecord(body.thinking) ? body.thinking : undefined
  if (config !== undefined) checkConfig(findings, body, config)
  checkSampling(findings, body, config)
  const omitted = config?.display === 'omitted' || claudeVersion(asText(body.model)) >= FIRST_ADAPTIVE_ONLY
  for (const message of messages) checkBlocks(findings, message, omitted, issued)
  checkTurnStart(findings, messages, config)
  checkFinalPosition(findings, messages, config)
}

function checkConfig(
  findings: AnthropicFindings,
  body: Record<string, unknown>,
  config: Record<string, unknown>,
): void {
  checkFields(findings, 'thinking', config, THINKING)
  if (config.type === 'enabled') {
    const budget = config.budget_tokens
    if (budget === undefined) {
      findings.add('required-field', 'thinking.enabled.budget_tokens', 'thinking.enabled.budget_tokens: Field required')
    } else if (typeof budget === 'number' && budget < MIN_BUDGET_TOKENS) {
      const text = `thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_BUDGET_TOKENS}`
      findings.add('thinking-budget', 'thinking.enabled.budget_tokens', text)
    } else if (typeof body.max_tokens === 'number' && typeof budget === 'number' && budget >= body.max_tokens) {
      findings.add('thinking-budget', 'max_tokens', '`max_tokens` must be greater than `thinking.budget_tokens`.')
    }
    if (claudeVersion(asText(body.model)) >= FIRST_ADAPTIVE_ONLY) {
      const text =
        '"thinking.type.enabled" is not supported for this model. ' +
        'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
      findings.add('thinking-adaptive-only', 'thinking.type', text)
    }
  }
  if (config.type === 'adaptive' && claudeVersion(asText(body.model)) < FIRST_ADAPTIVE) {
    findings.add('thinking-adaptive-unknown', 'thinking.type', 'adaptive thinking is not supported on this model')
  }
  if (config.type === 'disabled' && /claude-(fable|mythos)/.test(asText(body.model))) {
    findings.add('thinking-always-on', 'thinking.type', '"thinking.type.disabled" is not supported for this model.')
  }
  const choice = isRecord(body.tool_choice) ? body.tool_choice.type : undefined
  if (config.type !== 'disabled' && (choice === 'any' || choice === 'tool')) {
    findings.add('thinking-forced-tool', 'tool_choice', 'Thinking may not be enabled when tool_choice forces tool use.')
  }
}

function checkSampling(
  findings: AnthropicFindings,
  body: Record<string, unknown>,
  config: Record<string, unknown> | undefined,
): void {
  const isNew = claudeVersion(asText(body.model)) >= FIRST_ADAPTIVE_ONLY
  for (const name of ['temperature', 'top_p', 'top_k']) {
    if (isNew && body[name] !== undefined) {
      findings.add('sampling-deprecated', name, `\`${name}\` is deprecated for this model.`)
    }
  }
  if (!isNew && config?.type === 'enabled' && body.temperature !== undefined && body.temperature !== 1) {
    findings.add('sampling-deprecated', 'temperature', '`temperature` may only be set to 1 when thinking is enabled.')
  }
}

function checkBlocks(
  findings: AnthropicFindings,
  message: AnthropicMessage,
  omitted: boolean,
  issued: IssuedValues | undefined,
): void {
  for (const [index, block] of blocksOf(message, 'thinking')) {
    const path = `messages.${message.index}.content.${index}`
    if (typeof block.signature !== 'string' || typeof block.thinking !== 'string') continue
    const isGenuine = issued?.isGenuine(block.signature, block.thinking) ?? SIGNATURE.test(block.signature)
    if (!isGenuine) findings.add('thinking-signature', path, `${path}: Invalid \`signature\` in \`thinking\` block`)
    if (block.thinking === '' && !omitted) {
      findings.add('thinking-nonempty', path, `${path}.thinking: each thinking block must contain thinking`)
    }
  }
  for (const [index, block] of blocksOf(message, 'redacted_thinking')) {
    const path = `messages.${message.index}.content.${index}`
    if (typeof block.data !== 'string') continue
    const isGenuine = issued?.isGenuine(block.data, '') ?? SIGNATURE.test(block.data)
    if (!isGenuine) findings.add('thinking-signature', path, `${path}: Invalid \`data\` in \`redacted_thinking\` block`)
  }
  const last = typeof message.content === 'string' ? undefined : message.content.at(-1)
  if (message.role === 'assistant' && isThinking(last)) {
    const path = `messages.${message.index}`
    findings.add('thinking-not-last', path, `${path}: The final block in an assistant message cannot be \`thinking\`.`)
  }
}

function isThinking(block: AnthropicBlock | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/**
 * A tool loop is one assistant turn: everything since the last thing a user really said. With thinking enabled that
 * turn has to start with the thinking that led to its calls.
 */
function checkTurnStart(
  findings: AnthropicFindings,
  messages: readonly AnthropicMessage[],
  config: Record<string, unknown> | undefined,
): void {
  if (config?.type !== 'enabled') return
  const lastPrompt = messages.findLastIndex((message) => message.role === 'user' && !isOnlyResults(message))
  const turn = messages.slice(lastPrompt + 1)
  const lastAnswer = turn.findLast((message) => message.role === 'assistant')
  if (blocksOf(lastAnswer, 'tool_use').length === 0) return
  const start = turn.find((message) => message.role === 'assistant')
  const block = start === undefined || typeof start.content === 'string' ? undefined : start.content[0]
  if (start === undefined || isThinking(block)) return
  const path = `messages.${start.index}.content.0.type`
  findings.add(
    'thinking-first',
    path,
    `${path}: Expected \`thinking\` or \`redacted_thinking\`, but found \`${block?.type ?? 'text'}\`. When \`thinking\` is enabled, ` +
      'a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and ' +
      '`tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.',
  )
}

function isOnlyResults(message: AnthropicMessage): boolean {
  return (
    typeof message.content !== 'string' &&
    message.content.length > 0 &&
    message.content.every((block) => block.type === 'tool_result')
  )
}

function checkFinalPosition(
  findings: AnthropicFindings,
  messages: readonly AnthropicMessage[],
  config: Record<string, unknown> | undefined,
): void {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || typeof last.content === 'string') return
  if (config !== undefined && config.type !== 'disabled') return
  const index = last.content.findIndex(isThinking)
  if (index < 0) return
  const path = `messages.${last.index}.content.${index}`
  const text =
    `${path}: When thinking is disabled, an \`assistant\` message in the final position cannot contain \`thinking\`. ` +
    'To use thinking blocks, enable `thinking` in your request.'
  findings.add('thinking-disabled-final', path, text)
}
