import type { JsonObject, JsonValue } from '../base/json.ts'
import { takeHead } from '../base/text.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import { DASHBOARD_TOOL, textOf, type AssistantBlock, type ImageBlock, type Message } from '../core/message.ts'
import { storedUsd } from '../core/spent.ts'
import { estimateStoredTokens } from './stored-tokens.ts'
import { activeCleanups, compactionsInForce } from '../history/view-records.ts'
import { activeEntries } from '../history/view.ts'
import { GatewayError } from '../core/errors.ts'

/** A longer text is cut in a page of messages; `GET …/entries/ID` has it whole. */
const MAX_SHOWN_CHARS = 20_000

export interface PageQuery {
  /** Messages before this entry, without it. */
  readonly before?: string
  /** Messages after this entry, without it. */
  readonly after?: string
  readonly limit: number
}

/** An answer whose recipient may not have it: `waiting` was not sent, `unknown` was sent and is not confirmed. */
export interface UndeliveredAnswer {
  /** The run, which is the step of its messages. */
  readonly stepId: string
  readonly channel: string
  readonly state: 'waiting' | 'unknown'
  /** Since it was answered. */
  readonly ageMs: number
}

/** One page of a conversation, oldest first, with the cleanups and summaries in force and answers that may be missed. */
export function messagePage(
  branch: readonly Entry[],
  query: PageQuery,
  undelivered: readonly UndeliveredAnswer[],
): JsonObject {
  const messages = branch.filter((entry): entry is MessageEntry => entry.type === 'message')
  const [from, to] = rangeOf(messages, query)
  const shown = messages.slice(from, to)
  const marks = marksOf(branch)
  const steps = new Set(messages.map(({ stepId }) => stepId))
  return {
    messages: shown.map((entry) => messageView(entry, marks, MAX_SHOWN_CHARS)),
    cleanups: cleanupRows(branch),
    compactions: compactionRows(branch),
    undelivered: undelivered.filter(({ stepId }) => steps.has(stepId)).map((answer) => ({ ...answer })),
    ...(from > 0 && shown[0] !== undefined ? { before: shown[0].id } : {}),
  }
}

function rangeOf(messages: readonly MessageEntry[], { before, after, limit }: PageQuery): [number, number] {
  if (after !== undefined) {
    const from = placeOf(messages, after, 'after') + 1
    return [from, Math.min(messages.length, from + limit)]
  }
  const to = before === undefined ? messages.length : placeOf(messages, before, 'before')
  return [Math.max(0, to - limit), to]
}

function placeOf(messages: readonly MessageEntry[], id: string, field: string): number {
  const at = messages.findIndex((entry) => entry.id === id)
  if (at === -1) throw new GatewayError('ENTRY_NOT_FOUND', 'this conversation has no such message', { field })
  return at
}

interface Marks {
  readonly hidden: ReadonlySet<string>
  readonly active: ReadonlySet<Entry>
}

function marksOf(branch: readonly Entry[]): Marks {
  return {
    hidden: new Set(activeCleanups(branch).flatMap(({ record }) => record.hidden)),
    active: new Set(activeEntries(branch)),
  }
}

/** One message whole, for a reader who wants more than the page shows. */
export function entryView(branch: readonly Entry[], id: string): JsonObject {
  const entry = branch.find((one) => one.id === id)
  if (entry === undefined) throw new GatewayError('ENTRY_NOT_FOUND', 'this conversation has no such entry', {})
  if (entry.type !== 'message') return { id: entry.id, type: entry.type, at: entry.timestamp }
  return messageView(entry, marksOf(branch), Number.POSITIVE_INFINITY)
}

function messageView(entry: MessageEntry, { hidden, active }: Marks, maxChars: number): JsonObject {
  const cut = new Cutter(maxChars)
  const body = bodyOf(entry.message, cut)
  return {
    id: entry.id,
    at: entry.timestamp,
    ...(entry.stepId === undefined ? {} : { stepId: entry.stepId }),
    ...(entry.round === undefined ? {} : { round: entry.round }),
    tokens: estimateStoredTokens(entry),
    ...(hidden.has(entry.id) ? { hidden: true } : {}),
    ...(active.has(entry) ? {} : { summarised: true }),
    ...body,
    ...(cut.happened ? { cut: true } : {}),
  }
}

/** Types that a browser shows as a picture and never as a document. */
const SHOWN_IMAGES = /^image\/(?:png|jpeg|gif|webp)$/u

/** One picture of a message, by its place. */
export function entryImage(
  branch: readonly Entry[],
  id: string,
  place: number,
): { readonly mimeType: string; readonly bytes: Uint8Array<ArrayBuffer> } {
  const entry = branch.find((one): one is MessageEntry => one.id === id && one.type === 'message')
  const image = imageBlocks(entry?.message)[place]
  if (image === undefined || !SHOWN_IMAGES.test(image.mimeType))
    throw new GatewayError('ENTRY_NOT_FOUND', 'this message has no such picture', {})
  return { mimeType: image.mimeType, bytes: new Uint8Array(Buffer.from(image.data, 'base64')) }
}

function imageBlocks(message: Message | undefined): readonly ImageBlock[] {
  if (message?.role !== 'user' && message?.role !== 'toolResult') return []
  const { content } = message
  return typeof content === 'string' ? [] : content.filter((block) => block.type === 'image')
}

function imagesIn(message: Message): JsonObject {
  const images = imageBlocks(message).map(({ mimeType }) => ({ mimeType }))
  return images.length === 0 ? {} : { images }
}

/** Cuts texts and remembers that it did. */
class Cutter {
  happened = false
  readonly #maxChars: number

  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  text(text: string): string {
    if (text.length <= this.#maxChars) return text
    this.happened = true
    return takeHead(text, this.#maxChars)
  }
}

function bodyOf(message: Message, cut: Cutter): JsonObject {
  switch (message.role) {
    case 'user':
      return {
        role: 'user',
        text: cut.text(textOf(message.content)),
        ...(message.provenance?.sourceTool === DASHBOARD_TOOL ? { from: 'dashboard' } : {}),
        ...imagesIn(message),
        ...(typeof message.prependContext === 'string' ? { prependContext: cut.text(message.prependContext) } : {}),
      }
    case 'assistant': {
      const { input, output, cacheRead, cacheWrite } = message.usage
      return {
        role: 'assistant',
        blocks: message.content.flatMap((block) => blockView(block, cut)),
        model: `${message.provider}/${message.model}`,
        usage: { input, output, cacheRead, cacheWrite, usd: storedUsd(message.usage) },
        stopReason: message.stopReason,
        ...(message.errorMessage === undefined ? {} : { error: message.errorMessage }),
      }
    }
    case 'toolResult':
      return {
        role: 'toolResult',
        callId: message.toolCallId,
        tool: message.toolName,
        failed: message.isError,
        text: cut.text(textOf(message.content)),
        ...imagesIn(message),
        ...(typeof message.durationMs === 'number' ? { durationMs: message.durationMs } : {}),
      }
    case 'bashExecution':
      return { role: 'other', kind: message.role, text: cut.text(`$ ${message.command}\n${message.output}`) }
    case 'compactionSummary':
    case 'branchSummary':
      return { role: 'other', kind: message.role, text: cut.text(message.summary) }
    case 'custom':
    case 'system':
      return { role: 'other', kind: message.role, text: cut.text(textOf(message.content)) }
  }
}

function blockView(block: AssistantBlock, cut: Cutter): JsonObject[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: cut.text(block.text) }]
    case 'thinking':
      return [{ type: 'thinking', text: cut.text(block.thinking) }]
    case 'toolCall':
      return [{ type: 'call', id: block.id, tool: block.name, arguments: argumentsView(block.arguments, cut) }]
  }
}

function argumentsView(input: JsonObject, cut: Cutter): JsonValue {
  const text = JSON.stringify(input)
  const shown = cut.text(text)
  return shown === text ? input : shown
}

export function cleanupRows(branch: readonly Entry[]): JsonObject[] {
  const timeOf = new Map(branch.map((entry) => [entry.id, entry.timestamp]))
  return activeCleanups(branch).map(({ id, record }) => ({
    id,
    stepId: record.stepId,
    at: timeOf.get(id) ?? '',
    hidden: record.hidden,
    tokensBefore: record.tokensBefore,
    tokensAfter: record.tokensAfter,
    estimated: record.estimated,
  }))
}

function compactionRows(branch: readonly Entry[]): JsonObject[] {
  return compactionsInForce(branch).map(({ id, timestamp, summary, tokensBefore }) => ({
    id,
    at: timestamp,
    summary: takeHead(summary, MAX_SHOWN_CHARS),
    tokensBefore,
  }))
}
