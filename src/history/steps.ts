import { assertNever } from '../base/assert-never.ts'
import type { AssistantBlock, UserBlock } from '../core/message.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { annotateInterSessionUserMessages } from './annotate-inter-session.ts'
import type { StickyDecision } from './view-records.ts'
import { sanitizeSessionMessagesImages } from './images.ts'
import { unchanged, type Change, type Item, type Step, type StepContext } from './item.ts'
import { limitHistoryTurns } from './limit-turns.ts'
import { downgradeOpenAIReasoningBlocks } from './openai-reasoning.ts'
import { pairResults, sanitizeToolUseResultPairing, showOrphansAsContext } from './pair-results.ts'
import { pruneContext } from './prune.ts'
import { mergeQueuedMessages } from './queued-messages.ts'
import { stripToolResultDetails } from './strip-details.ts'
import { dropSilentAnswers, sanitizeThinking } from './thinking.ts'
import { sanitizeToolCallInputs } from './tool-call-inputs.ts'
import { splitParallelCalls, tellToolCalls } from './tool-calls.ts'
import { truncateOversizedToolResults } from './truncate-results.ts'
import { applyTurnOrder } from './turn-order.ts'
import { validateTurns } from './validate-turns.ts'

/** What is in a history, as far as it decides which steps have something to do. */
interface Contents {
  fromOtherSessions: boolean
  tools: boolean
  reasoning: boolean
  silence: boolean
  images: boolean
  /** It begins and ends with what was asked, and no two neighbours would have to be joined or kept apart. */
  inOrder: boolean
}

type Role = Item['message']['role']

interface PlannedStep {
  readonly run: Step
  /** Whether it could change anything. */
  readonly concerns: (contents: Contents, context: StepContext) => boolean
}

const outOfOrder = ({ inOrder }: Contents): boolean => !inOrder
const withTools = ({ tools }: Contents): boolean => tools
const withImages = ({ images }: Contents): boolean => images
const withReasoning = ({ reasoning }: Contents): boolean => reasoning

/** Each makes one pass, so that its changes are in the order of the messages whatever the history is made of. */
export const BEFORE_FITTING: readonly PlannedStep[] = [
  { run: annotateInterSessionUserMessages, concerns: ({ fromOtherSessions }) => fromOtherSessions },
  { run: limitHistoryTurns, concerns: (_, { historyLimit }) => historyLimit > 0 },
  { run: sanitizeToolCallInputs, concerns: withTools },
  // Before reasoning, because which calls stay and where a turn ends decide what of it may stay; and before anything
  // is cut, because what a result says decides whether it is real and whether it repeats another.
  { run: (items, { policy }) => pairResults(items, policy), concerns: withTools },
  { run: sanitizeThinking, concerns: withReasoning },
  { run: dropSilentAnswers, concerns: ({ silence }) => silence },
  { run: downgradeOpenAIReasoningBlocks, concerns: withReasoning },
  { run: sanitizeSessionMessagesImages, concerns: withImages },
  { run: pruneContext, concerns: withTools },
  { run: truncateOversizedToolResults, concerns: withTools },
  { run: stripToolResultDetails, concerns: withTools },
  { run: (items) => showOrphansAsContext(items), concerns: withTools },
]

export const AFTER_FITTING: readonly PlannedStep[] = [
  { run: (items, { policy }) => sanitizeToolUseResultPairing(items, policy, 'pair-again'), concerns: withTools },
  { run: tellToolCalls, concerns: withTools },
  { run: mergeQueuedMessages, concerns: outOfOrder },
  { run: applyTurnOrder, concerns: outOfOrder },
  { run: validateTurns, concerns: outOfOrder },
  // Once more on the final turns: a placeholder or a merge can make an image older than it was.
  { run: sanitizeSessionMessagesImages, concerns: withImages },
  { run: splitParallelCalls, concerns: withTools },
]

function contentsOf(items: readonly Item[]): Contents {
  const contents = {
    fromOtherSessions: false,
    tools: false,
    reasoning: false,
    silence: false,
    images: false,
    inOrder: items[0]?.message.role === 'user' && items.at(-1)?.message.role !== 'assistant',
  }
  let previous: Item | undefined
  for (const item of items) {
    const { message } = item
    if (!mayFollow(message.role, previous?.message.role)) contents.inOrder = false
    previous = item
    if (message.role === 'toolResult') contents.tools = true
    if (message.role === 'user' && message.provenance?.kind === 'inter_session') contents.fromOtherSessions = true
    if (message.role === 'assistant' && message.content.length === 0) contents.silence = true
    if (typeof message.content !== 'string') for (const block of message.content) noteBlock(block, contents)
  }
  return contents
}

/** A user's message behind a result is in order for some providers only. */
function mayFollow(role: Role, previous: Role | undefined): boolean {
  if (role === 'toolResult') return true
  return role !== previous && (role !== 'user' || previous !== 'toolResult')
}

function noteBlock(block: UserBlock | AssistantBlock, contents: Contents): void {
  switch (block.type) {
    case 'text':
      if ('textSignature' in block) contents.reasoning = true
      break
    case 'thinking':
      contents.reasoning = true
      break
    case 'toolCall':
      contents.tools = true
      if ('thoughtSignature' in block) contents.reasoning = true
      break
    case 'image':
      contents.images = true
      break
    default:
      assertNever(block)
  }
}

export interface Progress {
  readonly items: readonly Item[]
  /** Of each step, in their order. */
  readonly changes: readonly (readonly Change[])[]
  readonly decisions: readonly StickyDecision[]
}

/** Steps that could change nothing are passed over: most messages are words. */
export function runSteps(steps: readonly PlannedStep[], start: readonly Item[], context: StepContext): Progress {
  let items = start
  let contents = contentsOf(items)
  const changes: (readonly Change[])[] = []
  const decisions: StickyDecision[] = []
  for (const { run, concerns } of steps) {
    const done = concerns(contents, context) ? run(items, context) : unchanged(items)
    if (done.items !== items) contents = contentsOf(done.items)
    items = done.items
    changes.push(done.changes)
    if (done.decisions !== undefined) decisions.push(...done.decisions)
  }
  return { items, changes, decisions }
}

export const totalTokens = (items: readonly Item[]): number =>
  items.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0)
