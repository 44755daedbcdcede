import { assertNever } from '../base/assert-never.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { AssistantBlock, AssistantMessage, TextBlock, ThinkingBlock, ToolCallBlock } from '../core/message.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import { change, editItems, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import type { Loose } from './normalize-message.ts'

/**
 * Reasoning and its signatures (the original's `sanitizeAntigravityThinkingBlocks` and what it later became). A signed
 * block goes back byte for byte to the model that signed it, or not at all; another model would refuse the session.
 */
export function sanitizeThinking(items: readonly Item[], context: StepContext): StepResult {
  const changes: Change[] = []
  const currentTurn = startOfCurrentTurn(items)
  const sanitized = editItems(items, (item, at) => {
    if (item.message.role !== 'assistant') return item
    const rules = { context, own: isOwnAnswer(item.message, context.target), inCurrentTurn: at > currentTurn }
    const content = keepReplayable(item.message, rules)
    if (content === item.message.content) return item
    const lost = item.message.content.length - content.length
    changes.push(
      change(
        'thinking',
        lost > 0 ? 'dropped' : 'rewritten',
        rules.own ? 'reasoning not replayable' : 'reasoning of another model',
        item,
        lost,
      ),
    )
    return { ...item, message: { ...item.message, content } }
  })
  return { items: sanitized, changes }
}

/** A turn that was only reasoning says nothing to anybody. */
export function dropSilentAnswers(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const spoken = editItems(items, (item) => {
    if (item.message.role !== 'assistant' || item.message.content.length > 0) return item
    changes.push(change('thinking', 'dropped', 'answer without text or calls', item))
    return undefined
  })
  return { items: spoken, changes }
}

/** A turn that ended in an answer is over; a result without a call will be a user's text. */
function startOfCurrentTurn(items: readonly Item[]): number {
  if (items.at(-1)?.message.role === 'assistant') return items.length
  return items.findLastIndex((item) => item.message.role === 'user' || item.kind === 'context')
}

interface Rules {
  readonly context: StepContext
  readonly own: boolean
  readonly inCurrentTurn: boolean
}

/** Written by the model the history is prepared for. */
export function isOwnAnswer(message: AssistantMessage, target: ModelIdentity): boolean {
  return message.provider === target.provider && message.api === target.api && message.model === target.model
}

function keepReplayable(message: AssistantMessage, rules: Rules): readonly AssistantBlock[] {
  // What was cut off may have been cut inside a signature.
  const whole = message.stopReason !== 'error' && message.stopReason !== 'aborted'
  let changed = false
  const kept: AssistantBlock[] = []
  for (const block of message.content) {
    const next = replayable(block, rules, whole)
    if (next !== block) changed = true
    if (next !== undefined) kept.push(next)
  }
  // Nor may a message end in reasoning: Anthropic refuses it, and it is not needed.
  const end = kept.findLastIndex((block) => block.type !== 'thinking') + 1
  return changed || end < kept.length ? kept.slice(0, end) : message.content
}

function replayable(block: AssistantBlock, rules: Rules, whole: boolean): AssistantBlock | undefined {
  const signed = whole && rules.own
  switch (block.type) {
    case 'thinking':
      return signed ? replayableThinking(block, rules) : undefined
    case 'text':
      return signed && isReplayableText(block, rules) ? block : unsignedText(block)
    case 'toolCall':
      return signed && isReplayableCall(block, rules) ? block : unsignedCall(block)
    default:
      return assertNever(block)
  }
}

function replayableThinking(block: ThinkingBlock, { context, inCurrentTurn }: Rules): ThinkingBlock | undefined {
  const { policy } = context
  const signature = block.thinkingSignature ?? ''
  switch (policy.replayThinking) {
    case 'signed':
      return isSignature(signature) && hasItsText(block, context) ? block : undefined
    case 'base64-signed':
      if (policy.normalizeAntigravityThinking) return withKnownSignature(block)
      return signature === '' || isBase64(signature) ? block : undefined
    case 'reasoning-items':
      return openAiReasoningId(signature) === undefined ? undefined : block
    case 'current-turn':
      return inCurrentTurn && REASONING_FIELDS.includes(signature) ? block : undefined
    case 'never':
      return undefined
    default:
      return assertNever(policy.replayThinking)
  }
}

/**
 * A block whose text was emptied makes every request fail; only models that keep their reasoning to themselves (Claude
 * from 4.7 on) sign blocks without text.
 */
function hasItsText({ thinking, redacted }: ThinkingBlock, { target }: StepContext): boolean {
  return thinking !== '' || redacted === true || claudeVersion(target.model) >= 407
}

/** 405 for `claude-sonnet-4-5`, 0 for what is not named so. */
function claudeVersion(model: string): number {
  const [, major = '0', minor = '0'] = /claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)/.exec(model) ?? []
  return Number(major) * 100 + Number(minor)
}

/** Chat-completions servers that reason name the field it came in; within a tool loop some insist on getting it back. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text']

/** Names under which Claude's signature arrived through Google. */
const SIGNATURE_FIELDS = ['thinkingSignature', 'signature', 'thought_signature', 'thoughtSignature'] as const

function withKnownSignature(block: ThinkingBlock): ThinkingBlock | undefined {
  const fields: Loose = { ...block }
  const found = SIGNATURE_FIELDS.map((field) => fields[field]).find((value) => value !== undefined)
  if (typeof found !== 'string' || found.trim() === '' || !isBase64(found)) return undefined
  return block.thinkingSignature === found ? block : { ...block, thinkingSignature: found }
}

function isReplayableText({ textSignature = '' }: TextBlock, { context }: Rules): boolean {
  const { replayThinking } = context.policy
  if (replayThinking === 'reasoning-items') return true
  return replayThinking === 'base64-signed' && isBase64(textSignature)
}

/** Google signs calls; behind an OpenAI-compatible door the signature is an object of its own. */
function isReplayableCall({ thoughtSignature = '' }: ToolCallBlock, { context }: Rules): boolean {
  const { replayThinking } = context.policy
  if (replayThinking === 'base64-signed') return isBase64(thoughtSignature)
  return replayThinking === 'current-turn' && thoughtSignature.startsWith('{')
}

function unsignedText(block: TextBlock): TextBlock {
  if (block.textSignature === undefined) return block
  const { textSignature: _, ...rest } = block
  return rest
}

function unsignedCall(block: ToolCallBlock): ToolCallBlock {
  if (block.thoughtSignature === undefined) return block
  const { thoughtSignature: _, ...rest } = block
  return rest
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}

/** Base64, the web's alphabet included. */
const isSignature = (text: string): boolean => /^[A-Za-z0-9+/_-]+={0,2}$/.test(text)

/** `{"type":"reasoning","id":"rs_…","encrypted_content":"…"}` as OpenAI Responses returns it; its id, if it is one. */
export function openAiReasoningId(signature: string): string | undefined {
  const item = signature.startsWith('{') ? parseJson(signature) : undefined
  if (!isRecord(item) || typeof item['id'] !== 'string' || !item['id'].startsWith('rs_')) return undefined
  const isReasoning = typeof item['type'] === 'string' && /^reasoning(\.|$)/.test(item['type'])
  // Nothing is stored at the provider, so an item without its content cannot be found there.
  const isWhole = typeof item['encrypted_content'] === 'string' && item['encrypted_content'] !== ''
  return isReasoning && isWhole ? item['id'] : undefined
}
