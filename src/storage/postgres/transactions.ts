import type { Change, Owner } from '../../core/change.ts'
import type { AcceptedMessage } from '../../core/inbound.ts'
import type { Acceptance } from '../storage.ts'
import { mapTexts, toColumn } from './column-text.ts'
import type { Unit } from './group-commit.ts'

/** Lines for a transcript that so far has `after` of them. */
export interface Append {
  readonly sessionId: string
  /** The header's line, for a transcript that begins. */
  readonly header: string
  readonly after: number
  readonly lines: readonly (readonly [id: string, parent: string | null, line: string])[]
}

/** Entries of sections of the state that keep another number than the rest. */
export type MostEntries = Readonly<Record<string, number>>

/** Changes as `apply_change` reads them: contents and states as JSON texts, every other text fit for a column. */
function encodeChange(change: Change, most: MostEntries): string {
  switch (change.kind) {
    case 'answer': {
      const { content } = change
      const code = content.kind === 'error' ? { code: content.code } : {}
      return JSON.stringify({ kind: 'answer', run: toColumn(change.run), content: JSON.stringify(content), ...code })
    }
    case 'set-state': {
      const { section, key, value } = change
      const limit = most[section]
      return JSON.stringify({
        kind: 'set-state',
        section: toColumn(section),
        key: toColumn(key),
        value: value === null ? null : JSON.stringify(value),
        ...(limit === undefined ? {} : { limit }),
      })
    }
    case 'begin-session':
    case 'change-session':
    case 'put-session':
    case 'delete-session':
    case 'raise-epoch':
    case 'delivery':
    case 'reset-done':
    case 'resumed':
    case 'paused':
    case 'spend':
    case 'save':
    case 'forget-usage':
      return JSON.stringify(mapTexts(change, toColumn))
  }
}

/** What no other transaction may change at the same time, as names for locks. */
function namesOf(change: Change): readonly string[] {
  if ('key' in change && change.kind !== 'set-state') return [`key ${toColumn(change.key)}`]
  if ('sessionId' in change) return [`id ${toColumn(change.sessionId)}`]
  return change.kind === 'set-state' ? [`section ${toColumn(change.section)}`] : []
}

export function transactionUnit(changes: readonly Change[], most: MostEntries, owner?: Owner, append?: Append): Unit {
  const owned =
    owner === undefined ? '' : `"session":${JSON.stringify(toColumn(owner.session))},"epoch":${owner.epoch},`
  const appended = append === undefined ? '' : `"append":${JSON.stringify(append)},`
  return {
    json: `{${owned}${appended}"changes":[${changes.map((change) => encodeChange(change, most)).join()}]}`,
    names: [
      ...(owner === undefined ? [] : [`key ${toColumn(owner.session)}`]),
      ...(append === undefined ? [] : [`id ${append.sessionId}`]),
      ...changes.flatMap(namesOf),
    ],
    runs: changes.flatMap((change) => (change.kind === 'answer' ? [toColumn(change.run)] : [])),
  }
}

export function acceptUnit(message: AcceptedMessage, acceptance: Acceptance, most: MostEntries): Unit {
  const { fingerprint, request, session, joins, also = [] } = acceptance
  const { text, attachments, ...rest } = message
  const key = toColumn(message.key)
  const accept = {
    run: toColumn(message.run),
    key,
    channel: toColumn(message.channel),
    account: toColumn(message.account),
    acceptedAt: message.acceptedAt,
    fingerprint: toColumn(fingerprint),
    requestKey: request === undefined ? null : toColumn(request.key),
    requestDigest: request === undefined ? null : toColumn(request.digest),
    message: JSON.stringify(rest),
    body: JSON.stringify({ text, attachments }),
    ...(joins === undefined
      ? {}
      : { joins: joins.rows, ...('owner' in joins ? { joinsOwner: toColumn(joins.owner) } : {}) }),
    ...(session === undefined ? {} : { session: mapTexts(session, toColumn) }),
  }
  const more = also.length === 0 ? '' : `,"also":[${also.map((change) => encodeChange(change, most)).join()}]`
  return {
    json: `{"accept":${JSON.stringify(accept).slice(0, -1)}${more}}}`,
    names: [
      `key ${key}`,
      ...(request === undefined ? [] : [`request ${toColumn(request.key)}`]),
      ...also.flatMap(namesOf),
    ],
    runs: [],
  }
}

/** `isForced`: also from a living node. */
export function claimUnit(key: string, isForced: boolean): Unit {
  const name = toColumn(key)
  return { json: JSON.stringify({ claim: name, forced: isForced }), names: [`key ${name}`], runs: [] }
}

export function releaseUnit({ session, epoch }: Owner): Unit {
  const name = toColumn(session)
  return { json: JSON.stringify({ release: name, held: epoch }), names: [`key ${name}`], runs: [] }
}
