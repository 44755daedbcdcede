import { deferred, type Deferred } from '../base/deferred.ts'
import { Mailbox } from '../base/mailbox.ts'
import type { Semaphore } from '../base/semaphore.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { CancelCause } from '../core/outcome.ts'
import { causeOf, TurnStopped } from '../core/turn-stopped.ts'

export interface SessionParts {
  /** Limits how many turns run at once over all sessions, first come first served. */
  readonly turns: Semaphore
  /** Answers one message and makes the answer durable. Ends promptly when aborted. Never throws. */
  answer(message: AcceptedMessage, signal: AbortSignal): Promise<void>
  /** Makes the terminal answer of a message durable that will not be run. */
  answerCancelled(message: AcceptedMessage, by: CancelCause): Promise<void>
  /** The queue is empty and nothing runs: the owner may let go of this object. */
  onIdle(key: SessionKey): void
}

/** A message and the number of `exclusive` calls that came before it: the next ones drop it, those do not. */
interface Queued {
  readonly message: AcceptedMessage
  readonly ticket: number
}

interface Running extends Queued {
  readonly controller: AbortController
  readonly ended: Deferred<void>
}

/**
 * One conversation's messages: in order, one turn at a time. Whatever must not overlap with a turn (reset, delete) goes
 * through `exclusive`, which stops what runs first and lets the next message start only afterwards.
 */
export class Session {
  readonly key: SessionKey
  readonly #parts: SessionParts
  readonly #exclusives = new Mailbox()
  #queue: Queued[] = []
  #tickets = 0
  #running: Running | undefined
  #holds = 0
  #loop: Promise<void> | undefined
  #held: Deferred<void> | undefined
  #stopped = false

  constructor(key: SessionKey, parts: SessionParts) {
    this.key = key
    this.#parts = parts
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
    const stop = this.#queue.findIndex(({ message }) => !joins(message))
    return this.#queue.splice(0, stop < 0 ? this.#queue.length : stop).map(({ message }) => message)
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
  async exclusive<T>(by: CancelCause, task: () => Promise<T>, first?: AcceptedMessage): Promise<T> {
    const ticket = ++this.#tickets
    const isOlder = (queued: Queued): boolean => queued.ticket < ticket
    this.#hold()
    if (this.#running !== undefined && isOlder(this.#running)) this.#running.controller.abort(new TurnStopped(by))
    try {
      return await this.#exclusives.run(async () => {
        await this.#cancel(by, isOlder)
        const result = await task()
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
    const dropped = this.#queue.filter(isMeant)
    this.#queue = this.#queue.filter((queued) => !isMeant(queued))
    const stopped = this.#running !== undefined && isMeant(this.#running) ? this.#running : undefined
    stopped?.controller.abort(new TurnStopped(by))
    await stopped?.ended.promise
    await Promise.all(dropped.map(({ message }) => this.#parts.answerCancelled(message, by)))
    return dropped.length + (stopped === undefined ? 0 : 1)
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
      else if (this.#queue.length === 0) this.#parts.onIdle(this.key)
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
    const { message } = next
    const running: Running = { ...next, controller: new AbortController(), ended: deferred() }
    this.#running = running
    try {
      const release = await this.#parts.turns.acquire(running.controller.signal)
      try {
        await this.#parts.answer(message, running.controller.signal)
      } finally {
        release()
      }
    } catch {
      // Only waiting for a free place throws: stopped before it began.
      const by = causeOf(running.controller.signal)
      // A message that a shutdown catches here keeps its place: it is answered after the next start.
      if (by !== 'shutdown') await this.#parts.answerCancelled(message, by)
    } finally {
      this.#running = undefined
      running.ended.resolve()
    }
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
    if (!this.isBusy) this.#parts.onIdle(this.key)
  }
}
