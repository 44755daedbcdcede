import type { TranscriptPolicy } from '../core/history-rules.ts'
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from '../core/message.ts'
import { toWireId } from '../core/wire-ids.ts'
import { change, editItems, unchanged, type Change, type Item, type StepName, type StepResult } from './item.ts'
import type { Reason } from './reasons.ts'
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
  const paired = pairResults(items, policy, step)
  const shown = showOrphansAsContext(paired.items, step)
  return { items: shown.items, changes: [...paired.changes, ...shown.changes] }
}

/**
 * Pairing with the orphans left as they are, of the kind `context`: what is cut out of results is cut out of them too,
 * before `showOrphansAsContext` makes them text.
 */
export function pairResults(
  items: readonly Item[],
  policy: PairingPolicy,
  step: StepName = 'pair-results',
): StepResult {
  if (!policy.repairToolUseResultPairing || isPaired(items, policy)) return unchanged(items)
  const frames = framesOf(items, policy)
  const leftovers = assignInFrames(items, frames)
  const orphans = assignDisplaced(leftovers, frames)
  return rebuild(items, frames, orphans, step)
}

/** What is done for a call that has no result. */
export const MISSING_RESULT = 'missing tool result'
export const CALL_WITHOUT_RESULT = 'call without a result'

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

/** As almost every history is: each call with its result behind it, in order. Then there is nothing to work out. */
function isPaired(items: readonly Item[], policy: PairingPolicy): boolean {
  let at = 0
  while (at < items.length) {
    const message = items[at++]?.message
    if (message?.role === 'toolResult') return false
    if (message?.role !== 'assistant') continue
    const onlyAnswered = isOnlyAnswered(message, policy)
    for (const block of message.content) {
      if (block.type !== 'toolCall') continue
      const result = items[at++]
      if (result?.message.role !== 'toolResult') return false
      if (result.message.toolCallId !== block.id || result.message.toolName !== block.name) return false
      if (onlyAnswered && isSynthetic(result)) return false
    }
  }
  return true
}

function framesOf(items: readonly Item[], policy: PairingPolicy): readonly Frame[] {
  const frames: Frame[] = []
  items.forEach(({ message }, at) => {
    if (message.role !== 'assistant') return
    const calls: Call[] = []
    for (const block of message.content) if (block.type === 'toolCall') calls.push({ block })
    if (calls.length > 0) frames.push({ at, calls, onlyAnswered: isOnlyAnswered(message, policy) })
  })
  return frames
}

const isOnlyAnswered = (message: AssistantMessage, policy: PairingPolicy): boolean =>
  isFailed(message) || !policy.allowSyntheticToolResults

const isFailed = ({ stopReason }: AssistantMessage): boolean => stopReason === 'error' || stopReason === 'aborted'

/** Gives each result to a call of the frame it stands in; returns those that no call there wants. */
function assignInFrames(items: readonly Item[], frames: readonly Frame[]): readonly Item[] {
  const leftovers: Item[] = []
  let next = 0
  let frame: Frame | undefined
  items.forEach((item, at) => {
    if (frames[next]?.at === at) frame = frames[next++]
    if (item.message.role !== 'toolResult') return
    const call = frame === undefined ? undefined : wantedBy(item, item.message.toolCallId, frame.calls)
    if (call === undefined) leftovers.push(item)
    else call.result = item
  })
  return leftovers
}

/** The first open call with this id; a call that has only a synthetic result is open for a real one. */
function wantedBy(result: Item, id: string, calls: readonly Call[]): Call | undefined {
  const open = calls.filter((call) => isOpenFor(call, result))
  const exact = open.find((call) => call.result === undefined && call.block.id === id)
  if (exact !== undefined) return exact
  const replaced = open.find((call) => call.block.id === id)
  if (replaced !== undefined) return replaced
  // Programs that stored rewritten ids wrote them in this form, or without what OpenAI puts behind the bar.
  const alike = open.filter((call) => sameRewritten(call.block.id, id))
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
    const open = isSynthetic(item) ? [] : calls.filter((call) => isOpenFor(call, item))
    const [only] = open
    if (only !== undefined && open.length === 1) only.result = item
    else if (!calls.some((call) => repeats(item, call.result))) orphans.add(item)
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
function isOpenFor(call: Call, result: Item): boolean {
  return call.result === undefined || (isSynthetic(call.result) && !isSynthetic(result))
}

/** A made-up result may leave with its call, so nothing repeats it. */
function repeats(result: Item, other: Item | undefined): boolean {
  if (other === undefined || isSynthetic(other)) return false
  return JSON.stringify(other.message.content) === JSON.stringify(result.message.content)
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
  const owned = new Set<Item>()
  for (const { calls } of frames) for (const { result } of calls) if (result !== undefined) owned.add(result)
  items.forEach((item, at) => {
    const frame = frameAt.get(at)
    if (frame !== undefined) {
      rebuilt.push(...closeFrame(item, frame, changes, step))
      return
    }
    if (item.message.role !== 'toolResult') rebuilt.push(item)
    else if (!owned.has(item)) rebuilt.push(...withoutCall(item, orphans, changes, step))
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
  changes.push(change(step, 'dropped', CALL_WITHOUT_RESULT, item, frame.calls.length - kept.length))
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
  changes.push(change(step, 'added', MISSING_RESULT, owner))
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

/** A real result without a call stays: late results and cut histories must not cost the model what was found. */
function withoutCall(item: Item, orphans: ReadonlySet<Item>, changes: Change[], step: StepName): readonly Item[] {
  if (orphans.has(item) && !isSynthetic(item)) return [{ ...item, kind: 'context' }]
  const reason: Reason = isSynthetic(item) ? 'synthetic result without an open call' : 'result that repeats another'
  changes.push(change(step, 'dropped', reason, item))
  return []
}

/** No provider takes a result without its call, so it goes on as a user's text. */
export function showOrphansAsContext(items: readonly Item[], step: StepName = 'pair-results'): StepResult {
  const changes: Change[] = []
  const shown = editItems(items, (item) => {
    const { message } = item
    if (item.kind !== 'context' || message.role !== 'toolResult') return item
    changes.push(change(step, 'rewritten', 'result without a call becomes context', item))
    const content = [{ type: 'text' as const, text: contextResultText(message.toolName) }, ...message.content]
    return { ...item, message: { role: 'user', content, timestamp: message.timestamp } }
  })
  return { items: shown, changes }
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

/** Made up for a call, now or by the program that wrote the transcript. */
function isSynthetic(item: Item): boolean {
  if (item.kind === 'synthetic-result') return true
  return item.message.role === 'toolResult' && isSyntheticResult(item.message)
}

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
