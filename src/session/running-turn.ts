import type { Owner } from '../core/change.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'
import { type CancelCause, TurnStopped } from '../core/outcome.ts'
import type { Answer } from './outlet.ts'
import type { TurnPlace } from './turn-slots.ts'
import type { TurnTranscript, Unfinished } from './turn-transcript.ts'

export type { Unfinished } from './turn-transcript.ts'

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
