import type { Clock, Timer } from '../../base/clock.ts'
import type { FeedReader, Frame } from './run-feed.ts'

const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = ': keep-alive\n\n'

export interface EventStreamOptions {
  readonly clock: Clock
  /** Bytes that wait for a slow reader; beyond it the stream ends, and the client continues with `Last-Event-ID`. */
  readonly bufferBytes: number
  /** The reader has gone away. */
  onCancel(): void
}

/** The frames of one run as server-sent events. A slow reader gets the newest progress only. */
export class EventStream implements FeedReader {
  readonly body: ReadableStream<Uint8Array>
  readonly #options: EventStreamOptions
  readonly #encoder = new TextEncoder()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #waiting: Frame[] = []
  #timer: Timer | undefined
  #state: 'open' | 'ending' | 'ended' = 'open'

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#flush(),
        cancel: () => {
          this.#finish()
          options.onCancel()
        },
      },
      { highWaterMark: options.bufferBytes, size: (chunk) => chunk?.byteLength ?? 0 },
    )
    this.#keepAlive()
  }

  show(frame: Frame): void {
    if (this.#state !== 'open') return
    if (frame.type === 'progress') this.#waiting = this.#waiting.filter(({ type }) => type !== 'progress')
    this.#waiting.push(frame)
    this.#flush()
    const waiting = this.#waiting.reduce((sum, { text }) => sum + text.length, 0)
    if (waiting > this.#options.bufferBytes) this.end(undefined)
  }

  end(last: Frame | undefined): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#waiting = last === undefined ? [] : [...this.#waiting, last]
    this.#flush()
  }

  /** As much as the reader has room for; the end comes when everything is out. */
  #flush(): void {
    const controller = this.#controller
    if (controller === undefined || this.#state === 'ended') return
    while (this.#waiting.length > 0 && (controller.desiredSize ?? 0) > 0) {
      const frame = this.#waiting.shift()
      if (frame !== undefined) controller.enqueue(this.#encoder.encode(eventOf(frame)))
    }
    if (this.#state !== 'ending' || this.#waiting.length > 0) return
    this.#finish()
    controller.close()
  }

  #keepAlive(): void {
    this.#timer = this.#options.clock.after(KEEP_ALIVE_MS, () => {
      if (this.#state === 'ended') return
      if ((this.#controller?.desiredSize ?? 0) > 0) this.#controller?.enqueue(this.#encoder.encode(KEEP_ALIVE))
      this.#keepAlive()
    })
  }

  #finish(): void {
    this.#state = 'ended'
    this.#waiting = []
    this.#timer?.cancel()
  }
}

function eventOf({ type, seq, text }: Frame): string {
  return `event: ${type}\nid: ${seq}\ndata: ${text}\n\n`
}
