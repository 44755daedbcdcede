import type { Clock, Timer } from '../../base/clock.ts'

const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = ': keep-alive\n\n'

export interface EventBodyOptions {
  readonly clock: Clock
  /** Bytes on their way to a slow reader; what comes meanwhile waits, and words that wait become one piece. */
  readonly bufferBytes: number
  /** One piece of text as events. */
  readonly encodeText: (delta: string) => string
  /** The reader has gone away before the end. */
  onDropped(): void
}

/** Encoded when there is room, so that what numbers events numbers those that leave. */
type Waiting = { readonly kind: 'text'; readonly delta: string } | { readonly kind: 'events'; encode(): string }

/** Server-sent events of one answer. Holds no more than the answer itself, however slow its reader is. */
export class EventBody {
  readonly stream: ReadableStream<Uint8Array>
  readonly #options: EventBodyOptions
  readonly #encoder = new TextEncoder()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #waiting: Waiting[] = []
  #timer: Timer | undefined
  #state: 'open' | 'ending' | 'ended' = 'open'

  constructor(options: EventBodyOptions) {
    this.#options = options
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#flush(),
        cancel: () => {
          const isEarly = this.#state !== 'ended'
          this.#finish()
          if (isEarly) options.onDropped()
        },
      },
      { highWaterMark: options.bufferBytes, size: (chunk) => chunk?.byteLength ?? 0 },
    )
    this.#keepAlive()
  }

  text(delta: string): void {
    if (this.#state !== 'open' || delta === '') return
    const last = this.#waiting.at(-1)
    if (last?.kind === 'text') this.#waiting[this.#waiting.length - 1] = { kind: 'text', delta: last.delta + delta }
    else this.#waiting.push({ kind: 'text', delta })
    this.#flush()
  }

  events(encode: () => string): void {
    if (this.#state !== 'open') return
    this.#waiting.push({ kind: 'events', encode })
    this.#flush()
  }

  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#flush()
  }

  #flush(): void {
    const controller = this.#controller
    if (controller === undefined || this.#state === 'ended') return
    while (this.#waiting.length > 0 && (controller.desiredSize ?? 0) > 0) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      const text = next.kind === 'text' ? this.#options.encodeText(next.delta) : next.encode()
      controller.enqueue(this.#encoder.encode(text))
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
