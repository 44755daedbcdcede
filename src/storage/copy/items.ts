import type { JsonObject, JsonValue } from '../../base/json.ts'
import type { CleanupTotals } from '../../core/change.ts'
import type { AcceptedMessage, Attachment, ReplyContent, SessionRecord } from '../../core/inbound.ts'
import { SPENT_FIELDS, type Spent } from '../../core/spent.ts'
import type { RowItem } from './image.ts'

/** A message as both storages know it. */
export interface CopiedMessage {
  readonly message: AcceptedMessage
  /** Empty when a later message has taken it over. */
  readonly fingerprint: string
  readonly request?: { readonly key: string; readonly digest: string }
  readonly state: 'open' | 'waiting' | 'unknown' | 'delivered'
  readonly seq: number
  readonly content?: ReplyContent
  readonly endedAt?: number
  readonly resetDone?: true
  /** Of open ones: unforeseen ends that it may be the fault of. */
  readonly deaths?: number
  /** Of open ones: work on it had not begun, or ended as foreseen. */
  readonly idle?: true
}

export type UsageScope = 'session' | 'day' | 'hour' | 'session-hour'

export interface UsagePlace {
  readonly scope: UsageScope
  /** Days or hours since 1970; 0 for a session. */
  readonly at: number
  readonly session: string
  readonly model: string
  readonly channel: string
}

/** Whole milliseconds, as a database counts. */
export function sessionItem(kind: 'session' | 'archived-session', key: string, record: SessionRecord): RowItem {
  const updatedAt = Math.min(Math.max(Math.round(record.updatedAt), 0), Number.MAX_SAFE_INTEGER)
  return { kind, name: key, value: { ...record, updatedAt } as unknown as JsonObject }
}

export function messageItem(copied: CopiedMessage): RowItem {
  return { kind: 'message', name: copied.message.run, value: copied as unknown as JsonObject }
}

/** `next` is the first number that was never given. */
export function accountItem(name: string, next: number): RowItem {
  return { kind: 'account', name, value: { next } }
}

export function usageItem({ scope, at, session, model, channel }: UsagePlace, spent: Spent): RowItem {
  const counts = SPENT_FIELDS.map((field) => [field, field === 'usd' ? spent.usd : Math.round(spent[field])])
  return {
    kind: 'usage',
    name: [scope, at, session, model, channel].join('\n'),
    value: Object.fromEntries(counts) as JsonObject,
  }
}

export function usagePlaceOf(name: string): UsagePlace {
  const [scope = '', at = '', session = '', model = '', channel = ''] = name.split('\n')
  return { scope: scope as UsageScope, at: Number(at), session, model, channel }
}

export function savingItem(sessionId: string, totals: CleanupTotals): RowItem {
  return { kind: 'saving', name: sessionId, value: { ...totals } }
}

export function stateItem(section: string, key: string, value: JsonValue): RowItem {
  return { kind: 'state', name: `${section}\n${key}`, value: { value } }
}

/** At the first newline. */
export function splitName(name: string): readonly [string, string] {
  const at = name.indexOf('\n')
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + 1)]
}

/** Files of open messages are below the media folder of the home that has them now. */
export function withMediaIn(message: AcceptedMessage, media: string): AcceptedMessage {
  if (message.attachments.length === 0) return message
  const moved = (attachment: Attachment): Attachment => ({
    ...attachment,
    path: `${media}/${mediaPathOf(attachment.path)}`,
  })
  return { ...message, attachments: message.attachments.map(moved) }
}

function mediaPathOf(path: string): string {
  const mark = '/media/'
  const at = path.lastIndexOf(mark)
  return at < 0 ? path.slice(path.lastIndexOf('/') + 1) : path.slice(at + mark.length)
}
