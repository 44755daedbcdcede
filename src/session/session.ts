import { deferred, type Deferred } from '../base/deferred.ts'
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

interface Running {
  readonly message: AcceptedMessage
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
  #queue: AcceptedMessage[] = []
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
    this.#queue.push(message)
    this.#start()
  }

  /** Takes the messages waiting right now out of the queue: they join the running turn. */
  takeQueued(): readonly AcceptedMessage[] {
    return this.#queue.splice(0)
  }

  /**
   * Stops the running turn and drops what waits, or only the run named. Resolves with their number when each has its
   * terminal answer.
   */
  async cancel(by: CancelCause, run?: RunId): Promise<number> {
    const isMeant = (message: AcceptedMessage): boolean => run === undefined || message.run === run
    const dropped = this.#queue.filter(isMeant)
    this.#queue = this.#queue.filter((message) => !isMeant(message))
    const stopped = this.#running !== undefined && isMeant(this.#running.message) ? this.#running : undefined
    stopped?.controller.abort(new TurnStopped(by))
    await stopped?.ended.promise
    for (const message of dropped) await this.#parts.answerCancelled(message, by)
    return dropped.length + (stopped === undefined ? 0 : 1)
  }

  /** Stops everything, then runs `task` while no turn can start. Messages that arrive meanwhile wait. */
  async exclusive<T>(by: CancelCause, task: () => Promise<T>): Promise<T> {
    this.#hold()
    try {
      await this.cancel(by)
      return await task()
    } finally {
      this.#release()
    }
  }

  /** No new turn starts; the running one may finish. What waits stays unanswered, for the next start. */
  stopStarting(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#hold()
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    await this.#running?.ended.promise
    if (this.#stopped) await this.#loop
  }

  abort(by: CancelCause): void {
    this.#running?.controller.abort(new TurnStopped(by))
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
    const message = this.#queue.shift()
    if (message === undefined) return
    const running: Running = { message, controller: new AbortController(), ended: deferred() }
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
