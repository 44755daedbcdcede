import { deferred, NEVER, sleep } from '../base/async.ts'
import { backoffDelay } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Change, Owner } from '../core/change.ts'
import { describeCause, toGatewayError } from '../core/errors.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { CancelCause } from '../core/outcome.ts'
import type { StoredMessage } from '../storage/storage.ts'
import { answerCommand, type CommandAnswers, type CommandContext, type SessionActivity } from './command-answers.ts'
import { isImmediate, parseSlash } from './commands.ts'
import type { SessionControl } from './control.ts'
import { OpenMessages } from './open-messages.ts'
import { type RunningTurn, isCancel, Session, type Ended, type StopOptions } from './session.ts'
import { Resumption, type ResumptionLimits } from './resumption.ts'
import { answersOf, commitStop, type StopCommit } from './stop-commit.ts'
import { TurnSlots, type ProviderLoad, type TurnLimits } from './turn-slots.ts'
import { TurnWork, type TurnWorkDeps } from './turn-work.ts'

export interface SessionLimits extends ResumptionLimits {
  readonly turns: TurnLimits
}

export interface SessionsDeps extends Omit<TurnWorkDeps, 'slots' | 'resumption' | 'open' | 'onLost' | 'onRoom'> {
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

/** Sessions of one look for what no node has taken. */
const MOST_TAKEN = 100

const REACHABLE_PAUSE_MS = 1_000
/** A stop whose right to write another node took is begun again, at most so often. */
const STOP_TRIES = 10
const STOP_PAUSES = { firstMs: 20, maxMs: 500, jitter: 0.5 }

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
  /** Messages that are being made durable here. */
  readonly #expected = new Set<RunId>()
  /** Sessions that are being taken, one look at a time. */
  readonly #taking = new Map<SessionKey, Promise<void>>()
  /** Sessions with a stop under way, until the last of them is over. */
  readonly #stopping = new Map<SessionKey, Promise<void>>()
  /** Sessions were left to other nodes while there was no room for their turns; no node may have taken them. */
  #hasLeft = false
  /** Nothing new starts from here on. */
  readonly #stopped = new AbortController()

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
      onRoom: () => {
        if (this.#hasLeft) this.runInBackground(this.#takeWhatWasLeft())
      },
    })
  }

  /** Sessions something runs or waits in. */
  get size(): number {
    return this.#sessions.size
  }

  has(key: SessionKey): boolean {
    return this.#sessions.has(key)
  }

  /** It waits or runs in this process. */
  isOpenHere(run: RunId): boolean {
    return this.#open.has(run)
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

  /** Its turn runs, or one that it has joined. */
  isWorkingOn(key: SessionKey, run: RunId): boolean {
    return this.#sessions.get(key)?.running?.messages.some((message) => message.run === run) === true
  }

  /** Everything that earlier starts accepted and did not answer takes its place. */
  async resume(): Promise<void> {
    const unfinished = await this.#resumption.begin(() => ({
      turns: this.#slots.inUse,
      maxTurns: this.#deps.limits.turns.total,
      waiting: this.#slots.isFull ? this.#slots.waiting : 0,
    }))
    if (unfinished.length > 0)
      this.#deps.log.info('resuming messages accepted before the last stop', { messages: unfinished.length })
    for (const stored of unfinished) if (!isOfItsNode(stored)) this.#resume(stored)
  }

  #resume({ message, resetDone }: StoredMessage, epoch?: number): void {
    if (resetDone === true) this.#resetDone.add(message.run)
    this.dispatch(message, epoch)
  }

  /** A message is being made durable: a stop that is under way does not mean it. Call what is returned when it is over. */
  expect(run: RunId): () => void {
    this.#expected.add(run)
    return () => void this.#expected.delete(run)
  }

  /**
   * A message that was accepted here. `mine`: everything that is open in its session is in its queue here; otherwise the
   * session has to be taken first, and messages that other nodes accepted come before this one.
   */
  arrive(
    message: AcceptedMessage,
    { mine, epoch }: { readonly mine: boolean; readonly epoch?: number | undefined },
  ): void {
    const { key, text } = message
    const isFirst = !mine || this.#taking.has(key) || this.#hasNoRoomFor(key)
    if (!isFirst || isImmediate(parseSlash(text))) return this.dispatch(message, epoch)
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
    if (this.#stopped.signal.aborted || (await this.#leaveToOthers(key))) return
    // What a turn left open when the database went away is in no queue: it is looked for until the database is back.
    const found = await this.#whenReachable(() => this.#claimOpen(key)).catch((thrown: unknown) => {
      if (this.#stopped.signal.aborted) return []
      throw thrown
    })
    for (const { epoch, ...stored } of found) {
      if (this.#open.isKnown(stored.message.run) || isOfItsNode(stored)) continue
      this.#resume(stored, epoch)
    }
  }

  /** Its turn would wait here for another session's. */
  #hasNoRoomFor(key: SessionKey): boolean {
    return this.#slots.isFull && !this.#sessions.has(key)
  }

  async #leaveToOthers(key: SessionKey): Promise<boolean> {
    if (!this.#hasNoRoomFor(key) || !(await this.#deps.storage.ownership.leave(key))) return false
    this.#hasLeft = true
    return true
  }

  /** Other nodes have room for so many turns: the sessions that have waited longest for one here go there. */
  async leaveWaiting(turns: number): Promise<void> {
    const waiting = [...this.#sessions.values()].filter(({ running }) => running?.waitsForPlace === true)
    for (const session of waiting.slice(0, turns)) {
      if (!(await this.#deps.storage.ownership.leave(session.key))) return
      this.#hasLeft = true
      const turn = session.running
      // One that got its place meanwhile takes the session again, if it still can.
      if (turn?.waitsForPlace !== true) continue
      this.#open.leave(turn.message.run)
      turn.stop('shutdown')
    }
  }

  /** Nothing begins here any more: another node may have what was accepted all the same. */
  passOn(key: SessionKey): void {
    if (!this.#sessions.has(key)) this.runInBackground(this.#deps.storage.ownership.leave(key))
  }

  /** There is room for a turn again: what was left, and what no other node has taken, may begin here. */
  async #takeWhatWasLeft(): Promise<void> {
    if (!this.#hasLeft || this.#stopped.signal.aborted) return
    this.#hasLeft = false
    const keys = await this.#deps.storage.ownership.unclaimed(MOST_TAKEN)
    await Promise.all(keys.map((key) => this.take(key)))
  }

  /** A stop answers what is open; what it has not answered yet must not come to stand behind it. */
  async #claimOpen(key: SessionKey): Promise<readonly (StoredMessage & { readonly epoch: number })[]> {
    const { ownership, inbox } = this.#deps.storage
    for (;;) {
      await this.#stopping.get(key)
      const claim = await ownership.claim(key)
      if (claim === undefined) return []
      this.#resumption.suspect(claim)
      const open = await inbox.open({ key })
      if (!this.#stopping.has(key)) return open.map((stored) => ({ ...stored, epoch: claim.owner.epoch }))
    }
  }

  /** The session was taken away, by another node or by a command: what runs here can store nothing more. */
  lose(key: SessionKey): void {
    const turn = this.#sessions.get(key)?.running
    if (turn?.owner !== undefined && !this.#deps.storage.ownership.isCurrent(turn.owner)) turn.stop('shutdown')
  }

  /**
   * A durable message takes its place: commands at once, everything else behind what its session has to do. `epoch`: with
   * it this node held the session when the message was open.
   */
  dispatch(message: AcceptedMessage, epoch?: number): void {
    this.#open.add(message.run, epoch)
    if (isImmediate(parseSlash(message.text))) return this.runInBackground(this.#answerCommand(message))
    const session = this.#session(message.key)
    // Everything older goes, also what has not begun: which of them had begun is a matter of luck.
    if (this.#deps.queueMode() === 'interrupt' && session.isBusy)
      this.runInBackground(this.#stop(session, 'newer-message', (ended) => this.#commit({ key: session.key, ended })))
    session.enqueue(message)
  }

  /** Stops what runs and drops what waits, or only the run named; resolves with their number when all are answered. */
  async cancel(key: SessionKey, run?: RunId, signal?: AbortSignal): Promise<number> {
    const session = this.#session(key)
    return this.#stop(
      session,
      'user',
      async (ended) => {
        const { superseded, finishing, dropped } = ended
        const others = await this.#commit({ key, ended, run, signal })
        return dropped.length + others + (superseded === undefined && finishing === undefined ? 0 : 1)
      },
      { run },
    )
  }

  /**
   * A new conversation under this key. What it stops is answered in the commit that makes it durable: there is no moment
   * at which one is true without the other, and the disk is waited for once.
   */
  reset(key: SessionKey, signal?: AbortSignal): Promise<void> {
    const session = this.#session(key)
    return this.#stop(session, 'reset', (ended) => this.#beginAnew(key, ended, { signal }))
  }

  /** `asked`: the message that asks for it; `first`: the one that the new conversation begins with. */
  #beginAnew(
    key: SessionKey,
    ended: Ended,
    {
      asked,
      first,
      signal,
    }: {
      readonly asked?: RunId
      readonly first?: AcceptedMessage | undefined
      readonly signal?: AbortSignal | undefined
    },
  ): Promise<void> {
    const { control, storage } = this.#deps
    let announced: SessionId | undefined
    const begin = async (owner: Owner): Promise<void> => {
      if (asked !== undefined) {
        const [record, known] = await Promise.all([storage.sessions.get(key), storage.inbox.find(asked)])
        // Another node did it for one that it believed to be gone, or there is nothing to leave.
        const isDone = known?.resetDone === true || (known !== undefined && known.state !== 'open')
        if (record === undefined || isDone) return void (await this.#commit({ key, ended, owner, onlyHere: isDone }))
      }
      // What the stopped turn is still writing, or has left to write, may be the first words of the conversation.
      const unfinished = await ended.unfinished
      const reset = await control.planReset(key, { written: unfinished?.sessionId, first })
      const heard = announced === reset.old ? undefined : control.announceEnding(key, reset.old, 'reset')
      announced = reset.old
      if (heard !== undefined) {
        // Hooks may take a while: what is stopped must not go on meanwhile.
        ended.superseded?.stop('reset')
        await heard
      }
      const done: readonly Change[] = asked === undefined ? [] : [{ kind: 'reset-done', run: asked }]
      await this.#commit({ key, ended, changes: [reset.change, ...done], owner, signal })
      control.tidyUp(reset)
    }
    return this.#whileHeld(key, begin, signal)
  }

  /** Goes on with an archived conversation; what runs or waits in the present one is stopped. */
  restoreArchive(key: SessionKey, archived: SessionId): Promise<void> {
    const { control } = this.#deps
    return this.#stop(this.#session(key), 'reset', (ended) =>
      this.#whileHeld(key, async (owner) => {
        const change = await control.planRestore(key, archived)
        await this.#commit({ key, ended, changes: [change], owner })
      }),
    )
  }

  async delete(key: SessionKey, signal?: AbortSignal): Promise<void> {
    const { control } = this.#deps
    await this.#stop(this.#session(key), 'delete', async (ended) => {
      await this.#whileHeld(key, async (owner) => void (await this.#commit({ key, ended, owner, signal })), signal)
      await this.#whileHeld(key, (owner) => control.delete(key, owner), signal)
    })
  }

  /**
   * For what is decided about a whole session: it is taken from whichever node holds it, so that none begins anything in
   * it meanwhile, and `task` stores under that right. When it was lost before that, nothing was stored and it is done
   * again, unless the signal has come.
   */
  async #whileHeld<T>(key: SessionKey, task: (owner: Owner) => Promise<T>, signal: AbortSignal = NEVER): Promise<T> {
    const { clock, ids, storage } = this.#deps
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted()
      try {
        return await task(await storage.ownership.takeOver(key))
      } catch (thrown) {
        if (toGatewayError(thrown).code !== 'OWNERSHIP_LOST' || attempt === STOP_TRIES) throw thrown
        await sleep(clock, backoffDelay(attempt, STOP_PAUSES, ids), signal)
      }
    }
  }

  /** Running turns get until the signal, then they are stopped; nothing new starts. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#stopped.abort()
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
    this.#stopped.abort()
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
      const context: CommandContext = {
        commands: this.#deps.commands,
        activity: () => this.activityOf(message.key),
        stop: () => this.cancel(message.key),
        reset: (first) => this.#resetFor(message, first),
      }
      const content = await this.#whenReachable(() => answerCommand(message, context))
      if (content !== undefined) await this.#open.answerWhenPossible([{ run: message.run, content }])
    } catch (thrown) {
      // It stays open, for the next start or another node.
      if (this.#stopped.signal.aborted && thrown === this.#stopped.signal.reason) return
      const content = await this.#work.failureOf(thrown, 'a command failed', message)
      await this.#open.answerWhenPossible([{ run: message.run, content }])
    }
  }

  /** For an accepted message: its sender has a confirmation that it will be done, so the database is waited for. */
  async #whenReachable<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#deps
    const { signal } = this.#stopped
    for (;;) {
      try {
        return await work()
      } catch (thrown) {
        if (toGatewayError(thrown).code !== 'STORAGE_UNAVAILABLE') throw thrown
        await sleep(clock, REACHABLE_PAUSE_MS, signal)
      }
    }
  }

  /** Once for each message, however often a restart comes to it; `first` is what the new conversation begins with. */
  async #resetFor({ key, run }: AcceptedMessage, first: AcceptedMessage | undefined): Promise<void> {
    const session = this.#session(key)
    if (this.#resetDone.delete(run)) {
      if (first !== undefined) session.enqueue(first)
      return
    }
    await this.#stop(
      session,
      'reset',
      (ended) => this.#whenReachable(() => this.#beginAnew(key, ended, { asked: run, first })),
      {
        first,
      },
    )
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
      if (superseded !== undefined && isCancel(by) && !this.#stopped.signal.aborted)
        after = this.#work.tidyUp(superseded, by)
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

  #commit(stop: Omit<StopCommit, 'isLater'>): Promise<number> {
    const isLater = (run: RunId): boolean =>
      this.#expected.has(run) || (this.#arriving.get(stop.key) ?? []).some((message) => message.run === run)
    return commitStop({ ...stop, isLater }, { ...this.#deps, open: this.#open })
  }

  #beginStopping(key: SessionKey): () => void {
    const stopping = deferred()
    const all = Promise.all([this.#stopping.get(key), stopping.promise]).then(() => undefined)
    this.#stopping.set(key, all)
    return () => {
      stopping.resolve()
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
        if (this.#sessions.get(idleKey) !== session) return
        this.#sessions.delete(idleKey)
        this.#deps.storage.ownership.idle?.(idleKey)
      },
    })
    if (this.#stopped.signal.aborted) session.stopStarting()
    this.#sessions.set(key, session)
    return session
  }
}

/** A command is done at once by the node that accepted it; only when that one is gone another does it. */
function isOfItsNode({ message, elsewhere, orphaned, resetDone }: StoredMessage): boolean {
  return elsewhere === true && orphaned !== true && resetDone !== true && isImmediate(parseSlash(message.text))
}
