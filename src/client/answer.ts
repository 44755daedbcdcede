import type { FrameUsage, ServerFrame } from './frames.ts'

/** What a caller sees of an answer in the making. The last one is `complete`, or the iteration throws. */
export type AnswerEvent =
  | { readonly type: 'accepted'; readonly session: string; readonly runId: string }
  /** The whole text so far; it replaces what was shown before. */
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'event'; readonly event: string; readonly data: Readonly<Record<string, unknown>> }
  | {
      readonly type: 'complete'
      readonly text: string
      readonly session: string
      readonly runId: string
      readonly redelivered: boolean
      /** `provider/model` that answered; absent for answers that no model gave. */
      readonly model?: string
      readonly usage?: FrameUsage
    }

/** The gateway's own error: its code is one of the documented ones. */
export class ClewError extends Error {
  readonly code: string
  /** Text that had been produced before the failure. */
  readonly partialText: string
  constructor(code: string, message: string, partialText = '') {
    super(message)
    this.name = 'ClewError'
    this.code = code
    this.partialText = partialText
  }
}

/**
 * One message's answer: iterate over it to see it grow, or `await answer.text()` for the end. Events wait in a bounded
 * buffer; a reader that is late misses progress (each one is complete in itself), never the terminal event.
 */
export class Answer implements AsyncIterable<AnswerEvent> {
  readonly id: string
  readonly #maxBuffered: number
  #buffer: AnswerEvent[] = []
  #wake: (() => void) | undefined
  #end: { readonly error?: Error; readonly text: string } | undefined
  readonly #settled: Promise<string>
  #settle!: { resolve(text: string): void; reject(error: Error): void }

  constructor(id: string, maxBuffered = 1_000) {
    this.id = id
    this.#maxBuffered = maxBuffered
    this.#settled = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    // The iterator throws the error; it must not also surface as unhandled.
    this.#settled.catch(() => undefined)
  }

  /** The final text. Rejects with a `ClewError`. */
  text(): Promise<string> {
    return this.#settled
  }

  async *[Symbol.asyncIterator](): AsyncIterator<AnswerEvent> {
    for (;;) {
      const event = this.#buffer.shift()
      if (event !== undefined) yield event
      else if (this.#end?.error !== undefined) throw this.#end.error
      else if (this.#end !== undefined) return
      else await this.#nextChange()
    }
  }

  /** True when the frame ended the answer. */
  take(frame: ServerFrame): boolean {
    if (this.#end !== undefined) return false
    const session = frame.session ?? ''
    const runId = frame.runId ?? ''
    switch (frame.type) {
      case 'accepted':
        this.#push({ type: 'accepted', session, runId })
        return false
      case 'progress':
        this.#push({ type: 'progress', text: frame.content ?? '' })
        return false
      case 'event':
        this.#push({ type: 'event', event: frame.event ?? '', data: frame.data ?? {} })
        return false
      case 'complete':
        this.#push({
          type: 'complete',
          text: frame.content ?? '',
          session,
          runId,
          redelivered: frame.redelivered === true,
          ...(frame.model === undefined ? {} : { model: frame.model }),
          ...(frame.usage === undefined ? {} : { usage: frame.usage }),
        })
        this.#finish(frame.content ?? '')
        return true
      case 'error':
        this.fail(new ClewError(frame.code ?? 'UNKNOWN', frame.error ?? 'the gateway reported an error', frame.content))
        return true
      default:
        return false
    }
  }

  fail(error: Error): void {
    if (this.#end !== undefined) return
    this.#end = { error, text: '' }
    this.#settle.reject(error)
    this.#wakeUp()
  }

  #finish(text: string): void {
    this.#end = { text }
    this.#settle.resolve(text)
    this.#wakeUp()
  }

  #push(event: AnswerEvent): void {
    const last = this.#buffer.at(-1)
    if (event.type === 'progress' && last?.type === 'progress') this.#buffer[this.#buffer.length - 1] = event
    else if (this.#buffer.length < this.#maxBuffered || event.type === 'complete') this.#buffer.push(event)
    this.#wakeUp()
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
