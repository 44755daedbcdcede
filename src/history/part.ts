import type { PreparedMessage } from '../core/message.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { hasImage } from './images.ts'
import type { Change, Item } from './item.ts'
import { reportItems, type HistoryReport, type MessageReport, type ReportPart } from './report.ts'
import { textTokens } from './result-text.ts'
import { totalTokens } from './steps.ts'
import { openAiReasoningId } from './thinking.ts'
import { bytesBound } from './wire-bytes.ts'

/**
 * Some messages in a row as they are sent, with everything that was done to them. It never changes, so what is known of
 * it (an encoded report, a count of tokens) is known for good, and a history that grows is a list of parts.
 */
export interface Part extends ReportPart {
  readonly messages: readonly PreparedMessage[]
}

/** One that may become the beginning of longer histories. */
export interface WeighedPart extends Part {
  readonly weight: Weight
  /** Ids of reasoning items; one may stand in a request once. */
  readonly reasoning: ReadonlySet<string>
}

/** What limits of the whole history are compared with. */
export interface Weight {
  readonly wanted: number
  readonly raw: number
  /** A bound, far above what the steps that order can add. */
  readonly bytes: number
  readonly resultTokens: number
  readonly heaviestResult: number
  readonly images: number
}

export function createPart(items: readonly Item[], changes: Part['changes']): Part {
  return { messages: items.map(({ message }) => message), report: reportItems(items), changes }
}

/** From the items in front of fitting and the final ones. */
export function weighedPart(shaped: readonly Item[], ordered: readonly Item[], changes: Part['changes']): WeighedPart {
  const part = createPart(ordered, changes)
  const results = shaped.flatMap(({ message }) => (message.role === 'toolResult' ? [message] : []))
  const weight = {
    wanted: totalTokens(shaped),
    raw: tokensOf(part),
    bytes: bytesBound(ordered),
    resultTokens: results.reduce((all, message) => all + estimateMessageTokens(message), 0),
    heaviestResult: results.reduce((most, message) => Math.max(most, textTokens(message)), 0),
    images: shaped.filter(hasImage).length,
  }
  return { ...part, weight, reasoning: reasoningIn(ordered) }
}

export const tokensOf = ({ report }: Pick<Part, 'report'>): number =>
  report.reduce((all, { tokens }) => all + tokens, 0)

function reasoningIn(items: readonly Item[]): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const { message } of items) {
    if (message.role !== 'assistant') continue
    for (const block of message.content) {
      const id = block.type === 'thinking' ? openAiReasoningId(block.thinkingSignature ?? '') : undefined
      if (id !== undefined) ids.add(id)
    }
  }
  return ids
}

export function joinParts(first: WeighedPart, then: WeighedPart): WeighedPart {
  return {
    messages: concat([first.messages, then.messages]),
    report: concat([first.report, then.report]),
    changes: joinedChanges([first, then]),
    weight: totalWeight([first, then]),
    reasoning: new Set([...first.reasoning, ...then.reasoning]),
  }
}

export function totalWeight(parts: readonly WeighedPart[]): Weight {
  const sum = (field: keyof Weight): number => parts.reduce((all, { weight }) => all + weight[field], 0)
  return {
    wanted: sum('wanted'),
    raw: sum('raw'),
    bytes: sum('bytes'),
    resultTokens: sum('resultTokens'),
    heaviestResult: parts.reduce((most, { weight }) => Math.max(most, weight.heaviestResult), 0),
    images: sum('images'),
  }
}

export function messagesOf(parts: readonly Pick<Part, 'messages'>[]): readonly PreparedMessage[] {
  return concat(parts.map(({ messages }) => messages))
}

/** Put together when it is asked for: to send a request it is not. */
export function reportOf(parts: readonly ReportPart[]): HistoryReport {
  let messages: readonly MessageReport[] | undefined
  let changes: readonly Change[] | undefined
  return {
    get messages() {
      messages ??= concat(parts.map(({ report }) => report))
      return messages
    },
    get changes() {
      changes ??= concat(joinedChanges(parts))
      return changes
    },
  }
}

/** Step by step, because a report tells what happened in the order of the steps. */
function joinedChanges(parts: readonly ReportPart[]): ReportPart['changes'] {
  const [first] = parts
  return (first?.changes ?? []).map((_, step) => concat(parts.map(({ changes }) => changes[step] ?? [])))
}

function concat<T>(lists: readonly (readonly T[])[]): readonly T[] {
  const [first = [], ...others] = lists.filter((list) => list.length > 0)
  return others.length === 0 ? first : first.concat(...others)
}
