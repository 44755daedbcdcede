import { deferred } from '../base/deferred.ts'
import type { Log } from '../base/log.ts'
import type { Change } from '../core/change.ts'
import { describeCause } from '../core/describe-cause.ts'
import { toGatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { CancelCause } from '../core/outcome.ts'
import type { StoredMessage } from '../storage/storage.ts'
import { answerCommand, type CommandAnswers, type SessionActivity } from './command-answers.ts'
import { isImmediate, parseSlash } from './commands.ts'
import type { SessionControl } from './control.ts'
import { OpenMessages } from './open-messages.ts'
import type { RunningTurn } from './running-turn.ts'
import { Resumption, type ResumptionLimits } from './resumption.ts'
import { isCancel, Session, type Ended, type StopOptions } from './session.ts'
import { answersOf, commitStop, type StopCommit } from './stop-commit.ts'
import { TurnSlots, type ProviderLoad, type TurnLimits } from './turn-slots.ts'
import { TurnWork, type TurnWorkDeps } from './turn-work.ts'

export interface SessionLimits extends ResumptionLimits {
  readonly turns: TurnLimits
}

export interface SessionsDeps extends Omit<TurnWorkDeps, 'slots' | 'resumption' | 'open' | 'onLost'> {
  readonly log: Log
  readonly control: SessionControl
  readonly limits: SessionLimits
  readonly commands: CommandAnswers
}

export interface Activity {
  readonly running: number
  readonly queued: number
  readonly waitingForTurn: number
  /** Of the message that has been waiting longest for a turn. */
  readonly longestWaitMs: number
}

/** The sessions something runs or waits in: their turns, and what ends them. */
export class Sessions {
  readonly #deps: SessionsDeps
  readonly #sessions = new Map<SessionKey, Session>()
  readonly #open: OpenMessages
  readonly #slots: TurnSlots
  readonly #resumption: Resumption
  readonly #work: TurnWork
  readonly #background = new Set<Promise<void>>()
  /** Superseded turns that have not ended yet. */
  readonly #unwinding = new Set<Promise<void>>()
  /** Resumed messages whose reset an earlier start has done. */
  readonly #resetDone = new Set<RunId>()
  /** Accepted here while their session was not held: they wait until it is taken. */
  readonly #arriving = new Map<SessionKey, AcceptedMessage[]>()
  /** Sessions that are being taken, one look at a time. */
  readonly #taking = new Map<SessionKey, Promise<void>>()
  /** Sessions with a stop under way, until the last of them is over. */
  readonly #stopping = new Map<SessionKey, Promise<void>>()
  #isStarting = true

  constructor(deps: SessionsDeps) {
    this.#deps = deps
    const { clock, storage, limits } = deps
    this.#open = new OpenMessages(deps)
    this.#slots = new TurnSlots(clock, limits.turns)
    this.#resumption = new Resumption({ clock, storage, messageAttempts: limits.messageAttempts })
    this.#work = new TurnWork({
      ...deps,
      open: this.#open,
      slots: this.#slots,
      resumption: this.#resumption,
      onLost: (key) => this.runInBackground(this.take(key)),
    })
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
    const { running } = this.#work
    return {
      running,
      queued: Math.max(0, this.#open.size - running),
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
    return { running: session?.running?.message.run ?? null, queued: session?.queued ?? 0 }
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
    const { key, text } = message
    const isFirst = !mine || this.#taking.has(key)
    if (!isFirst || isImmediate(parseSlash(text))) return this.dispatch(message)
    this.#arriving.set(key, [...(this.#arriving.get(key) ?? []), message])
    this.runInBackground(this.take(key))
  }

  /** Works on what is open in a session, in the order of acceptance, unless another node does. */
  take(key: SessionKey): Promise<void> {
    const before = this.#taking.get(key) ?? Promise.resolve()
    const taking = before.catch(() => undefined).then(() => this.#takeNow(key))
    this.#taking.set(key, taking)
    return taking.finally(() => {
      if (this.#taking.get(key) !== taking) return
      this.#taking.delete(key)
      // Those that were not dispatched are another node's affair.
      for (const { run } of this.#arriving.get(key) ?? []) if (!this.#open.isKnown(run)) this.#open.leave(run)
      this.#arriving.delete(key)
    })
  }

  async #takeNow(key: SessionKey): Promise<void> {
    if (!this.#isStarting) return
    for (const stored of await this.#claimOpen(key)) {
      const { message, orphaned } = stored
      if (this.#open.isKnown(message.run)) continue
      // A command is done at once by the node that accepted it; only when that one is gone another does it.
      if (isImmediate(parseSlash(message.text)) && orphaned !== true) continue
      this.#resume(stored)
    }
  }

  /** A stop answers what is open; what it has not answered yet must not come to stand behind it. */
  async #claimOpen(key: SessionKey): Promise<readonly StoredMessage[]> {
    const { ownership, inbox } = this.#deps.storage
    for (;;) {
      await this.#stopping.get(key)
      const claim = await ownership.claim(key)
      if (claim === undefined) return []
      this.#resumption.suspect(claim)
      const open = await inbox.open({ key })
      if (!this.#stopping.has(key)) return open
    }
  }

  /** The session was taken away, by another node or by a command: what runs here can store nothing more. */
  lose(key: SessionKey): void {
    const turn = this.#sessions.get(key)?.running
    if (turn?.owner !== undefined && !this.#deps.storage.ownership.isCurrent(turn.owner)) turn.stop('shutdown')
  }

  /** A durable message takes its place: commands at once, everything else behind what its session has to do. */
  dispatch(message: AcceptedMessage): void {
    this.#open.add(message.run)
    if (isImmediate(parseSlash(message.text))) return this.runInBackground(this.#answerCommand(message))
    const session = this.#session(message.key)
    // Everything older goes, also what has not begun: which of them had begun is a matter of luck.
    if (this.#deps.queueMode() === 'interrupt' && session.isBusy)
      this.runInBackground(this.#stop(session, 'newer-message', (ended) => this.#commit({ key: session.key, ended })))
    session.enqueue(message)
  }

  /** Stops what runs and drops what waits, or only the run named; resolves with their number when all are answered. */
  async cancel(key: SessionKey, run?: RunId): Promise<number> {
    const session = this.#session(key)
    return this.#stop(
      session,
      'user',
      async (ended) => {
        const { superseded, finishing, dropped } = ended
        const others = await this.#commit({ key, ended, run })
        return dropped.length + others + (superseded === undefined && finishing === undefined ? 0 : 1)
      },
      { run },
    )
  }

  /**
   * A new conversation under this key. What it stops is answered in the commit that makes it durable: there is no moment
   * at which one is true without the other, and the disk is waited for once.
   */
  reset(key: SessionKey): Promise<void> {
    const session = this.#session(key)
    return this.#stop(session, 'reset', (ended) => this.#beginAnew(session, ended, []))
  }

  async #beginAnew(session: Session, ended: Ended, changes: readonly Change[]): Promise<void> {
    const { control } = this.#deps
    const { key } = session
    const reset = await control.planReset(key)
    const heard = control.tellEnding(key, reset.old, 'reset')
    if (heard !== undefined) {
      // Hooks may take a while: what is stopped must not go on meanwhile.
      ended.superseded?.stop('reset')
      await heard
    }
    await this.#commit({ key, ended, changes: [reset.change, ...changes] })
    control.tidyUp(reset)
  }

  async delete(key: SessionKey): Promise<void> {
    await this.exclusively(key, 'delete', () => this.#deps.control.delete(key))
  }

  /** Runs something that must not overlap with a turn of this session; what runs or waits is stopped first. */
  exclusively<T>(key: SessionKey, by: 'reset' | 'delete', task: () => Promise<T>): Promise<T> {
    const session = this.#session(key)
    return this.#stop(session, by, async (ended) => {
      await this.#commit({ key, ended })
      return task()
    })
  }

  /** Running turns get until the signal, then they are stopped; nothing new starts. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#isStarting = false
    const sessions = [...this.#sessions.values()]
    for (const session of sessions) session.stopStarting()
    const passed = deferred()
    const stop = (): void => {
      passed.resolve()
      this.#open.close()
      for (const session of sessions) session.running?.stop('shutdown')
    }
    if (deadline.aborted) stop()
    else deadline.addEventListener('abort', stop, { once: true })
    await Promise.all(sessions.map((session) => session.idle()))
    // A turn that was superseded can do no harm any more: it is waited for while there is time.
    await Promise.race([Promise.all(this.#unwinding), passed.promise])
    deadline.removeEventListener('abort', stop)
  }

  async close(): Promise<void> {
    this.#isStarting = false
    this.#open.close()
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  /** Background work has an owner: close waits for it, and a failure is logged, never lost. */
  runInBackground(work: Promise<unknown>): void {
    const owned = work.then(
      () => undefined,
      (thrown: unknown) => {
        const error = toGatewayError(thrown)
        this.#deps.log.error('background work failed', { code: error.code, ...describeCause(error) })
      },
    )
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
      if (content !== undefined) await this.#open.answerWhenPossible([{ run: message.run, content }])
    } catch (thrown) {
      const content = await this.#work.failureOf(thrown, 'a command failed', message)
      await this.#open.answerWhenPossible([{ run: message.run, content }])
    }
  }

  /** Once for each message, however often a restart comes to it; `first` is what the new conversation begins with. */
  async #resetFor({ key, run }: AcceptedMessage, first: AcceptedMessage | undefined): Promise<void> {
    const session = this.#session(key)
    if (this.#resetDone.delete(run)) {
      if (first !== undefined) session.enqueue(first)
      return
    }
    const reset = async (ended: Ended): Promise<void> => {
      const record = await this.#deps.storage.sessions.get(key)
      if (record === undefined) await this.#commit({ key, ended })
      else await this.#beginAnew(session, ended, [{ kind: 'reset-done', run }])
    }
    await this.#stop(session, 'reset', reset, { first })
  }

  /**
   * Takes everything that came before out of the session at once, then runs `task`, which makes that durable. No turn of
   * the session starts meanwhile, and such tasks run one after the other.
   */
  async #stop<T>(
    session: Session,
    by: CancelCause,
    task: (ended: Ended) => Promise<T>,
    options: StopOptions = {},
  ): Promise<T> {
    const ended = this.#end(session, by, options)
    const over = this.#beginStopping(session.key)
    const { superseded, finishing } = ended
    if (superseded !== undefined) this.#unwind(superseded)
    finishing?.stop(by)
    let after: Promise<void> | undefined
    try {
      const result = await session.stops.run(() => task(ended))
      if (superseded !== undefined && isCancel(by) && this.#isStarting) after = this.#work.tidyUp(superseded, by)
      return result
    } catch (thrown) {
      if (options.first !== undefined) session.remove(options.first)
      // They were stopped all the same; on a full disk their answers wait, and the failure does not.
      after = this.#open.answerWhenPossible(answersOf(ended))
      throw thrown
    } finally {
      over()
      // Only now, since unwinding a turn would keep the processor from the commit that is waited for.
      superseded?.stop(by)
      if (after === undefined) ended.release()
      else this.runInBackground(after.finally(ended.release))
    }
  }

  #commit(stop: StopCommit): Promise<number> {
    return commitStop(stop, { ...this.#deps, open: this.#open })
  }

  #beginStopping(key: SessionKey): () => void {
    const own = deferred()
    const all = Promise.all([this.#stopping.get(key), own.promise]).then(() => undefined)
    this.#stopping.set(key, all)
    return () => {
      own.resolve()
      if (this.#stopping.get(key) === all) this.#stopping.delete(key)
    }
  }

  /** Also what was accepted before the stop and waits for its session to be taken: it is taken out of that line. */
  #end(session: Session, by: CancelCause, options: StopOptions): Ended {
    const ended = session.end(by, options)
    const { run: only } = options
    const arriving = (this.#arriving.get(session.key) ?? []).filter(
      ({ run }) => (only ?? run) === run && !this.#open.isKnown(run),
    )
    for (const { run } of arriving) this.#open.add(run)
    return arriving.length === 0 ? ended : { ...ended, dropped: [...ended.dropped, ...arriving], isShared: true }
  }

  /** It counts no more, although it may take a while to notice. */
  #unwind(turn: RunningTurn): void {
    this.#work.superseded(turn)
    const ended = turn.ended.finally(() => this.#unwinding.delete(ended))
    this.#unwinding.add(ended)
  }

  #session(key: SessionKey): Session {
    const known = this.#sessions.get(key)
    if (known !== undefined) return known
    const session: Session = new Session(key, {
      run: (turn) => this.#work.run(turn, session),
      onIdle: (idleKey) => {
        if (this.#sessions.get(idleKey) === session) this.#sessions.delete(idleKey)
      },
    })
    if (!this.#isStarting) session.stopStarting()
    this.#sessions.set(key, session)
    return session
  }
}
