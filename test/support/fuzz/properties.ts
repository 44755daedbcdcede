import { isRecord } from '../../../src/base/json.ts'
import type { Entry } from '../../../src/core/entry.ts'
import type { EntryId } from '../../../src/core/ids.ts'
import { textOf, type Message, type PreparedMessage } from '../../../src/core/message.ts'
import { isLeaveOut, readDecisions, stickyEntryData, VIEW_ENTRY_TYPE } from '../../../src/history/view-records.ts'
import type { StepName } from '../../../src/history/item.ts'
import { limitHistoryTurns } from '../../../src/history/limit-turns.ts'
import { isSyntheticResult } from '../../../src/history/pair-results.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { PLACEHOLDERS } from '../../../src/history/texts.ts'
import type { HistoryReport } from '../../../src/history/report.ts'
import { activeEntries, viewOf } from '../../../src/history/view.ts'
import { id } from '../history.ts'

/** Each returns what is wrong, or undefined. */
export type Property = (input: HistoryInput) => string | undefined

const REPEATED = 'result that repeats another'

const bytes = (messages: readonly PreparedMessage[]): string => JSON.stringify(messages)

export const PROPERTIES: { readonly [name: string]: Property } = {
  'prepared twice, nothing changes any more': (input) => {
    const once = prepareHistory(input).messages
    const again = prepareHistory({ ...input, entries: asEntries(once), historyLimit: 0 }).messages
    return bytes(once) === bytes(again) ? undefined : `${bytes(once)}\n became \n${bytes(again)}`
  },

  'the same input gives the same bytes': (input) => {
    return bytes(prepareHistory(input).messages) === bytes(prepareHistory(structuredClone(input)).messages)
      ? undefined
      : 'two runs differ'
  },

  'decisions that were stored give the same bytes again': (input) => {
    const { messages, decisions } = prepareHistory(input)
    const stored = customEntry(VIEW_ENTRY_TYPE, stickyEntryData(decisions))
    const again = prepareHistory({ ...input, entries: [...input.entries, stored], now: 1_000 }).messages
    return bytes(messages) === bytes(again) ? undefined : `${bytes(messages)}\n became \n${bytes(again)}`
  },

  'users and answers keep their order': (input) => {
    const { report } = prepareHistory(input)
    const entries = activeEntries(input.entries)
    for (const role of ['user', 'assistant']) {
      const spoken = entries.filter((entry) => entry.type === 'message' && entry.message.role === role)
      const place = new Map(spoken.map((entry, at) => [entry.id, at]))
      // The calls of one answer may stand in several messages, one behind the other.
      const parts = report.messages.flatMap((one) => one.entries.flatMap((entry) => place.get(entry) ?? []))
      const isSplit = role === 'assistant' && report.changes.some((one) => one.reason === 'one call per answer')
      const order = isSplit ? parts.filter((at, i) => at !== parts[i - 1]) : parts
      if (order.some((at, i) => i > 0 && at <= (order[i - 1] ?? 0))) return `${role}: ${order.join()}`
    }
    return undefined
  },

  'no text of a user is lost, unless a limit says so': (input) => {
    const entries = withOwnWords(input.entries)
    const { messages, report } = prepareHistory({ ...input, entries, historyLimit: 0 })
    const cut = entriesChangedBy(report, ['fit'])
    const seen = messages.map((message) => textIn(message)).join('\n')
    const lost = visible(entries).find(({ entry, message }) => {
      if (message.role !== 'user' || cut.has(entry)) return false
      return blockTexts(message).some((text) => !seen.includes(text))
    })
    return lost === undefined ? undefined : `lost ${lost.entry}`
  },

  'no real tool result is lost, unless a budget says so': (input) => {
    const entries = withOwnWords(input.entries)
    const { messages, report } = prepareHistory({ ...input, entries, historyLimit: 0 })
    const cut = entriesChangedBy(report, ['prune', 'truncate-results', 'fit'])
    const shown = visible(entries)
    // Of two results that say the same one goes; what a budget then does to the other, it does to both.
    const said = new Set(
      shown.filter(({ entry }) => cut.has(entry)).map(({ message }) => JSON.stringify(message.content)),
    )
    const repeated = new Set(report.changes.filter((one) => one.reason === REPEATED).map((one) => one.entry))
    const seen = messages.map((message) => textIn(message)).join('\n')
    const lost = shown.find(({ entry, message }) => {
      if (message.role !== 'toolResult' || cut.has(entry) || isSyntheticResult(message)) return false
      if (repeated.has(entry) && said.has(JSON.stringify(message.content))) return false
      return blockTexts(message).some((text) => !seen.includes(text))
    })
    return lost === undefined ? undefined : `lost ${lost.entry}`
  },

  'signed blocks are as they were, or absent': (input) => {
    const given = new Set(visible(input.entries).flatMap(({ message }) => opaqueParts(message)))
    const sent = prepareHistory(input).messages.flatMap((message) => opaqueParts(message))
    const made = sent.find((part) => !given.has(part))
    return made === undefined ? undefined : `not in the transcript: ${made}`
  },

  'a limit keeps exactly the last turns and every summary': (input) => {
    if (input.historyLimit === 0 || input.budget.contextWindow < 100_000) return undefined
    const items = viewOf(activeEntries(input.entries)).items
    const users = items.filter((item) => item.kind === 'user')
    const kept = limitHistoryTurns(items, input).items
    const expected = users.slice(-input.historyLimit)
    const actual = kept.filter((item) => item.kind === 'user')
    if (expected.length !== actual.length || expected.some((item, at) => item !== actual[at])) return 'other turns'
    const summaries = items.filter((item) => item.kind === 'summary')
    if (!summaries.every((item) => kept.includes(item))) return 'a summary is gone'
    const { report } = prepareHistory(input)
    const sent = new Set(report.messages.flatMap((message) => message.entries))
    const cut = entriesChangedBy(report, ['fit'])
    const wrong = [...users, ...summaries].find((item) => {
      const [entry] = item.sources
      return entry !== undefined && !cut.has(entry) && sent.has(entry) !== kept.includes(item)
    })
    return wrong === undefined ? undefined : `${wrong.sources[0]} was ${kept.includes(wrong) ? 'not sent' : 'sent'}`
  },

  'a new message leaves the bytes before it alone': (input) => {
    if (
      input.historyLimit > 0 ||
      input.budget.contextWindow < 100_000 ||
      JSON.stringify(input.entries).includes('"image"')
    )
      return undefined
    if (isLatestLeftOut(input)) return undefined
    const before = prepareHistory({ ...input, now: 1_000 })
    const last = before.messages.findLastIndex((message) => message.role === 'user')
    const more = messageEntry({ role: 'user', content: 'one more thing', timestamp: 9 }, 'new')
    const after = prepareHistory({ ...input, now: 1_000, entries: [...input.entries, more] })
    const prefix = before.messages.slice(0, Math.min(last, before.messages.length - 1)).map(withoutReasoning)
    const same = bytes(prefix) === bytes(after.messages.slice(0, prefix.length).map(withoutReasoning))
    return same ? undefined : 'the prefix changed'
  },
}

/** The pool of texts is small; so that a lost one is missed, each text of a user or a tool gets words of its own. */
function withOwnWords(entries: readonly Entry[]): readonly Entry[] {
  return entries.map((entry) => {
    const message: unknown = entry.type === 'message' ? entry.message : undefined
    if (!isRecord(message) || (message['role'] !== 'user' && message['role'] !== 'toolResult')) return entry
    const { content } = message
    const own = (text: string, at: number): string => (text.trim() === '' ? text : `${text} <${entry.id}.${at}>`)
    const worded = Array.isArray(content)
      ? content.map((block: unknown, at) =>
          isRecord(block) && typeof block['text'] === 'string' ? { ...block, text: own(block['text'], at) } : block,
        )
      : typeof content === 'string'
        ? own(content, 0)
        : content
    return { ...entry, message: { ...message, content: worded } } as Entry
  })
}

function entriesChangedBy({ changes }: HistoryReport, steps: readonly StepName[]): ReadonlySet<EntryId | undefined> {
  return new Set(changes.filter((one) => steps.includes(one.step)).map((one) => one.entry))
}

/** Left out by an earlier request, shown while it is the one to answer, and left out again when it no longer is. */
function isLatestLeftOut({ entries, budget }: HistoryInput): boolean {
  const active = activeEntries(entries)
  const latest = viewOf(active).items.findLast((item) => item.kind === 'user')?.sources[0]
  if (latest === undefined) return false
  return readDecisions(active, budget.contextWindow).get(latest)?.some(isLeaveOut) === true
}

/** Reasoning that is replayed in its own turn only goes when the turn is over. */
function withoutReasoning(message: PreparedMessage): PreparedMessage {
  if (message.role !== 'assistant') return message
  return { ...message, content: message.content.filter((block) => block.type !== 'thinking') }
}

/** Messages as the view shows them, with the entry each comes from; hidden ones and those left out are not among them. */
function visible(entries: readonly Entry[]): readonly { entry: EntryId; message: PreparedMessage }[] {
  return viewOf(activeEntries(entries)).items.flatMap(({ message, sources }) =>
    sources[0] === undefined ? [] : [{ entry: sources[0], message }],
  )
}

function blockTexts({ content }: PreparedMessage): readonly string[] {
  if (typeof content === 'string') return [content.trim()]
  return content
    .flatMap((block) => (block.type === 'text' ? [block.text.trim()] : []))
    .filter((text) => text !== PLACEHOLDERS.blankUser && text !== PLACEHOLDERS.noOutput)
}

const textIn = (message: PreparedMessage): string => textOf(message.content)

function opaqueParts(message: PreparedMessage): readonly string[] {
  if (message.role !== 'assistant') return []
  return message.content.flatMap((block) => {
    if (block.type === 'thinking') return [`${block.thinking}|${block.thinkingSignature ?? ''}`]
    return block.type === 'toolCall' && block.thoughtSignature !== undefined ? [block.thoughtSignature] : []
  })
}

const asEntries = (messages: readonly PreparedMessage[]): readonly Entry[] =>
  messages.map((message, at) => messageEntry(message, `p${at}`))

const messageEntry = (message: Message, own: string): Entry => ({
  type: 'message',
  id: id(own),
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  message,
})

const customEntry = (customType: string, data: unknown): Entry => ({
  type: 'custom',
  customType,
  data,
  id: id('custom'),
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
})
