import { assertNever } from '../base/assert-never.ts'
import type { AssistantBlock, AssistantMessage, TextBlock, ThinkingBlock, ToolCallBlock } from '../core/message.ts'
import { change, editItems, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import type { Loose } from './loose.ts'

/**
 * Reasoning and its signatures (the original's `sanitizeAntigravityThinkingBlocks` and what it later became). A signed
 * block goes back byte for byte to the model that signed it, or not at all; another model would refuse the session.
 */
export function sanitizeThinking(items: readonly Item[], context: StepContext): StepResult {
  const changes: Change[] = []
  const currentTurn = items.findLastIndex((item) => item.kind === 'user')
  const sanitized = editItems(items, (item, at) => {
    if (item.message.role !== 'assistant') return item
    const rules = { context, own: isOwn(item.message, context), inCurrentTurn: at > currentTurn }
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
  // A turn that was only reasoning says nothing to anybody else.
  const spoken = editItems(sanitized, (item) => {
    if (item.message.role !== 'assistant' || item.message.content.some((block) => block.type !== 'thinking'))
      return item
    changes.push(change('thinking', 'dropped', 'answer without text or calls', item))
    return undefined
  })
  return { items: spoken, changes }
}

interface Rules {
  readonly context: StepContext
  readonly own: boolean
  readonly inCurrentTurn: boolean
}

function isOwn(message: AssistantMessage, { target }: StepContext): boolean {
  return message.provider === target.provider && message.api === target.api && message.model === target.model
}

function keepReplayable(message: AssistantMessage, rules: Rules): readonly AssistantBlock[] {
  // What was cut off may have been cut inside a signature.
  const whole = message.stopReason !== 'error' && message.stopReason !== 'aborted'
  let changed = false
  const kept = message.content.flatMap((block): AssistantBlock[] => {
    const next = replayable(block, rules, whole)
    if (next !== block) changed = true
    return next === undefined ? [] : [next]
  })
  return changed ? kept : message.content
}

function replayable(block: AssistantBlock, rules: Rules, whole: boolean): AssistantBlock | undefined {
  switch (block.type) {
    case 'thinking':
      return whole && rules.own ? replayableThinking(block, rules) : undefined
    case 'text':
      return whole && rules.own && rules.context.policy.replayThinking !== 'never'
        ? checkedText(block, rules)
        : unsignedText(block)
    case 'toolCall':
      return whole && rules.own && rules.context.policy.replayThinking === 'base64-signed'
        ? checkedCall(block)
        : unsignedCall(block)
    default:
      return assertNever(block)
  }
}

function replayableThinking(block: ThinkingBlock, { context, inCurrentTurn }: Rules): ThinkingBlock | undefined {
  const { policy } = context
  const signature = block.thinkingSignature ?? ''
  switch (policy.replayThinking) {
    case 'signed':
      return signature.trim() === '' ? undefined : block
    case 'base64-signed':
      if (policy.normalizeAntigravityThinking) return withKnownSignature(block)
      return signature === '' || isBase64(signature) ? block : undefined
    case 'reasoning-items':
      return isOpenAiReasoning(signature) ? block : undefined
    case 'current-turn':
      return inCurrentTurn && REASONING_FIELDS.includes(signature) ? block : undefined
    case 'never':
      return undefined
    default:
      return assertNever(policy.replayThinking)
  }
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

function unsignedText(block: TextBlock): TextBlock {
  if (block.textSignature === undefined) return block
  const { textSignature: _, ...rest } = block
  return rest
}

function checkedText(block: TextBlock, { context }: Rules): TextBlock {
  if (block.textSignature === undefined) return block
  const { replayThinking } = context.policy
  const fits =
    replayThinking === 'reasoning-items' || (replayThinking === 'base64-signed' && isBase64(block.textSignature))
  return fits ? block : unsignedText(block)
}

function checkedCall(block: ToolCallBlock): ToolCallBlock {
  return block.thoughtSignature === undefined || isBase64(block.thoughtSignature) ? block : unsignedCall(block)
}

function unsignedCall(block: ToolCallBlock): ToolCallBlock {
  if (block.thoughtSignature === undefined) return block
  const { thoughtSignature: _, ...rest } = block
  return rest
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}

/** `{"type":"reasoning","id":"rs_…"}` as OpenAI Responses returns it. */
export function isOpenAiReasoning(signature: string): boolean {
  if (!signature.startsWith('{')) return false
  try {
    const item: unknown = JSON.parse(signature)
    if (typeof item !== 'object' || item === null || !('id' in item) || !('type' in item)) return false
    return typeof item.id === 'string' && item.id.startsWith('rs_') && /^reasoning(\.|$)/.test(String(item.type))
  } catch {
    return false
  }
}
