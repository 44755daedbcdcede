import { cutMiddle } from '../base/text.ts'
import type { PreparedMessage, UserBlock } from '../core/message.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { isLeaveOut, type StickyDecision } from './view-records.ts'
import { change, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import type { Reason } from './reasons.ts'
import { bytesMeasure, wireBytes } from './wire-bytes.ts'
import { clearResult, startOfLatestBatch, withMessage } from './result-text.ts'
import { leftOutNote, longTextNotice, PLACEHOLDERS } from './texts.ts'

/** What a request may weigh. Both always hold for what `fit` returns. */
export interface Room {
  readonly tokens: number
  readonly bytes: number
}

/**
 * The last resort, without a model: a history that is still too large is made to fit, so that the request is valid
 * whatever compaction did. Old results are cleared, then the oldest exchanges are left out whole (a call never without
 * its results), then the current turn's, and only then are texts cut. Summaries and the latest request stay. `tokens`
 * is what the items weigh.
 */
export function fit(items: readonly Item[], context: StepContext, room: Room, tokens: number): StepResult {
  const state = createFitting(items, context, room, tokens)
  state.repeatLeftOut()
  if (state.fits()) return state.result()
  state.clearOldResults()
  state.leaveOutOldest(state.startOfCurrentTurn())
  state.leaveOutOldest(state.startOfLatestFrame())
  state.cutTexts()
  return state.result()
}

/** Leaving out goes on to this share, so that the next message does not move the boundary again. */
const AFTER_LEAVING_OUT = 0.8
const SHORTEST_CUT_CHARS = 200

function createFitting(start: readonly Item[], { sticky, budget }: StepContext, room: Room, startTokens: number) {
  let items = [...start]
  let leftOut = 0
  let tokens = startTokens
  const { bytesOf, total } = bytesMeasure(items, room.bytes)
  let bytes = total
  const changes: Change[] = []
  const decisions: StickyDecision[] = []

  const latestUser = start.findLast((item) => item.kind === 'user')
  const mustStay = (item: Item): boolean => item.kind === 'summary' || item === latestUser
  const fitsWithin = (share: number): boolean => tokens <= room.tokens * share && bytes <= room.bytes * share
  const weigh = (message: PreparedMessage, sign: 1 | -1): void => {
    tokens += sign * estimateMessageTokens(message)
    bytes += sign * bytesOf(message)
  }
  const replaceAt = (at: number, message: PreparedMessage, reason: Reason): void => {
    const item = items[at]
    if (item === undefined) return
    weigh(item.message, -1)
    weigh(message, 1)
    items[at] = withMessage(item, message)
    changes.push(change('fit', 'rewritten', reason, item))
  }
  /** One pass over all groups, so that leaving out thousands costs no more than looking at them. */
  const leaveOut = (shouldGo: (group: readonly Item[], at: number) => boolean, isNew: boolean): void => {
    const kept: Item[] = []
    for (let at = 0; at < items.length;) {
      const group = items.slice(at, at + lengthOfGroup(items, at))
      if (!shouldGo(group, at)) kept.push(...group)
      else {
        leftOut += group.length
        for (const item of group) {
          weigh(item.message, -1)
          changes.push(change('fit', 'dropped', 'longer than the context window', item))
          if (isNew) for (const entry of item.sources) decisions.push({ entry, action: 'leave-out' })
        }
      }
      at += group.length
    }
    items = kept
  }

  return {
    fits: () => fitsWithin(1),
    startOfCurrentTurn: () => items.findLastIndex((item) => item.kind === 'user'),
    startOfLatestFrame: () => items.findLastIndex((item) => item.message.role === 'assistant'),

    repeatLeftOut(): void {
      if (sticky.size === 0) return
      // A way back to an earlier point makes a message the latest that was not when it was left out.
      leaveOut((group) => {
        if (group.some(mustStay)) return false
        const sources = group.flatMap((item) => item.sources)
        return sources.length > 0 && sources.every((entry) => sticky.get(entry)?.some(isLeaveOut))
      }, false)
    },

    clearOldResults(): void {
      const latest = startOfLatestBatch(items)
      for (let at = 0; at < latest && !fitsWithin(1); at++) {
        const item = items[at]
        if (item?.message.role !== 'toolResult') continue
        const cleared = clearResult(item.message, budget.pruning.hardClear.placeholder)
        if (cleared === undefined) continue
        replaceAt(at, cleared, 'old result cleared')
        for (const entry of item.sources) decisions.push({ entry, action: 'clear' })
      }
    },

    /** Whole groups before `end`, oldest first; the latest user message and the summaries are passed over. */
    leaveOutOldest(end: number): void {
      if (fitsWithin(1)) return
      leaveOut((group, at) => at < end && !fitsWithin(AFTER_LEAVING_OUT) && !group.some(mustStay), true)
    },

    cutTexts(): void {
      const stuck = new Set<PreparedMessage>()
      while (!fitsWithin(1)) {
        const at = heaviest(items, stuck)
        const item = items[at]
        if (item === undefined) return
        const lighter = cutInHalf(item.message)
        if (lighter !== undefined) replaceAt(at, lighter, 'text cut to fit the context window')
        else if (item.message.role === 'assistant') leaveOut((_, place) => place === at, true)
        else stuck.add(item.message)
      }
    },

    result(): StepResult {
      if (leftOut === 0) return { items: changes.length === 0 ? start : items, changes, decisions }
      const at = items.findIndex((item) => item.kind !== 'summary')
      return { items: items.toSpliced(at < 0 ? items.length : at, 0, noteItem(leftOut)), changes, decisions }
    },
  }
}

function noteItem(leftOut: number): Item {
  const content = [{ type: 'text', text: leftOutNote(leftOut) }] as const
  return { kind: 'context', sources: [], message: { role: 'user', content, timestamp: 0 } }
}

/** An assistant message goes with its results. */
function lengthOfGroup(items: readonly Item[], at: number): number {
  if (items[at]?.message.role !== 'assistant') return 1
  let length = 1
  while (items[at + length]?.message.role === 'toolResult') length++
  return length
}

function heaviest(items: readonly Item[], stuck: ReadonlySet<PreparedMessage>): number {
  let best = -1
  let weight = 0
  items.forEach(({ message }, at) => {
    const own = Math.max(estimateMessageTokens(message), wireBytes(message) / 4)
    if (own > weight && !stuck.has(message)) [best, weight] = [at, own]
  })
  return best
}

/** Undefined when there is no text left to cut. Signed reasoning goes whole; calls cannot be cut. */
function cutInHalf(message: PreparedMessage): PreparedMessage | undefined {
  if (message.role === 'assistant') {
    if (message.content.some((block) => block.type === 'thinking')) {
      const content = message.content.filter((block) => block.type !== 'thinking')
      return content.length === 0 ? undefined : { ...message, content }
    }
    const content = message.content.map((block) =>
      block.type === 'text' ? { ...block, text: half(block.text) } : block,
    )
    return sameTexts(content, message.content) ? undefined : { ...message, content }
  }
  const blocks =
    typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
  const content = blocks.map((block): UserBlock => {
    if (block.type === 'text') return { ...block, text: half(block.text) }
    return { type: 'text', text: PLACEHOLDERS.imageLeftOut('it does not fit the context window') }
  })
  return sameTexts(content, blocks) ? undefined : { ...message, content }
}

const half = (text: string): string =>
  text.length <= SHORTEST_CUT_CHARS
    ? text
    : cutMiddle(text, Math.max(SHORTEST_CUT_CHARS, Math.floor(text.length / 2)), longTextNotice)

type AnyBlock = { readonly type: string; readonly text?: string }

const sameTexts = (a: readonly AnyBlock[], b: readonly AnyBlock[]): boolean =>
  a.every((block, at) => block.type === b[at]?.type && block.text === b[at]?.text)
