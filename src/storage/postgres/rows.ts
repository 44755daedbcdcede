import type { JsonObject } from '../../base/json.ts'
import type { ReplyState } from '../../core/change.ts'
import type { SessionId, SessionKey } from '../../core/ids.ts'
import type { AcceptedMessage, ReplyContent, SessionRecord } from '../../core/inbound.ts'
import { soundSessionRecord } from '../../core/sound-session.ts'
import type { SessionRow, StoredMessage } from '../storage.ts'
import { fromColumn, mapTexts } from './column-text.ts'

/** A message as the function `stored` gives it; the texts in it are JSON. */
export interface MessageColumns {
  readonly message: string
  readonly body: string | null
  readonly reply_to: string | null
  readonly account: string
  readonly state: 'open' | ReplyState
  readonly seq: number
  readonly content: string | null
  readonly ended_at: number | null
  readonly reset_done: boolean
  readonly deaths: number
  readonly orphaned: boolean
  /** The node that accepted it. */
  readonly node: string
  /** The node that holds its session, living or not. */
  readonly holder: string | null
}

const ANSWERED = { text: '', attachments: [] }

export function readMessage(columns: MessageColumns, me: string): StoredMessage {
  const { state, seq, content, ended_at: endedAt, reset_done: resetDone, deaths } = columns
  const body = columns.body === null ? ANSWERED : (JSON.parse(columns.body) as JsonObject)
  const message = {
    ...(JSON.parse(columns.message) as JsonObject),
    ...body,
    account: fromColumn(columns.account),
    ...(columns.reply_to === null ? {} : { replyTo: JSON.parse(columns.reply_to) as JsonObject }),
  } as unknown as AcceptedMessage
  return {
    message,
    state,
    seq,
    content: content === null ? undefined : (JSON.parse(content) as ReplyContent),
    ...(endedAt === null ? {} : { endedAt }),
    ...(resetDone ? { resetDone } : {}),
    ...(deaths > 0 ? { deaths } : {}),
    ...(isElsewhere(columns, me) ? { elsewhere: true } : {}),
    ...(columns.orphaned ? { orphaned: true } : {}),
  }
}

function isElsewhere({ node, holder }: MessageColumns, me: string): boolean {
  return node !== me || (holder !== null && holder !== me)
}

export function readRow(row: { readonly key: string; readonly record: string }): SessionRow {
  return { key: fromColumn(row.key) as SessionKey, record: readRecord(row.record) }
}

export function readRecord(text: string): SessionRecord {
  return toRecord(JSON.parse(text))
}

/** What an operator may have made of an archived row. */
const NO_ROW: SessionRecord = { sessionId: '' as SessionId, updatedAt: 0 }

export function toRecord(columns: unknown): SessionRecord {
  return Object.freeze(soundSessionRecord(mapTexts(columns, fromColumn)) ?? NO_ROW)
}
