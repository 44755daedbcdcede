import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Owner } from '../core/change.ts'
import { describeCause, toGatewayError } from '../core/errors.ts'
import type { SessionEvent, TurnEvent } from '../core/event.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { type CancelCause, causeOf } from '../core/outcome.ts'
import type { Storage } from '../storage/storage.ts'
import { isLocal, parseSlash } from './commands.ts'
import { rowChangeFor } from './message-row.ts'
import type { OpenMessages } from './open-messages.ts'
import type { Outlet } from './outlet.ts'
import { noteResumed, POISONED, type Resumption, type Verdict } from './resumption.ts'
import type { RunningTurn, Session } from './session.ts'
import { TurnPlace, type TurnSlots } from './turn-slots.ts'
import type { TurnTranscript } from './turn-transcript.ts'
import { retryWhileStorageFull } from './storage-full.ts'

/** What a new message does while its session's turn runs: wait, join it before its next round, or end it. */
export type QueueMode = 'queue' | 'steer' | 'interrupt'

export interface SessionMetrics {
  turnEnded(outcome: string, seconds: number): void
  happened(event: TurnEvent): void
}

export interface TurnWorkDeps {
  readonly clock: Clock
  readonly log: Log
  readonly ids: Ids
  readonly storage: Storage
  readonly outlet: Outlet
  readonly metrics: SessionMetrics
  readonly turns: TurnRunner
  readonly slots: TurnSlots
  readonly resumption: Resumption
  readonly open: OpenMessages
  queueMode(): QueueMode
  /** The session is no longer this node's, and what it had queued is in no queue. */
  onLost(key: SessionKey): void
  /** A turn gave its place back. */
  onRoom(): void
}

/** A stop is tidied up in milliseconds, unless the disk is full or a hook hangs. */
const TIDY_UP_MS = 10_000

/** Works messages out. */
export interface TurnRunner {
  /**
   * Answers one message: opens its transcript, runs the turn. Resolves with what to reply, or with undefined when the
   * turn was interrupted by a shutdown and is to be resumed. Never throws for anything a conversation can survive.
   */
  run(message: AcceptedMessage, turn: TurnContext): Promise<ReplyContent | undefined>
  /** What is left to do for a turn that was cancelled: cleanup, and telling those who listen. */
  tidyUp(message: AcceptedMessage, by: CancelCause, turn: TurnContext): Promise<void>
  /** The provider and the model (`provider/model`) that are to answer first. */
  firstModel(key: SessionKey): Promise<{ readonly provider: string; readonly model: string }>
  /** Keeps a message in its transcript that is not tried again. */
  recordPoisoned(message: AcceptedMessage, reason: string, owner: Owner): Promise<void>
}

/** What a turn has of the session it runs in. */
export interface TurnContext {
  readonly signal: AbortSignal
  /** The right to write: everything the turn stores carries it. Void once another node, a reset or a cancel took it. */
  readonly owner: Owner
  /** The transcript that it writes to: a stop asks it what to write in the turn's place. */
  writesTo(transcript: TurnTranscript): void
  /** What the turn comes to, as soon as that is settled: a stop from then on does not take it back. */
  setAnswer(content: ReplyContent): void
  emit(event: SessionEvent): Promise<void>
  /** Messages that arrived meanwhile and are to join this turn (`queue.mode: "steer"`). */
  takeQueued(): readonly AcceptedMessage[]
  /** Gives the turn's place to others while it waits for a person. */
  whileWaiting<T>(wait: () => Promise<T>): Promise<T>
}

/** The message goes on where its session is held, or when the database is back: nothing of it was lost. */
const LEAVES_OPEN: ReadonlySet<string> = new Set(['OWNERSHIP_LOST', 'STORAGE_UNAVAILABLE'])

const NO_CONVERSATION: ReplyContent = { kind: 'complete', text: 'There is no conversation here yet.' }

/** Runs the turns of all sessions: a place, the right to write, the turn, the answer. */
export class TurnWork {
  readonly #deps: TurnWorkDeps
  /** Turns that have their place and were not superseded. */
  readonly #working = new Set<RunningTurn>()

  constructor(deps: TurnWorkDeps) {
    this.#deps = deps
  }

  get running(): number {
    return this.#working.size
  }

  /** Until the answer is durable; one that was superseded meanwhile is answered by what superseded it. Never throws. */
  async run(turn: RunningTurn, session: Session): Promise<void> {
    const content = await this.#inItsPlace(turn, session)
    if (content !== undefined && !turn.isSuperseded && this.#deps.open.has(turn.message.run)) {
      turn.storing = this.#deps.open.answerWhenPossible(turn.answers(content), turn.owner)
      await turn.storing
    }
    if (!turn.isSuperseded && this.#isLost(turn)) this.#leaveSession(turn, session)
    else if (content === undefined && !turn.isSuperseded && turn.signal.aborted) this.#leaveOpen(turn)
  }

  /** For the next start or another node; a stop that comes until then means it as it means what others work on. */
  #leaveOpen({ messages }: RunningTurn): void {
    const { open } = this.#deps
    for (const { run } of messages) if (open.has(run)) open.leave(run)
  }

  #isLost({ owner, message }: RunningTurn): boolean {
    const { storage, open } = this.#deps
    const isLeft = open.wasLeft(message.run) && !open.has(message.run)
    return isLeft || (owner !== undefined && !storage.ownership.isCurrent(owner))
  }

  /** What waits behind a message that another node may take now must not overtake it: it waits there too. */
  #leaveSession(turn: RunningTurn, session: Session): void {
    const { open, onLost } = this.#deps
    for (const { run } of [...turn.messages, ...session.leaveQueue()]) if (open.has(run)) open.leave(run)
    onLost(session.key)
  }

  /** It counts no more, although it may take a while to notice. */
  superseded(turn: RunningTurn): void {
    this.#working.delete(turn)
  }

  /** After a cancel, before the next turn of the session, which does not wait for it for ever. Never throws. */
  async tidyUp(turn: RunningTurn, by: CancelCause): Promise<void> {
    const { clock, storage, turns, log } = this.#deps
    const { message } = turn
    // The turn's own signal is what stopped it: nothing could be tidied up under it.
    const limit = new AbortController()
    const timer = clock.after(TIDY_UP_MS, () => limit.abort())
    try {
      const claim = await storage.ownership.claim(message.key)
      if (claim === undefined) return
      const context = this.#contextOf(turn, claim.owner)
      await turns.tidyUp(message, by, { ...context, signal: limit.signal, writesTo: () => undefined })
    } catch (thrown) {
      const error = toGatewayError(thrown)
      if (error.code !== 'OWNERSHIP_LOST')
        log.error('a cancelled turn could not be tidied up', {
          session: message.key,
          run: message.run,
          code: error.code,
        })
    } finally {
      timer.cancel()
    }
  }

  async #inItsPlace(turn: RunningTurn, session: Session): Promise<ReplyContent | undefined> {
    const { slots, turns } = this.#deps
    const { message, signal } = turn
    const { key, channel, account } = message
    const admit = async (): Promise<() => void> =>
      slots.acquire({ provider: (await turns.firstModel(key)).provider, account: `${channel}\n${account}` }, signal)
    try {
      turn.place = await TurnPlace.take(admit, () => {
        // A person may take hours; a shutdown does not wait for one, and the question is asked again after the next start.
        if (session.isStopped) turn.stop('shutdown')
      })
    } catch (thrown) {
      // Mostly stopped before it began. What a shutdown catches here keeps its place: it is answered after the next start.
      return this.#contentOfFailure(thrown, turn)
    }
    try {
      return await this.#work(turn, session)
    } finally {
      turn.place.release()
      this.#deps.onRoom()
    }
  }

  async #work(turn: RunningTurn, session: Session): Promise<ReplyContent | undefined> {
    const { clock, metrics, resumption, storage, turns, queueMode } = this.#deps
    const { message, signal } = turn
    let content: ReplyContent | undefined
    const startedAt = clock.monotonic()
    let leave = (): void => undefined
    if (!turn.isSuperseded) this.#working.add(turn)
    try {
      const claim = await storage.ownership.claim(message.key)
      if (claim === undefined) return this.#deps.open.leave(message.run)
      turn.owner = claim.owner
      if (!(await this.#isStillOpen(message.run, claim.owner))) return this.#deps.open.answeredElsewhere(message.run)
      const { epoch } = claim.owner
      const joins = (queued: AcceptedMessage): boolean =>
        isPlain(queued) && this.#deps.open.isSureUnder(queued.run, epoch)
      const entry = await resumption.enter(message.run, signal)
      leave = entry.leave
      if (!(await this.#ensureRow(turn, claim.owner))) return (content = NO_CONVERSATION)
      if (entry.verdict !== 'converse')
        return (content = await this.#refusePoisoned(message, entry.verdict, claim.owner))
      content = await turns.run(message, {
        ...this.#contextOf(turn, claim.owner),
        takeQueued: () => (queueMode() === 'steer' ? session.takeQueued(turn, joins) : []),
      })
    } catch (thrown) {
      content = await this.#contentOfFailure(thrown, turn)
    } finally {
      leave()
      this.#working.delete(turn)
      const outcome = turn.isSuperseded ? 'cancelled' : (content?.kind ?? 'interrupted')
      metrics.turnEnded(outcome, (clock.monotonic() - startedAt) / 1000)
    }
    return content
  }

  /** What waited here while another node held the session may have been answered there. */
  async #isStillOpen(run: RunId, { epoch }: Owner): Promise<boolean> {
    if (this.#deps.open.isSureUnder(run, epoch)) return true
    return (await this.#deps.storage.inbox.find(run))?.state === 'open'
  }

  #contextOf(turn: RunningTurn, owner: Owner): TurnContext {
    const { metrics, open, outlet } = this.#deps
    const { message } = turn
    return {
      signal: turn.signal,
      owner,
      writesTo: (transcript) => turn.writesTo(transcript),
      setAnswer: (content) => void (turn.answer = content),
      emit: async (event) => {
        metrics.happened(event.event)
        // Nothing of a turn may follow its answer.
        if (!turn.isSuperseded && open.has(message.run)) outlet.show(event, message)
      },
      takeQueued: () => [],
      whileWaiting: (wait) =>
        turn.place === undefined ? wait() : turn.place.whileWaiting(() => this.#pausedFor(message.run, owner, wait)),
    }
  }

  /** A start that ends while a person is waited for does not count against the message. */
  async #pausedFor<T>(run: RunId, owner: Owner, wait: () => Promise<T>): Promise<T> {
    const { storage } = this.#deps
    await storage.transact([{ kind: 'paused', run }], owner).catch(() => undefined)
    const result = await wait()
    await noteResumed(storage, run, owner)
    return result
  }

  async #refusePoisoned(message: AcceptedMessage, verdict: Verdict, owner: Owner): Promise<ReplyContent> {
    const { log, turns } = this.#deps
    log.error('a message that ended the gateway again and again is not tried any more', {
      session: message.key,
      run: message.run,
      code: POISONED.code,
    })
    if (verdict === 'record') await turns.recordPoisoned(message, `${POISONED.code}: ${POISONED.message}`, owner)
    return POISONED
  }

  /** A message accepted while its session was being deleted begins a new one; a command begins none. */
  async #ensureRow({ message, signal }: RunningTurn, owner: Owner): Promise<boolean> {
    const { clock, log, ids, storage } = this.#deps
    if ((await storage.sessions.get(message.key)) !== undefined) return true
    if (isLocal(parseSlash(message.text))) return false
    const begin = rowChangeFor(message, ids)
    await retryWhileStorageFull(() => storage.transact([begin], owner), { clock, log, signal })
    return true
  }

  async #contentOfFailure(thrown: unknown, turn: RunningTurn): Promise<ReplyContent | undefined> {
    const { message, signal } = turn
    if (turn.isSuperseded) return undefined
    if (signal.aborted) return cancelledBy(signal)
    if (LEAVES_OPEN.has(toGatewayError(thrown).code)) return this.#deps.open.leave(message.run)
    return this.failureOf(thrown, 'a turn failed', message)
  }

  /** Logged, and as an answer. */
  async failureOf(thrown: unknown, what: string, { key, run }: AcceptedMessage): Promise<ReplyContent> {
    const { log, turns } = this.#deps
    const error = toGatewayError(thrown)
    log.error(what, {
      ...error.facts,
      session: key,
      run,
      model: await turns.firstModel(key).then(
        ({ model }) => model,
        () => 'unknown',
      ),
      code: error.code,
      ...(error.code === 'INTERNAL' ? describeCause(error) : {}),
    })
    return { kind: 'error', code: error.code, message: error.message, partialText: '' }
  }
}

function cancelledBy(signal: AbortSignal): ReplyContent | undefined {
  const by = causeOf(signal)
  return by === 'shutdown' ? undefined : { kind: 'cancelled', by }
}

/** An ordinary message: only those can join a running turn. One with a place of its own in the tree cannot. */
function isPlain({ text, client }: AcceptedMessage): boolean {
  return client === undefined && parseSlash(text).kind === 'message'
}
