import type { Clock, Timer } from '../base/clock.ts'

const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = ': keep-alive\n\n'

export interface EventWriterOptions<W> {
  readonly clock: Clock
  /** Bytes on their way to a slow reader; what comes meanwhile waits. */
  readonly bufferBytes: number
  /** Called when there is room, so that what numbers events numbers those that leave. */
  encode(waiting: W): string
  /** The reader has gone away; `isEarly` when not everything was written yet. */
  onCancel(isEarly: boolean): void
}

/** Server-sent events at the pace of their reader. What waits belongs to the owner, which may merge or drop it. */
export class EventWriter<W> {
  readonly stream: ReadableStream<Uint8Array>
  waiting: W[] = []
  readonly #options: EventWriterOptions<W>
  readonly #encoder = new TextEncoder()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #timer: Timer | undefined
  #state: 'open' | 'ending' | 'ended' = 'open'

  constructor(options: EventWriterOptions<W>) {
    this.#options = options
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.flush(),
        cancel: () => {
          const isEarly = this.#state !== 'ended'
          this.#finish()
          options.onCancel(isEarly)
        },
      },
      { highWaterMark: options.bufferBytes, size: (chunk) => chunk?.byteLength ?? 0 },
    )
    this.#keepAlive()
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** As much as the reader has room for; the end comes when everything is out. */
  flush(): void {
    const controller = this.#controller
    if (controller === undefined || this.#state === 'ended') return
    while ((controller.desiredSize ?? 0) > 0) {
      const next = this.waiting.shift()
      if (next === undefined) break
      controller.enqueue(this.#encoder.encode(this.#options.encode(next)))
    }
    if (this.#state !== 'ending' || this.waiting.length > 0) return
    this.#finish()
    controller.close()
  }

  /** Ends the stream behind what waits. */
  end(): void {
    if (!this.isOpen) return
    this.#state = 'ending'
    this.flush()
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
    this.waiting = []
    this.#timer?.cancel()
  }
}
