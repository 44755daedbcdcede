import { sleep, deferred, type Deferred } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import type { ReplyContent } from '../../core/inbound.ts'
import { ShownText, toFinishedAnswer } from './answer.ts'
import { answerOrProblem, headOf, type AnswerAbout, type OpenAiAnswer } from './answering.ts'
import { ChatChunks } from './chat-format.ts'
import { problemOfReply, toOpenAiProblem } from './errors.ts'
import { EventBody } from './event-body.ts'
import { ResponseEvents } from './responses-format.ts'

export interface ReadingOptions {
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly clock: Clock
  readonly bufferBytes: number
  /** The client has gone. */
  readonly signal: AbortSignal
  onDropped(): void
}

type Follower = { text(round: number, delta: string): void; end(content: ReplyContent | undefined): void }

/** So long a stream waits for its first word before it begins without one. */
const FIRST_WORD_MS = 15_000

/** What is heard of one run, from before it can begin. */
export class RunWatch {
  readonly #ended: Deferred<ReplyContent | undefined> = deferred()
  readonly #stirred: Deferred<void> = deferred()
  readonly #followers = new Set<Follower>()
  readonly #early: { readonly round: number; delta: string }[] = []

  /** Of a run that is over. */
  static ended(content: ReplyContent | undefined): RunWatch {
    const watch = new RunWatch()
    watch.end(content)
    return watch
  }

  text(round: number, delta: string): void {
    this.#stirred.resolve()
    const last = this.#early.at(-1)
    if (last?.round === round) last.delta += delta
    else this.#early.push({ round, delta })
    for (const follower of this.#followers) follower.text(round, delta)
  }

  /** Undefined: the answer does not come here, because the gateway stops. */
  end(content: ReplyContent | undefined): void {
    for (const follower of this.#followers) follower.end(content)
    this.#followers.clear()
    this.#ended.resolve(content)
  }

  /** Something other than words happened: an answer is on its way. */
  stir(): void {
    this.#stirred.resolve()
  }

  answer(about: AnswerAbout, options: ReadingOptions): Promise<OpenAiAnswer> {
    return options.stream ? this.#begin(about, options) : this.#whole(about, options)
  }

  /** A turn that fails before it says anything is answered with the status of its failure, streamed or not. */
  async #begin(about: AnswerAbout, options: ReadingOptions): Promise<OpenAiAnswer> {
    const { clock, signal, onDropped } = options
    const waiting = new AbortController()
    const stop = (): void => waiting.abort()
    signal.addEventListener('abort', stop, { once: true })
    const late = sleep(clock, FIRST_WORD_MS, waiting.signal).catch(() => undefined)
    const ended = this.#ended.promise.then((content) => content ?? STOPPING)
    const first = await Promise.race([this.#stirred.promise, ended, late])
    signal.removeEventListener('abort', stop)
    waiting.abort()
    if (signal.aborted) onDropped()
    return first !== undefined && problemOfReply(first) !== undefined && this.#early.length === 0
      ? answerOrProblem(first, about)
      : this.#stream(about, options)
  }

  async #whole(about: AnswerAbout, { signal, onDropped }: ReadingOptions): Promise<OpenAiAnswer> {
    const dropped = deferred<never>()
    const drop = (): void => {
      onDropped()
      dropped.reject(new GatewayError('TURN_CANCELLED', 'the client has gone'))
    }
    if (signal.aborted) drop()
    else signal.addEventListener('abort', drop, { once: true })
    dropped.promise.catch(() => undefined)
    try {
      const content = await Promise.race([this.#ended.promise, dropped.promise])
      return answerOrProblem(content ?? STOPPING, about)
    } finally {
      signal.removeEventListener('abort', drop)
    }
  }

  #stream(about: AnswerAbout, { includeUsage, clock, bufferBytes, signal, onDropped }: ReadingOptions): OpenAiAnswer {
    const head = headOf(about)
    const format = about.replyTo.api === 'chat' ? new ChatChunks(head, includeUsage) : new ResponseEvents(head)
    const shown = new ShownText()
    const body = new EventBody({
      clock,
      bufferBytes,
      encodeText: (delta) => format.text(delta),
      onDropped: () => drop(),
    })
    const follower: Follower = {
      text: (round, delta) => body.text(shown.add(round, delta)),
      end: (content = STOPPING) => {
        signal.removeEventListener('abort', drop)
        const problem = problemOfReply(content)
        if (content.kind === 'complete') {
          const answer = toFinishedAnswer(content)
          body.text(shown.rest(answer.text))
          body.events(() => format.end({ ...answer, text: shown.whole }))
        } else if (problem !== undefined) body.events(() => format.fail(toOpenAiProblem(problem).body))
        body.end()
      },
    }
    let isDropped = false
    const drop = (): void => {
      if (isDropped) return
      isDropped = true
      this.#followers.delete(follower)
      signal.removeEventListener('abort', drop)
      onDropped()
    }
    signal.addEventListener('abort', drop, { once: true })
    body.events(() => format.begin())
    for (const { round, delta } of this.#early) follower.text(round, delta)
    this.#followers.add(follower)
    void this.#ended.promise.then((content) => {
      if (this.#followers.delete(follower)) follower.end(content)
    })
    return { key: about.key, kind: 'events', body: body.stream }
  }
}

const STOPPING: ReplyContent = {
  kind: 'error',
  code: 'SHUTTING_DOWN',
  message: 'the gateway is stopping; the message is stored and will be answered after the next start',
  partialText: '',
}
