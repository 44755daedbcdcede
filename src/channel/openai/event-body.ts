import type { Clock } from '../../base/clock.ts'
import { EventWriter } from '../event-writer.ts'

export interface EventBodyOptions {
  readonly clock: Clock
  /** Bytes on their way to a slow reader; what comes meanwhile waits, and words that wait become one piece. */
  readonly bufferBytes: number
  /** One piece of text as events. */
  readonly encodeText: (delta: string) => string
  /** The reader has gone away before the end. */
  onDropped(): void
}

type Waiting = { readonly kind: 'text'; readonly delta: string } | { readonly kind: 'events'; encode(): string }

/** Server-sent events of one answer. Holds no more than the answer itself, however slow its reader is. */
export class EventBody {
  readonly #writer: EventWriter<Waiting>

  constructor({ clock, bufferBytes, encodeText, onDropped }: EventBodyOptions) {
    this.#writer = new EventWriter({
      clock,
      bufferBytes,
      encode: (waiting) => (waiting.kind === 'text' ? encodeText(waiting.delta) : waiting.encode()),
      onCancel: (isEarly) => {
        if (isEarly) onDropped()
      },
    })
  }

  get stream(): ReadableStream<Uint8Array> {
    return this.#writer.stream
  }

  text(delta: string): void {
    if (!this.#writer.isOpen || delta === '') return
    const { waiting } = this.#writer
    const last = waiting.at(-1)
    if (last?.kind === 'text') waiting[waiting.length - 1] = { kind: 'text', delta: last.delta + delta }
    else waiting.push({ kind: 'text', delta })
    this.#writer.flush()
  }

  events(encode: () => string): void {
    if (!this.#writer.isOpen) return
    this.#writer.waiting.push({ kind: 'events', encode })
    this.#writer.flush()
  }

  end(): void {
    this.#writer.end()
  }
}
