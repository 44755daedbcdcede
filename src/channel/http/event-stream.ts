import type { Clock } from '../../base/clock.ts'
import { EventWriter } from '../event-writer.ts'
import type { FeedReader, Frame } from './run-feed.ts'

export interface EventStreamOptions {
  readonly clock: Clock
  /** Bytes that wait for a slow reader; beyond it the stream ends, and the client continues with `Last-Event-ID`. */
  readonly bufferBytes: number
  /** The reader has gone away. */
  onCancel(): void
}

/** The frames of one run as server-sent events. A slow reader gets the newest progress only. */
export class EventStream implements FeedReader {
  readonly #writer: EventWriter<Frame>
  readonly #bufferBytes: number

  constructor({ clock, bufferBytes, onCancel }: EventStreamOptions) {
    this.#bufferBytes = bufferBytes
    this.#writer = new EventWriter({ clock, bufferBytes, encode: eventOf, onCancel: () => onCancel() })
  }

  get body(): ReadableStream<Uint8Array> {
    return this.#writer.stream
  }

  show(frame: Frame): void {
    const writer = this.#writer
    if (!writer.isOpen) return
    if (frame.type === 'progress') writer.waiting = writer.waiting.filter(({ type }) => type !== 'progress')
    writer.waiting.push(frame)
    writer.flush()
    const waiting = writer.waiting.reduce((sum, { text }) => sum + text.length, 0)
    if (waiting > this.#bufferBytes) this.end(undefined)
  }

  end(last: Frame | undefined): void {
    const writer = this.#writer
    if (!writer.isOpen) return
    writer.waiting = last === undefined ? [] : [...writer.waiting, last]
    writer.end()
  }
}

function eventOf({ type, seq, text }: Frame): string {
  return `event: ${type}\nid: ${seq}\ndata: ${text}\n\n`
}
