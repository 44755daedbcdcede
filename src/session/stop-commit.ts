import type { Log } from '../base/log.ts'
import type { Change, Owner } from '../core/change.ts'
import { toGatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { Storage } from '../storage/storage.ts'
import { isImmediate, isLocal, parseSlash } from './commands.ts'
import type { OpenMessages } from './open-messages.ts'
import type { Answer } from './outlet.ts'
import { isCancel, type Ended } from './session.ts'

export interface StopCommitDeps {
  readonly log: Log
  readonly storage: Pick<Storage, 'inbox'>
  readonly open: OpenMessages
}

export interface StopCommit {
  readonly key: SessionKey
  readonly ended: Ended
  /** Only this one was meant. */
  readonly run?: RunId | undefined
  /** Other nodes keep what they have: it came after what this stop repeats. */
  readonly onlyHere?: boolean
  /** What the stop is for. */
  readonly changes?: readonly Change[]
  /** The right to write, for what no other node may begin meanwhile. */
  readonly owner?: Owner
  /** Nothing is stored from then on. */
  readonly signal?: AbortSignal | undefined
  /** Whether a message of this session came here after the stop. */
  isLater(run: RunId): boolean
}

/**
 * Makes the end of what was stopped durable, in one transaction: its answers, what the turn had not written yet, the
 * changes, and a raised epoch, by which the storage refuses whatever an old turn still tries to write, on any node.
 * Resolves with the number of messages that were stopped elsewhere.
 */
export async function commitStop(stop: StopCommit, deps: StopCommitDeps): Promise<number> {
  const { key, ended, changes = [], owner, signal } = stop
  const until = signal === undefined ? {} : { until: signal }
  const { superseded, finishing, by } = ended
  await finishing?.storing
  const elsewhere = stop.onlyHere === true ? [] : await stoppedElsewhere(stop, deps)
  const unfinished = by === 'delete' ? undefined : await ended.unfinished
  const ours = answersOf(ended)
  // A turn that just found its session elsewhere no longer counts its message as being here.
  const answered = new Set(ours.map(({ run }) => run))
  const others = elsewhere.filter(({ run }) => !answered.has(run))
  const isRaised = superseded !== undefined || ended.isShared === true || others.length > 0 || !isCancel(by)
  const all = [...changes, ...(isRaised ? [{ kind: 'raise-epoch', key } as const] : [])]
  const answers = [...ours, ...others]
  if (answers.length === 0 && all.length === 0) return 0
  signal?.throwIfAborted()
  if (unfinished !== undefined && superseded?.owner !== undefined) {
    const { drafts, sessionId } = unfinished
    try {
      await deps.open.answer(answers, {
        changes: [...unfinished.changes, ...all],
        entries: { sessionId, drafts },
        owner: { ...superseded.owner, ...until },
      })
      return others.length
    } catch (thrown) {
      // The last words of a turn are not worth a stop: when only they stand in the way, it does without them.
      const { code } = toGatewayError(thrown)
      if (code === 'STORAGE_FULL' || code === 'STORAGE_UNAVAILABLE') throw thrown
      deps.log.warn('what a stopped turn had not stored yet is lost', { code })
    }
  }
  signal?.throwIfAborted()
  await deps.open.answer(answers, { changes: all, owner: owner && { ...owner, ...until } })
  return others.length
}

/** The answers of what a stop took out, as far as the turns do not give them themselves. */
export function answersOf({ superseded, finishing, dropped, by }: Ended): readonly Answer[] {
  const cancelled = { kind: 'cancelled', by } as const
  return [
    ...(superseded?.answers(superseded.answer ?? cancelled) ?? []),
    ...(finishing?.answer === undefined || finishing.storing !== undefined ? [] : finishing.answers(finishing.answer)),
    ...dropped.map(({ run }) => ({ run, content: cancelled })),
  ]
}

/** A command, which its node is answering. `/new text` is none here: it begins a conversation, as any message may. */
function isAnsweredAtOnce(text: string): boolean {
  const slash = parseSlash(text)
  return isImmediate(slash) && isLocal(slash)
}

/**
 * The answers of what is open in the session and not in this node's hands: another node works on it, or may have begun
 * it. What came here after the stop stays.
 */
async function stoppedElsewhere(
  { key, ended, run: only, isLater }: StopCommit,
  { storage, open }: StopCommitDeps,
): Promise<readonly Answer[]> {
  const content = { kind: 'cancelled', by: ended.by } as const
  return (await storage.inbox.open({ key })).flatMap(({ message: { run, text } }) =>
    (only ?? run) === run && !open.isKnown(run) && !isLater(run) && !isAnsweredAtOnce(text) ? [{ run, content }] : [],
  )
}
