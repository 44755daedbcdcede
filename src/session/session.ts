import { deferred, type Deferred } from '../base/deferred.ts'
import { Mailbox } from '../base/mailbox.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import type { CancelCause } from '../core/outcome.ts'
import { causeOf, TurnStopped } from '../core/turn-stopped.ts'
import type { Answer } from './outlet.ts'
import { TurnPlace } from './turn-place.ts'

export interface SessionDeps {
  /** Limits how many turns run at once over all sessions. Resolves with the release function; rejects when aborted. */
  admit(message: AcceptedMessage, signal: AbortSignal): Promise<() => void>
  /**
   * Works one message out and returns its answer; undefined when a shutdown interrupted it and it is to be resumed.
   * Ends promptly when aborted; an answer it has told before stands all the same. Never throws.
   */
  work(
    message: AcceptedMessage,
    tellAnswer: (content: ReplyContent) => void,
    signal: AbortSignal,
    place: Pick<TurnPlace, 'whileWaiting'>,
  ): Promise<ReplyContent | undefined>
  /** Makes terminal answers durable, all at once. A message that has one keeps it. Never throws. */
  answer(answers: readonly Answer[]): Promise<void>
  /** The same in the background: for answers that a failure must not wait for. */
  answerLater(answers: readonly Answer[]): void
  /** The queue is empty and nothing runs: the owner may let go of this object. */
  onIdle(key: SessionKey): void
}

/** What `exclusive` stopped and leaves to its task. */
export interface Stopped {
  /** Nobody has made them durable yet: the task does, together with what it is for, or before. */
  readonly answers: readonly Answer[]
  /**
   * Stops the turn, if there is one, for whose messages the task answers. That happens when the task ends in any case:
   * until then nothing of it can come to be seen, and what it writes belongs to the old conversation. A task that waits
   * for the disk alone leaves it at that, since unwinding a turn would keep the processor from whoever waits for the disk.
   */
  stopTurn(): void
  /** Stops it and resolves when it does nothing any more. */
  turnEnded(): Promise<void>
}

/** A message and the number of `exclusive` calls that came before it: the next ones drop it, those do not. */
interface Queued {
  readonly message: AcceptedMessage
  readonly ticket: number
}

interface Running extends Queued {
  readonly controller: AbortController
  /** Messages that joined this turn: its answer is theirs too. */
  readonly joined: AcceptedMessage[]
  /** What it comes to, once that is settled; all it still does then is tidy up. */
  answer: ReplyContent | undefined
  /** Undefined until it has one. */
  place: TurnPlace | undefined
  /** `left`: an `exclusive` answers its messages, whatever the turn comes to. */
  phase: 'working' | 'answering' | 'left'
  /** The turn does nothing any more. */
  readonly worked: Deferred<void>
  /** Whoever took its messages over is done with them. */
  readonly settled: Deferred<void>
  /** Its messages have their answer, or are left to the next start. */
  readonly ended: Deferred<void>
}

/**
 * One conversation's messages: in order, one turn at a time. Whatever must not overlap with a turn (reset, delete) goes
 * through `exclusive`, which stops what runs first and lets the next message start only afterwards.
 */
export class Session {
  readonly key: SessionKey
  readonly #deps: SessionDeps
  readonly #exclusives = new Mailbox()
  #queue: Queued[] = []
  #tickets = 0
  #running: Running | undefined
  #holds = 0
  #loop: Promise<void> | undefined
  #held: Deferred<void> | undefined
  #stopped = false

  constructor(key: SessionKey, deps: SessionDeps) {
    this.key = key
    this.#deps = deps
  }

  get queued(): number {
    return this.#queue.length
  }

  /** True while anything runs, waits or holds: the object must not be replaced by a fresh one. */
  get isBusy(): boolean {
    return this.#running !== undefined || this.#queue.length > 0 || this.#holds > 0 || this.#loop !== undefined
  }

  get runningMessage(): AcceptedMessage | undefined {
    return this.#running?.message
  }

  enqueue(message: AcceptedMessage): void {
    this.#queue.push({ message, ticket: this.#tickets })
    this.#start()
  }

  /** Takes the messages at the head of the queue that `joins` lets pass: they join the running turn. */
  takeQueued(joins: (message: AcceptedMessage) => boolean): readonly AcceptedMessage[] {
    const running = this.#running
    if (running?.phase !== 'working') return []
    const stop = this.#queue.findIndex(({ message }) => !joins(message))
    const taken = this.#queue.splice(0, stop < 0 ? this.#queue.length : stop).map(({ message }) => message)
    running.joined.push(...taken)
    return taken
  }

  /**
   * Stops the running turn and drops what waits, or only the run named. Resolves with their number when each has its
   * terminal answer.
   */
  cancel(by: CancelCause, run?: RunId): Promise<number> {
    return this.#cancel(by, ({ message }) => run === undefined || message.run === run)
  }

  /**
   * Stops everything that came before, then runs `task` while no turn can start; one task at a time, in the order of the
   * calls. Messages that arrive meanwhile wait; `first`, which belongs to the task, goes before them.
   */
  async exclusive<T>(by: CancelCause, task: (stopped: Stopped) => Promise<T>, first?: AcceptedMessage): Promise<T> {
    const ticket = ++this.#tickets
    const isOlder = (queued: Queued): boolean => queued.ticket < ticket
    this.#hold()
    try {
      return await this.#exclusives.run(async () => {
        const result = await this.#withStopped(by, isOlder, task)
        if (first !== undefined) this.#insert({ message: first, ticket })
        return result
      })
    } finally {
      this.#release()
    }
  }

  /** No new turn starts; the running one may finish. What waits stays unanswered, for the next start. */
  stopStarting(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#hold()
    if (this.#running !== undefined) this.#stopIfWaiting(this.#running)
    // A loop that waits for an exclusive task to end must see that nothing will start any more.
    this.#held?.resolve()
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    await this.#running?.ended.promise
    if (this.#stopped) await this.#loop
  }

  abort(by: CancelCause): void {
    this.#running?.controller.abort(new TurnStopped(by))
  }

  async #cancel(by: CancelCause, isMeant: (queued: Queued) => boolean): Promise<number> {
    const dropped = this.#drop(isMeant)
    const stopped = this.#running !== undefined && isMeant(this.#running) ? this.#running : undefined
    stopped?.controller.abort(new TurnStopped(by))
    await stopped?.ended.promise
    await this.#deps.answer(toAnswers(dropped, { kind: 'cancelled', by }))
    return dropped.length + (stopped === undefined ? 0 : 1)
  }

  async #withStopped<T>(
    by: CancelCause,
    isMeant: (queued: Queued) => boolean,
    task: (stopped: Stopped) => Promise<T>,
  ): Promise<T> {
    const running = this.#running !== undefined && isMeant(this.#running) ? this.#running : undefined
    // Finished before it could be stopped: its own answer counts, and comes first.
    if (running?.phase === 'answering') await running.ended.promise
    const stopTurn = (): void => running?.controller.abort(new TurnStopped(by))
    const turnEnded = async (): Promise<void> => {
      stopTurn()
      await running?.worked.promise
    }
    const left = running?.phase === 'working' ? running : undefined
    if (left !== undefined) left.phase = 'left'
    const cancelled = { kind: 'cancelled', by } as const
    const answers = [
      ...toAnswers(left === undefined ? [] : messagesOf(left), left?.answer ?? cancelled),
      ...toAnswers(this.#drop(isMeant), cancelled),
    ]
    try {
      return await task({ answers, stopTurn, turnEnded })
    } catch (thrown) {
      stopTurn()
      // They were stopped all the same; on a full disk their answers wait, and the failure does not.
      this.#deps.answerLater(answers)
      throw thrown
    } finally {
      stopTurn()
      left?.settled.resolve()
    }
  }

  #drop(isMeant: (queued: Queued) => boolean): readonly AcceptedMessage[] {
    const dropped = this.#queue.filter(isMeant)
    this.#queue = this.#queue.filter((queued) => !isMeant(queued))
    return dropped.map(({ message }) => message)
  }

  /** Before everything that came later, behind everything that came earlier. */
  #insert(queued: Queued): void {
    const place = this.#queue.findIndex(({ ticket }) => ticket >= queued.ticket)
    this.#queue.splice(place < 0 ? this.#queue.length : place, 0, queued)
    this.#start()
  }

  #start(): void {
    this.#loop ??= this.#runAll().finally(() => {
      this.#loop = undefined
      if (this.#queue.length > 0 && !this.#stopped) this.#start()
      else if (this.#queue.length === 0) this.#deps.onIdle(this.key)
    })
  }

  async #runAll(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#holds > 0) {
        if (this.#stopped) return
        await this.#held?.promise
        continue
      }
      await this.#runNext()
    }
  }

  async #runNext(): Promise<void> {
    const next = this.#queue.shift()
    if (next === undefined) return
    const running: Running = {
      message: next.message,
      ticket: next.ticket,
      controller: new AbortController(),
      joined: [],
      answer: undefined,
      place: undefined,
      phase: 'working',
      worked: deferred(),
      settled: deferred(),
      ended: deferred(),
    }
    this.#running = running
    const content = await this.#work(running)
    running.worked.resolve()
    await this.#settle(running, content)
    this.#running = undefined
    running.ended.resolve()
  }

  async #work(running: Running): Promise<ReplyContent | undefined> {
    const { signal } = running.controller
    const tellAnswer = (content: ReplyContent): void => void (running.answer = content)
    let place: TurnPlace
    try {
      place = await TurnPlace.take(
        () => this.#deps.admit(running.message, signal),
        () => this.#stopIfWaiting(running),
      )
    } catch {
      // Stopped before it began. What a shutdown catches here keeps its place: it is answered after the next start.
      const by = causeOf(signal)
      return by === 'shutdown' ? undefined : { kind: 'cancelled', by }
    }
    try {
      running.place = place
      return await this.#deps.work(running.message, tellAnswer, signal, place)
    } finally {
      place.release()
    }
  }

  /** A person may take hours; a shutdown does not wait for one, and the question is asked again after the next start. */
  #stopIfWaiting(running: Running): void {
    if (this.#stopped && running.place?.isWaiting === true) running.controller.abort(new TurnStopped('shutdown'))
  }

  async #settle(running: Running, content: ReplyContent | undefined): Promise<void> {
    if (running.phase === 'left') return running.settled.promise
    running.phase = 'answering'
    if (content !== undefined) await this.#deps.answer(toAnswers(messagesOf(running), content))
  }

  #hold(): void {
    this.#holds++
    this.#held ??= deferred()
  }

  #release(): void {
    this.#holds--
    if (this.#holds > 0) return
    this.#held?.resolve()
    this.#held = undefined
    if (!this.isBusy) this.#deps.onIdle(this.key)
  }
}

function messagesOf({ message, joined }: Running): readonly AcceptedMessage[] {
  return [message, ...joined]
}

function toAnswers(messages: readonly AcceptedMessage[], content: ReplyContent): readonly Answer[] {
  return messages.map(({ run }) => ({ run, content }))
}
