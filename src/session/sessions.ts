import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Change, Owner } from '../core/change.ts'
import { describeCause } from '../core/describe-cause.ts'
import { toGatewayError } from '../core/errors.ts'
import type { SessionEvent, TurnEvent } from '../core/event.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { retryWhileStorageFull } from '../core/storage-full.ts'
import type { CancelCause } from '../core/outcome.ts'
import { causeOf } from '../core/turn-stopped.ts'
import type { Storage, StoredMessage } from '../storage/storage.ts'
import { answerCommand, type CommandAnswers, type SessionActivity } from './command-answers.ts'
import { isImmediate, isLocal, parseSlash } from './commands.ts'
import type { SessionControl } from './control.ts'
import { rowChangeFor } from './message-row.ts'
import type { Answer, Outlet } from './outlet.ts'
import { noteResumed, POISONED, Resumption, type ResumptionLimits, type Verdict } from './resumption.ts'
import { Session, type Stopped } from './session.ts'
import type { TurnPlace } from './turn-place.ts'
import { TurnSlots, type ProviderLoad, type TurnLimits } from './turn-slots.ts'

/** What a new message does while its session's turn runs: wait, join it before its next round, or end it. */
export type QueueMode = 'queue' | 'steer' | 'interrupt'

export interface SessionLimits extends ResumptionLimits {
  readonly turns: TurnLimits
}

export interface SessionMetrics {
  turnEnded(outcome: string, seconds: number): void
  happened(event: TurnEvent): void
}

export interface SessionsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly ids: Ids
  readonly storage: Storage
  readonly outlet: Outlet
  readonly control: SessionControl
  readonly limits: SessionLimits
  readonly metrics: SessionMetrics
  readonly commands: CommandAnswers
  readonly turns: TurnRunner
  queueMode(): QueueMode
}

/** Works messages out. */
export interface TurnRunner {
  /**
   * Answers one message: opens its transcript, runs the turn. Resolves with what to reply, or with undefined when the
   * turn was interrupted by a shutdown and is to be resumed. Never throws for anything a conversation can survive.
   */
  run(message: AcceptedMessage, turn: TurnContext): Promise<ReplyContent | undefined>
  /** The provider and the model (`provider/model`) that are to answer first. */
  firstModel(key: SessionKey): Promise<{ readonly provider: string; readonly model: string }>
  /** Keeps a message in its transcript that is not tried again. */
  recordPoisoned(message: AcceptedMessage, reason: string): Promise<void>
}

/** What a turn has of the session it runs in. */
export interface TurnContext {
  readonly signal: AbortSignal
  /** The right to write: everything the turn stores carries it; void as soon as another node or a reset took it. */
  readonly owner: Owner
  /** What the turn comes to, as soon as that is settled: a stop from then on does not take it back. */
  tellAnswer(content: ReplyContent): void
  emit(event: SessionEvent): Promise<void>
  /** Messages that arrived meanwhile and are to join this turn (`queue.mode: "steer"`). */
  takeQueued(): readonly AcceptedMessage[]
  /** Gives the turn's place to others while it waits for a person. */
  whileWaiting<T>(wait: () => Promise<T>): Promise<T>
}

const MOST_ANSWERED = 1_000
const NO_CONVERSATION: ReplyContent = { kind: 'complete', text: 'There is no conversation here yet.' }

export interface Activity {
  readonly running: number
  readonly queued: number
  readonly waitingForTurn: number
  /** Of the message that has been waiting longest for a turn. */
  readonly longestWaitMs: number
}

/** The sessions something runs or waits in: their turns, and what must not overlap with one. */
export class Sessions {
  readonly #deps: SessionsDeps
  readonly #sessions = new Map<SessionKey, Session>()
  readonly #slots: TurnSlots
  readonly #resumption: Resumption
  readonly #background = new Set<Promise<void>>()
  /** Ends what waits for space on the disk: the messages stay open for the next start. */
  readonly #stopWaiting = new AbortController()
  /** Resumed messages whose reset an earlier start has done. */
  readonly #resetDone = new Set<RunId>()
  /** Messages that were dispatched here and have no answer yet. */
  readonly #open = new Set<RunId>()
  /** Answered here lately: a look-up that began before may still show them open. */
  readonly #answered = new Set<RunId>()
  /** The right by which each turn writes. */
  readonly #owners = new Map<RunId, Owner>()
  /** Sessions that are being taken, one look at a time. */
  readonly #taking = new Map<SessionKey, Promise<void>>()
  #runningTurns = 0
  #starting = true

  constructor(deps: SessionsDeps) {
    this.#deps = deps
    const { clock, storage, limits } = deps
    this.#slots = new TurnSlots(clock, limits.turns)
    this.#resumption = new Resumption({ clock, storage, messageAttempts: limits.messageAttempts })
  }

  /** Sessions something runs or waits in. */
  get size(): number {
    return this.#sessions.size
  }

  has(key: SessionKey): boolean {
    return this.#sessions.has(key)
  }

  keys(): readonly SessionKey[] {
    return [...this.#sessions.keys()]
  }

  activity(): Activity {
    return {
      running: this.#runningTurns,
      queued: Math.max(0, this.#open.size - this.#runningTurns),
      waitingForTurn: this.#slots.waiting,
      longestWaitMs: this.#slots.longestWaitMs,
    }
  }

  /** What runs and waits, by the provider that is to answer. */
  providerLoad(): ReadonlyMap<string, ProviderLoad> {
    return this.#slots.load()
  }

  activityOf(key: SessionKey): SessionActivity {
    const session = this.#sessions.get(key)
    return { running: session?.runningMessage?.run ?? null, queued: session?.queued ?? 0 }
  }

  /** Everything that earlier starts accepted and did not answer takes its place. */
  async resume(): Promise<void> {
    const unfinished = await this.#resumption.begin()
    if (unfinished.length > 0)
      this.#deps.log.info('resuming messages accepted before the last stop', { messages: unfinished.length })
    for (const message of unfinished) this.#resume(message)
  }

  #resume({ message, resetDone }: StoredMessage): void {
    if (resetDone === true) this.#resetDone.add(message.run)
    this.dispatch(message)
  }

  /**
   * A message that was accepted here. `mine`: everything that is open in its session is in its queue here; otherwise the
   * session has to be taken first, and messages that other nodes accepted come before this one.
   */
  arrive(message: AcceptedMessage, mine: boolean): void {
    const isFirst = !mine || this.#taking.has(message.key)
    if (isFirst && !isImmediate(parseSlash(message.text))) return this.runInBackground(this.take(message.key))
    this.dispatch(message)
  }

  /** Works on what is open in a session, in the order of acceptance, unless another node does. */
  take(key: SessionKey): Promise<void> {
    const before = this.#taking.get(key) ?? Promise.resolve()
    const taking = before.catch(() => undefined).then(() => this.#takeNow(key))
    this.#taking.set(key, taking)
    return taking.finally(() => {
      if (this.#taking.get(key) === taking) this.#taking.delete(key)
    })
  }

  async #takeNow(key: SessionKey): Promise<void> {
    const { storage } = this.#deps
    if (!this.#starting) return
    const claim = await storage.ownership.claim(key)
    if (claim === undefined) return
    this.#resumption.suspect(claim)
    for (const stored of await storage.inbox.open({ key })) {
      const { message, orphaned } = stored
      if (this.#open.has(message.run) || this.#answered.has(message.run)) continue
      // A command is done at once by the node that accepted it; only when that one is gone another does it.
      if (isImmediate(parseSlash(message.text)) && orphaned !== true) continue
      this.#resume(stored)
    }
  }

  /** The session was taken away, by another node or by a command: what runs here can store nothing more. */
  lose(key: SessionKey): void {
    const session = this.#sessions.get(key)
    const run = session?.runningMessage?.run
    const owner = run === undefined ? undefined : this.#owners.get(run)
    if (owner !== undefined && !this.#deps.storage.ownership.isCurrent(owner)) session?.abort('shutdown')
  }

  /** A durable message takes its place: commands at once, everything else behind what its session has to do. */
  dispatch(message: AcceptedMessage): void {
    this.#open.add(message.run)
    const slash = parseSlash(message.text)
    if (isImmediate(slash)) return this.runInBackground(this.#answerCommand(message))
    const session = this.#session(message.key)
    // Everything older goes, also what has not begun: which of them had begun is a matter of luck.
    const replaced = this.#deps.queueMode() === 'interrupt' ? session.cancel('newer-message') : undefined
    session.enqueue(message)
    if (replaced !== undefined) this.runInBackground(replaced.then(() => undefined))
  }

  /** Stops what runs and drops what waits, or only the run named; resolves with their number when all are answered. */
  async cancel(key: SessionKey, run?: RunId): Promise<number> {
    const here = (await this.#sessions.get(key)?.cancel('user', run)) ?? 0
    const others = await this.#elsewhere(key, 'user')
    const meant = run === undefined ? others : others.filter((answer) => answer.run === run)
    if (meant.length > 0) await this.#store(meant, [{ kind: 'raise-epoch', key }])
    return here + meant.length
  }

  /**
   * A new conversation under this key. What it stops is answered in the commit that makes it durable: there is no moment
   * at which one is true without the other, and the disk is waited for once.
   */
  async reset(key: SessionKey): Promise<void> {
    const { control } = this.#deps
    await this.#session(key).exclusive('reset', (stopped) =>
      control.reset(key, {
        stop: stopped.stopTurn,
        commit: (change) => this.#storeReset(key, stopped.answers, [change]),
      }),
    )
  }

  async delete(key: SessionKey): Promise<void> {
    const { control } = this.#deps
    await this.exclusively(key, 'delete', () => control.delete(key))
  }

  /** Runs something that must not overlap with a turn of this session; a running one is stopped and has ended first. */
  exclusively<T>(key: SessionKey, by: 'reset' | 'delete', task: () => Promise<T>): Promise<T> {
    return this.#session(key).exclusive(by, async (stopped) => {
      await stopped.turnEnded()
      await this.#storeReset(key, stopped.answers, [], by)
      return task()
    })
  }

  /** Running turns get until the signal, then they are stopped; nothing new starts. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#starting = false
    const sessions = [...this.#sessions.values()]
    for (const session of sessions) session.stopStarting()
    const stop = (): void => {
      this.#stopWaiting.abort()
      for (const session of sessions) session.abort('shutdown')
    }
    if (deadline.aborted) stop()
    else deadline.addEventListener('abort', stop, { once: true })
    await Promise.all(sessions.map((session) => session.idle()))
    deadline.removeEventListener('abort', stop)
  }

  async close(): Promise<void> {
    this.#starting = false
    this.#stopWaiting.abort()
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  /** Background work has an owner: close waits for it, and a failure is logged, never lost. */
  runInBackground(work: Promise<void>): void {
    const owned = work.catch((thrown: unknown) => {
      const error = toGatewayError(thrown)
      this.#deps.log.error('background work failed', { code: error.code, ...describeCause(error) })
    })
    this.#background.add(owned)
    void owned.finally(() => this.#background.delete(owned))
  }

  async #answerCommand(message: AcceptedMessage): Promise<void> {
    try {
      const content = await answerCommand(message, {
        commands: this.#deps.commands,
        activity: () => this.activityOf(message.key),
        stop: () => this.cancel(message.key),
        reset: (first) => this.#resetFor(message, first),
      })
      if (content !== undefined) await this.#answer([{ run: message.run, content }])
    } catch (thrown) {
      await this.#answer([
        { run: message.run, content: await this.#contentOfError(thrown, 'a command failed', message) },
      ])
    }
  }

  /** Once for each message, however often a restart comes to it; `first` is what the new conversation begins with. */
  async #resetFor({ key, run }: AcceptedMessage, first: AcceptedMessage | undefined): Promise<void> {
    const { storage, control } = this.#deps
    const session = this.#session(key)
    if (this.#resetDone.delete(run)) {
      if (first !== undefined) session.enqueue(first)
      return
    }
    const reset = async (stopped: Stopped): Promise<void> => {
      if ((await storage.sessions.get(key)) === undefined) return this.#store(stopped.answers)
      await control.reset(key, {
        stop: stopped.stopTurn,
        commit: (change) => this.#storeReset(key, stopped.answers, [change, { kind: 'reset-done', run }]),
      })
    }
    await session.exclusive('reset', reset, first)
  }

  async #work(
    message: AcceptedMessage,
    tellAnswer: (content: ReplyContent) => void,
    signal: AbortSignal,
    place: Pick<TurnPlace, 'whileWaiting'>,
  ): Promise<ReplyContent | undefined> {
    const { clock, metrics, outlet, queueMode, storage, turns } = this.#deps
    let content: ReplyContent | undefined
    const startedAt = clock.monotonic()
    let leave = (): void => undefined
    this.#runningTurns++
    try {
      const claim = await storage.ownership.claim(message.key)
      if (claim === undefined) return this.#leave(message)
      this.#owners.set(message.run, claim.owner)
      const entry = await this.#resumption.enter(message.run, signal)
      leave = entry.leave
      if (!(await this.#ensureRow(message, signal))) return (content = NO_CONVERSATION)
      if (entry.verdict !== 'converse') return (content = await this.#refusePoisoned(message, entry.verdict))
      content = await turns.run(message, {
        signal,
        owner: claim.owner,
        tellAnswer,
        emit: async (event) => {
          metrics.happened(event.event)
          // A turn that was left may still be on its way out: nothing of it may follow its answer.
          if (this.#open.has(message.run)) outlet.show(event, message)
        },
        whileWaiting: (wait) => place.whileWaiting(() => this.#pausedFor(message.run, wait)),
        takeQueued: () => (queueMode() === 'steer' ? (this.#sessions.get(message.key)?.takeQueued(isPlain) ?? []) : []),
      })
    } catch (thrown) {
      content = await this.#contentOfFailure(thrown, message, signal)
    } finally {
      leave()
      this.#runningTurns--
      metrics.turnEnded(content?.kind ?? 'interrupted', (clock.monotonic() - startedAt) / 1000)
    }
    return content
  }

  /** A start that ends while a person is waited for does not count against the message. */
  async #pausedFor<T>(run: RunId, wait: () => Promise<T>): Promise<T> {
    const { storage } = this.#deps
    await storage.transact([{ kind: 'paused', run }]).catch(() => undefined)
    const result = await wait()
    await noteResumed(storage, run)
    return result
  }

  async #refusePoisoned(message: AcceptedMessage, verdict: Verdict): Promise<ReplyContent> {
    const { log, turns } = this.#deps
    log.error('a message that ended the gateway again and again is not tried any more', {
      session: message.key,
      run: message.run,
      code: POISONED.code,
    })
    if (verdict === 'record') await turns.recordPoisoned(message, `${POISONED.code}: ${POISONED.message}`)
    return POISONED
  }

  /** A message accepted while its session was being deleted begins a new one; a command begins none. */
  async #ensureRow(message: AcceptedMessage, signal: AbortSignal): Promise<boolean> {
    const { clock, log, ids, storage } = this.#deps
    if ((await storage.sessions.get(message.key)) !== undefined) return true
    if (isLocal(parseSlash(message.text))) return false
    const begin = rowChangeFor(message, ids)
    await retryWhileStorageFull(() => storage.transact([begin]), { clock, log, signal })
    return true
  }

  async #contentOfFailure(
    thrown: unknown,
    message: AcceptedMessage,
    signal: AbortSignal,
  ): Promise<ReplyContent | undefined> {
    if (signal.aborted) {
      const by = causeOf(signal)
      return by === 'shutdown' ? undefined : { kind: 'cancelled', by }
    }
    if (toGatewayError(thrown).code === 'OWNERSHIP_LOST') return this.#leave(message)
    return this.#contentOfError(thrown, 'a turn failed', message)
  }

  /** The message stays open for the node that holds its session now. */
  #leave({ run }: AcceptedMessage): undefined {
    this.#open.delete(run)
    this.#owners.delete(run)
  }

  async #contentOfError(thrown: unknown, what: string, { key, run }: AcceptedMessage): Promise<ReplyContent> {
    const error = toGatewayError(thrown)
    this.#deps.log.error(what, {
      ...error.facts,
      session: key,
      run,
      model: await this.#deps.turns.firstModel(key).then(
        ({ model }) => model,
        () => 'unknown',
      ),
      code: error.code,
      ...(error.code === 'INTERNAL' ? describeCause(error) : {}),
    })
    return { kind: 'error', code: error.code, message: error.message, partialText: '' }
  }

  /**
   * A reply that cannot be made durable is not sent. For lack of space it waits; otherwise, and when a shutdown comes
   * first, the message stays open and is answered after the next start.
   */
  async #answer(answers: readonly Answer[]): Promise<void> {
    const { clock, log } = this.#deps
    const { signal } = this.#stopWaiting
    try {
      await retryWhileStorageFull(() => this.#store(answers), { clock, log, signal })
    } catch (thrown) {
      const error = toGatewayError(thrown)
      const runs = answers.map(({ run }) => run)
      for (const run of runs) this.#owners.delete(run)
      if (error.code === 'OWNERSHIP_LOST') return runs.forEach((run) => this.#open.delete(run))
      this.#deps.log.error('a reply could not be stored', { runs, code: error.code, ...describeCause(error) })
    }
  }

  /** Durable, and on its way to its channel, when it resolves. */
  async #store(answers: readonly Answer[], changes: readonly Change[] = []): Promise<void> {
    const owner = answers.map(({ run }) => this.#owners.get(run)).find((one) => one !== undefined)
    // What a turn comes to counts only while the session is its own; a reset or a cancel answers in its own right.
    await this.#deps.outlet.answer(answers, changes, changes.length === 0 ? owner : undefined)
    for (const { run } of answers) this.#forget(run)
  }

  /** Together with the end of what another node does in the session. */
  async #storeReset(
    key: SessionKey,
    answers: readonly Answer[],
    changes: readonly Change[],
    by: CancelCause = 'reset',
  ): Promise<void> {
    const others = await this.#elsewhere(key, by)
    const raised: readonly Change[] = others.length === 0 ? [] : [{ kind: 'raise-epoch', key }]
    await this.#store([...answers, ...others], [...changes, ...raised])
  }

  /** The answers of what another node works on in a session that is stopped from here. */
  async #elsewhere(key: SessionKey, by: CancelCause): Promise<readonly Answer[]> {
    const open = await this.#deps.storage.inbox.open({ key })
    return open.flatMap(({ message: { run, text }, elsewhere }) =>
      elsewhere === true && !this.#open.has(run) && !isImmediate(parseSlash(text))
        ? [{ run, content: { kind: 'cancelled', by } as const }]
        : [],
    )
  }

  #forget(run: RunId): void {
    this.#open.delete(run)
    this.#owners.delete(run)
    this.#answered.add(run)
    const [oldest] = this.#answered.size > MOST_ANSWERED ? this.#answered : []
    if (oldest !== undefined) this.#answered.delete(oldest)
  }

  #session(key: SessionKey): Session {
    const known = this.#sessions.get(key)
    if (known !== undefined) return known
    const session = new Session(key, {
      admit: async ({ channel, account }, signal) =>
        this.#slots.acquire(
          { provider: (await this.#deps.turns.firstModel(key)).provider, account: `${channel}\n${account}` },
          signal,
        ),
      work: (message, tellAnswer, signal, place) => this.#work(message, tellAnswer, signal, place),
      answer: (answers) => this.#answer(answers),
      answerLater: (answers) => this.runInBackground(this.#answer(answers)),
      onIdle: (idleKey) => {
        const idle = this.#sessions.get(idleKey)
        if (idle === session && !session.isBusy) this.#sessions.delete(idleKey)
      },
    })
    if (!this.#starting) session.stopStarting()
    this.#sessions.set(key, session)
    return session
  }
}

/** An ordinary message: only those can join a running turn. One with a place of its own in the tree cannot. */
function isPlain({ text, client }: AcceptedMessage): boolean {
  return client === undefined && parseSlash(text).kind === 'message'
}
