import { isRecord } from '../../base/json.ts'
import type { RunId } from '../../core/ids.ts'
import type { AcceptedMessage, Attachment, ReplyContent } from '../../core/inbound.ts'
import { nameOf, numberOf, optionalText, withRules, type Fields, type Rule } from '../../core/sound-message.ts'
import type { DeliveryState, MessageRow } from './message-rows.ts'

/** What the journal holds of messages and their answers. */
export type DeliveryRecord =
  | { readonly do: 'accept'; readonly message: AcceptedMessage; readonly fingerprint: string }
  | {
      readonly do: 'answer'
      readonly run: RunId
      readonly seq: number
      readonly content: ReplyContent
      /** Absent in journals of versions that did not note it. */
      readonly at?: number
    }
  | { readonly do: 'state'; readonly run: RunId; readonly state: DeliveryState }
  | { readonly do: 'reset-done'; readonly run: RunId }
  /** A start that has messages to resume, with how often each ended an earlier one. */
  | { readonly do: 'life-began'; readonly deaths: readonly (readonly [RunId, number])[] }
  | { readonly do: 'resumed'; readonly run: RunId }
  /** It waits for a person: whatever ends the start meanwhile is not its doing. */
  | { readonly do: 'paused'; readonly run: RunId }
  /** The end of a start, as foreseen. */
  | { readonly do: 'life-ended' }
  | { readonly do: 'forget'; readonly runs: readonly RunId[] }
  | { readonly do: 'seq'; readonly account: string; readonly upTo: number }
  /** Only in snapshots: everything about one run at once, and where forgotten accounts count on. */
  | { readonly do: 'run'; readonly run: MessageRow }
  | { readonly do: 'seq-floor'; readonly upTo: number }
  | { readonly do: 'life'; readonly isLiving: boolean }

/**
 * A record of the journal, which another version may have written. Undefined when it does not say what it is about; the
 * same object when nothing had to be filled in. An accepted message is never refused for a field it could do without.
 */
export function decodeDeliveryRecord(data: unknown): DeliveryRecord | undefined {
  if (!isRecord(data) || typeof data['do'] !== 'string') return undefined
  const check = Object.hasOwn(CHECKS, data['do']) ? CHECKS[data['do']] : undefined
  return check?.(data) as DeliveryRecord | undefined
}

const CHECKS: Readonly<Record<string, (record: Fields) => Fields | undefined>> = {
  accept: (record) => (isMessage(record['message']) ? withRules(record, ACCEPT_RULES) : undefined),
  answer: (record) =>
    isText(record['run']) && isContent(record['content']) ? withRules(record, { seq: numberOf }) : undefined,
  state: (record) => (isText(record['run']) && isState(record['state']) ? record : undefined),
  'reset-done': (record) => (isText(record['run']) ? record : undefined),
  'life-began': (record) => (Array.isArray(record['deaths']) ? withRules(record, { deaths: soundDeaths }) : undefined),
  resumed: (record) => (isText(record['run']) ? record : undefined),
  paused: (record) => (isText(record['run']) ? record : undefined),
  'life-ended': (record) => record,
  life: (record) => (typeof record['isLiving'] === 'boolean' ? record : undefined),
  forget: (record) => (Array.isArray(record['runs']) ? record : undefined),
  seq: (record) => (isText(record['account']) && isCount(record['upTo']) ? record : undefined),
  'seq-floor': (record) => (isCount(record['upTo']) ? record : undefined),
  run: (record) => (isRun(record['run']) ? withRules(record, { run: soundRun }) : undefined),
}

const isText = (value: unknown): boolean => typeof value === 'string'
const isCount = (value: unknown): boolean => Number.isSafeInteger(value)
const isState = (value: unknown): boolean =>
  value === 'open' || value === 'waiting' || value === 'unknown' || value === 'delivered'

function isContent(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { kind, text, code, message, partialText, by } = value
  if (kind === 'complete') return isText(text)
  if (kind === 'error') return isText(code) && isText(message) && isText(partialText)
  return kind === 'cancelled' && isText(by)
}

/** With what it takes to answer it: whose it is, where it belongs, and where the answer goes. */
function isMessage(value: unknown): value is Fields {
  return isRecord(value) && ['run', 'key', 'channel', 'account'].every((field) => isText(value[field]))
}

function isRun(value: unknown): boolean {
  if (!isRecord(value) || !isMessage(value['message']) || !isState(value['state'])) return false
  return value['state'] === 'open' ? value['content'] === undefined : isContent(value['content'])
}

const soundDeaths: Rule = (value) =>
  Array.isArray(value)
    ? (value as readonly unknown[]).filter((pair) => Array.isArray(pair) && isText(pair[0]) && isCount(pair[1]))
    : []

const objectOf = (value: unknown): Fields => (isRecord(value) ? value : {})

const MESSAGE_RULES: Readonly<Record<string, Rule>> = {
  messageId: nameOf,
  text: nameOf,
  attachments: soundAttachments,
  route: objectOf,
  replyTo: objectOf,
  acceptedAt: numberOf,
}

const soundAccepted: Rule = (message) => withRules(objectOf(message), MESSAGE_RULES)

const ACCEPT_RULES: Readonly<Record<string, Rule>> = { message: soundAccepted, fingerprint: nameOf }

const soundRun: Rule = (run) => withRules(objectOf(run), { ...ACCEPT_RULES, seq: numberOf })

function soundAttachments(value: unknown): readonly Attachment[] {
  if (!Array.isArray(value)) return []
  const items: readonly unknown[] = value
  return items.every(isAttachment) ? items : items.filter(isAttachment)
}

function isAttachment(value: unknown): value is Attachment {
  if (!isRecord(value)) return false
  const { name, mimeType, path, bytes, text } = value
  return isText(name) && isText(mimeType) && isText(path) && typeof bytes === 'number' && optionalText(text) === text
}
