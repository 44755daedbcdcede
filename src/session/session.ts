import { Mailbox } from '../base/async.ts'
import type { Owner } from '../core/change.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { type CancelCause, TurnStopped } from '../core/outcome.ts'
import type { Answer } from './outlet.ts'
import type { TurnPlace } from './turn-slots.ts'
import type { TurnTranscript, Unfinished } from './turn-transcript.ts'

export interface SessionDeps {
  /** Works a message out and stores its answer, unless the turn is superseded meanwhile. Never throws. */
  run(turn: RunningTurn): Promise<void>
  /** The queue is empty and nothing runs: the owner may let go of this object. */
  onIdle(key: SessionKey): void
}

/** What a stop took out of a session. No turn starts before `release` is called. */
export interface Ended {
  readonly by: CancelCause
  /** The turn that was running: it can neither write nor show anything more, and its messages need an answer. */
  readonly superseded: RunningTurn | undefined
  /** What is to be written in its place. */
  readonly unfinished: Promise<Unfinished | undefined>
  /** A turn whose answer stands: it is left to end by itself. */
  readonly finishing: RunningTurn | undefined
  /** Messages that had not begun. */
  readonly dropped: readonly AcceptedMessage[]
  /** Another node may have begun some of them. */
  readonly isShared?: true
  release(): void
}

export interface StopOptions {
  /** Only this one; a turn that it has joined ends with it, because its answer is the answer of both. */
  readonly run?: RunId | undefined
  /** Takes the place of everything that was stopped. */
  readonly first?: AcceptedMessage | undefined
}

/** One conversation's messages: in order, one turn at a time. */
export class Session {
  readonly key: SessionKey
  readonly #deps: SessionDeps
  /** Stops become durable one after the other, in the order of the calls. */
  readonly stops = new Mailbox()
  #queue: AcceptedMessage[] = []
  #running: RunningTurn | undefined
  #holds = 0
  #isStopped = false

  constructor(key: SessionKey, deps: SessionDeps) {
    this.key = key
    this.#deps = deps
  }

  get queued(): number {
    return this.#queue.length
  }

  get running(): RunningTurn | undefined {
    return this.#running
  }

  /** True while anything runs, waits or holds: the object must not be replaced by a fresh one. */
  get isBusy(): boolean {
    return this.#running !== undefined || this.#queue.length > 0 || this.#holds > 0
  }

  enqueue(message: AcceptedMessage): void {
    this.#queue.push(message)
    this.#startNext()
  }

  /** Takes the messages at the head of the queue that `joins` lets pass: they join this turn, if it is the running one. */
  takeQueued(turn: RunningTurn, joins: (message: AcceptedMessage) => boolean): readonly AcceptedMessage[] {
    if (this.#running !== turn) return []
    const stop = this.#queue.findIndex((message) => !joins(message))
    const taken = this.#queue.splice(0, stop < 0 ? this.#queue.length : stop)
    turn.joined.push(...taken)
    return taken
  }

  /**
   * Takes out everything that came before, or only the run named. That is done when this returns: what comes later is
   * not touched. A turn whose answer stands is left to end by itself: always while the answer is being stored, and after
   * a cancel also while the turn tidies up, because the conversation goes on.
   */
  end(by: CancelCause, { run, first }: StopOptions = {}): Ended {
    const isMeant = (message: AcceptedMessage): boolean => run === undefined || message.run === run
    const turn = this.#running?.messages.some(isMeant) === true ? this.#running : undefined
    const isFinishing = turn?.storing !== undefined || (turn?.answer !== undefined && isCancel(by))
    const superseded = isFinishing ? undefined : turn
    const dropped = this.#queue.filter(isMeant)
    this.#queue = this.#queue.filter((message) => !isMeant(message))
    if (first !== undefined) this.#queue.unshift(first)
    if (superseded !== undefined) this.#running = undefined
    this.#holds++
    let isHeld = true
    return {
      by,
      superseded,
      unfinished: superseded?.supersede() ?? Promise.resolve(undefined),
      finishing: isFinishing ? turn : undefined,
      dropped,
      release: () => {
        if (!isHeld) return
        isHeld = false
        this.#holds--
        this.#startNext()
      },
    }
  }

  /** A message that is not to be worked on after all. */
  remove(message: AcceptedMessage): void {
    this.#queue = this.#queue.filter((other) => other !== message)
  }

  /** What waits is another node's affair. */
  leaveQueue(): readonly AcceptedMessage[] {
    return this.#queue.splice(0)
  }

  /** No new turn starts; the running one may finish. What waits stays unanswered, for the next start. */
  stopStarting(): void {
    this.#isStopped = true
    if (this.#running?.isWaitingForPerson === true) this.#running.stop('shutdown')
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running.ended
  }

  #startNext(): void {
    if (this.#running !== undefined || this.#holds > 0) return
    const next = this.#isStopped ? undefined : this.#queue.shift()
    if (next === undefined) {
      if (!this.isBusy) this.#deps.onIdle(this.key)
      return
    }
    const turn = new RunningTurn(next)
    this.#running = turn
    turn.ended = this.#run(turn)
  }

  async #run(turn: RunningTurn): Promise<void> {
    await this.#deps.run(turn)
    if (this.#running !== turn) return
    this.#running = undefined
    this.#startNext()
  }
}

/** A cancel ends a turn, a reset or delete the conversation. */
export function isCancel(by: CancelCause): boolean {
  return by === 'user' || by === 'newer-message'
}

/** A message that is being worked on, as its session sees it. */
export class RunningTurn {
  readonly message: AcceptedMessage
  /** Messages that joined this turn: its answer is theirs too. */
  readonly joined: AcceptedMessage[] = []
  /** The right to write, once the session was claimed for it. */
  owner: Owner | undefined
  /** Its place among the turns that run at once, once it has one. */
  place: TurnPlace | undefined
  /** What it comes to, once that is settled; all it still does then is tidy up. */
  answer: ReplyContent | undefined
  /** Its answer is being made durable. */
  storing: Promise<void> | undefined
  /** It does nothing any more. */
  ended: Promise<void> = Promise.resolve()
  readonly #controller = new AbortController()
  #transcript: TurnTranscript | undefined
  #isSuperseded = false

  constructor(message: AcceptedMessage) {
    this.message = message
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get messages(): readonly AcceptedMessage[] {
    return [this.message, ...this.joined]
  }

  get isWaitingForPerson(): boolean {
    return this.place?.isWaiting === true
  }

  get waitsForPlace(): boolean {
    return this.place === undefined && !this.signal.aborted
  }

  /** Its messages get their answer elsewhere: nothing of it may be shown or stored any more. */
  get isSuperseded(): boolean {
    return this.#isSuperseded
  }

  /** One answer for all its messages. */
  answers(content: ReplyContent): readonly Answer[] {
    return this.messages.map(({ run }) => ({ run, content }))
  }

  writesTo(transcript: TurnTranscript): void {
    this.#transcript = transcript
    if (this.#isSuperseded) void transcript.supersede()
  }

  /**
   * Takes its right to write away at once. Resolves, when an append that was under way has ended, with what is to be
   * written in its place. The turn itself learns of it by `stop`, or when it tries to write.
   */
  supersede(): Promise<Unfinished | undefined> {
    this.#isSuperseded = true
    return this.#transcript?.supersede() ?? Promise.resolve(undefined)
  }

  stop(by: CancelCause): void {
    this.#controller.abort(new TurnStopped(by))
  }
}
