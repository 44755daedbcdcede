import type { TranscriptPolicy } from '../core/history-rules.ts'
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from '../core/message.ts'
import { toWireId } from '../core/wire-ids.ts'
import { change, unchanged, type Change, type Item, type StepName, type StepResult } from './item.ts'
import { contextResultText, SYNTHETIC_RESULT_TEXT } from './texts.ts'

/**
 * The original's `sanitizeToolUseResultPairing`, by occurrence: every call has exactly one result, directly behind its
 * message and in call order. A frame is an assistant message with calls and what follows up to the next such message;
 * ids mean something inside their frame only, because models use them again.
 */
export function sanitizeToolUseResultPairing(
  items: readonly Item[],
  policy: PairingPolicy,
  step: StepName = 'pair-results',
): StepResult {
  if (!policy.repairToolUseResultPairing) return unchanged(items)
  const frames = framesOf(items, policy)
  const leftovers = assignInFrames(items, frames)
  const orphans = assignDisplaced(leftovers, frames)
  return rebuild(items, frames, orphans, step)
}

export type PairingPolicy = Pick<TranscriptPolicy, 'repairToolUseResultPairing' | 'allowSyntheticToolResults'>

interface Call {
  readonly block: ToolCallBlock
  result?: Item
}

interface Frame {
  readonly at: number
  readonly calls: readonly Call[]
  /** Calls count only if they were run: the answer was cut off, or nothing may be made up for them. */
  readonly onlyAnswered: boolean
}

function framesOf(items: readonly Item[], policy: PairingPolicy): readonly Frame[] {
  return items.flatMap(({ message }, at) => {
    if (message.role !== 'assistant') return []
    const calls = message.content.flatMap((block): Call[] => (block.type === 'toolCall' ? [{ block }] : []))
    return calls.length === 0
      ? []
      : [{ at, calls, onlyAnswered: isFailed(message) || !policy.allowSyntheticToolResults }]
  })
}

const isFailed = ({ stopReason }: AssistantMessage): boolean => stopReason === 'error' || stopReason === 'aborted'

/** Gives each result to a call of the frame it stands in; returns those that no call there wants. */
function assignInFrames(items: readonly Item[], frames: readonly Frame[]): readonly Item[] {
  const leftovers: Item[] = []
  let next = 0
  let frame: Frame | undefined
  items.forEach((item, at) => {
    if (frames[next]?.at === at) frame = frames[next++]
    if (item.message.role !== 'toolResult') return
    const call = wantedBy(item.message, frame?.calls ?? [])
    if (call === undefined) leftovers.push(item)
    else call.result = item
  })
  return leftovers
}

/** The first open call with this id; a call that has only a synthetic result is open for a real one. */
function wantedBy(result: ToolResultMessage, calls: readonly Call[]): Call | undefined {
  const open = calls.filter((call) => isOpenFor(call, result))
  const exact = open.find((call) => call.result === undefined && call.block.id === result.toolCallId)
  if (exact !== undefined) return exact
  const replaced = open.find((call) => call.block.id === result.toolCallId)
  if (replaced !== undefined) return replaced
  // Programs that stored rewritten ids wrote them in this form, or without what OpenAI puts behind the bar.
  const alike = open.filter((call) => sameRewritten(call.block.id, result.toolCallId))
  return alike.length === 1 ? alike[0] : undefined
}

function sameRewritten(callId: string, resultId: string): boolean {
  if (resultId === '') return false
  if (toWireId(callId, 'strict') === toWireId(resultId, 'strict')) return true
  return callId.split('|')[0] === resultId.split('|')[0]
}

/** A result that stands outside its frame goes home when exactly one call can own it; what only repeats another goes. */
function assignDisplaced(results: readonly Item[], frames: readonly Frame[]): ReadonlySet<Item> {
  const orphans = new Set<Item>()
  if (results.length === 0) return orphans
  const byId = callsById(frames)
  for (const item of results) {
    const { message } = item
    if (message.role !== 'toolResult') continue
    const calls = byId.get(message.toolCallId) ?? []
    // What was made up for a call belongs where it was put.
    const open = isSyntheticResult(message) ? [] : calls.filter((call) => isOpenFor(call, message))
    const [only] = open
    if (only !== undefined && open.length === 1) only.result = item
    else if (!calls.some((call) => repeats(message, call.result))) orphans.add(item)
  }
  return orphans
}

function callsById(frames: readonly Frame[]): ReadonlyMap<string, readonly Call[]> {
  const byId = new Map<string, Call[]>()
  for (const call of frames.flatMap((frame) => frame.calls)) {
    const calls = byId.get(call.block.id)
    if (calls === undefined) byId.set(call.block.id, [call])
    else calls.push(call)
  }
  return byId
}

/** Without a result, or with one that was made up while this one is real. */
function isOpenFor(call: Call, result: ToolResultMessage): boolean {
  return call.result === undefined || (isSynthetic(call.result) && !isSyntheticResult(result))
}

function repeats(result: ToolResultMessage, other: Item | undefined): boolean {
  return other !== undefined && JSON.stringify(other.message.content) === JSON.stringify(result.content)
}

function rebuild(
  items: readonly Item[],
  frames: readonly Frame[],
  orphans: ReadonlySet<Item>,
  step: StepName,
): StepResult {
  const changes: Change[] = []
  const rebuilt: Item[] = []
  const frameAt = new Map(frames.map((frame) => [frame.at, frame]))
  const owned = new Set(frames.flatMap((frame) => frame.calls.flatMap((call) => call.result ?? [])))
  items.forEach((item, at) => {
    const frame = frameAt.get(at)
    if (frame !== undefined) {
      rebuilt.push(...closeFrame(item, frame, changes, step))
      return
    }
    if (item.message.role !== 'toolResult') rebuilt.push(item)
    else if (!owned.has(item)) rebuilt.push(...asContext(item, orphans, changes, step))
  })
  if (sameItems(items, rebuilt)) return unchanged(items)
  noteMoves(items, rebuilt, changes, step)
  return { items: rebuilt, changes }
}

function closeFrame(item: Item, frame: Frame, changes: Change[], step: StepName): readonly Item[] {
  const { message } = item
  if (message.role !== 'assistant') return [item]
  const kept = frame.onlyAnswered
    ? frame.calls.filter((call) => call.result !== undefined && !isSynthetic(call.result))
    : frame.calls
  const results = kept.map((call) => named(call.result ?? synthetic(call, item, changes, step), call))
  if (kept.length === frame.calls.length) return [item, ...results]
  changes.push(change(step, 'dropped', 'call without a result', item, frame.calls.length - kept.length))
  const keptBlocks = new Set(kept.map((call) => call.block))
  const content = message.content.filter((block) => block.type !== 'toolCall' || keptBlocks.has(block))
  return content.length === 0 ? [] : [{ ...item, message: { ...message, content } }, ...results]
}

/** The result carries the id and name of its call, whatever form they were stored in. */
function named(item: Item, call: Call): Item {
  if (item.message.role !== 'toolResult') return item
  const { id, name } = call.block
  if (item.message.toolCallId === id && item.message.toolName === name) return item
  return { ...item, message: { ...item.message, toolCallId: id, toolName: name } }
}

function synthetic(call: Call, owner: Item, changes: Change[], step: StepName): Item {
  changes.push(change(step, 'added', 'missing tool result', owner))
  return {
    kind: 'synthetic-result',
    sources: [],
    message: {
      role: 'toolResult',
      toolCallId: call.block.id,
      toolName: call.block.name,
      content: [{ type: 'text', text: SYNTHETIC_RESULT_TEXT }],
      isError: true,
      timestamp: owner.message.timestamp,
    },
  }
}

/** A real result without a call stays, as text: late results and cut histories must not cost the model what was found. */
function asContext(item: Item, orphans: ReadonlySet<Item>, changes: Change[], step: StepName): readonly Item[] {
  const { message } = item
  if (message.role !== 'toolResult') return [item]
  if (!orphans.has(item) || isSyntheticResult(message)) {
    changes.push(
      change(
        step,
        'dropped',
        isSyntheticResult(message) ? 'synthetic result without an open call' : 'result that repeats another',
        item,
      ),
    )
    return []
  }
  changes.push(change(step, 'rewritten', 'result without a call becomes context', item))
  const content = [{ type: 'text' as const, text: contextResultText(message.toolName) }, ...message.content]
  return [{ ...item, kind: 'context', message: { role: 'user', content, timestamp: message.timestamp } }]
}

/** A result has moved when something else stood between it and what it now stands behind. */
function noteMoves(before: readonly Item[], after: readonly Item[], changes: Change[], step: StepName): void {
  const kept = new Set(after.map((item) => item.sources[0]))
  const rank = new Map<string | undefined, number>()
  for (const item of before) if (kept.has(item.sources[0])) rank.set(item.sources[0], rank.size)
  let previous: number | undefined
  for (const item of after) {
    const own = item.sources.length === 0 ? undefined : rank.get(item.sources[0])
    if (own === undefined) continue
    if (item.kind === 'result' && previous !== undefined && own !== previous + 1) {
      changes.push(change(step, 'moved', 'results stand behind their call', item))
    }
    previous = own
  }
}

const sameItems = (a: readonly Item[], b: readonly Item[]): boolean =>
  a.length === b.length && a.every((item, at) => item === b[at])

const isSynthetic = ({ message }: Item): boolean => message.role === 'toolResult' && isSyntheticResult(message)

/** Ours, by its text; the original's, by its text or the reason it recorded. */
export function isSyntheticResult({ content, details, isError }: ToolResultMessage): boolean {
  if (
    typeof details === 'object' &&
    details !== null &&
    'reason' in details &&
    details.reason === 'missing_tool_result'
  ) {
    return true
  }
  const [block] = content
  return isError && block?.type === 'text' && /^\[[a-z]+\] missing tool result/.test(block.text)
}
