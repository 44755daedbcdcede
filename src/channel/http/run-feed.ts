import type { Clock, Timer } from '../../base/clock.ts'
import type { SessionEvent } from '../../core/event.ts'
import { encodeAccepted, encodeEvent, encodeProgress, isShown, type FrameAbout } from '../webhook/codec.ts'

/** A frame as a client sees it. */
export interface Frame {
  readonly type: string
  readonly seq: number
  /** JSON, on one line. */
  readonly text: string
}

/** Follows one run. */
export interface FeedReader {
  show(frame: Frame): void
  /** The terminal frame; undefined when it does not come here. Nothing follows. */
  end(last: Frame | undefined): void
}

export interface RunFeedOptions {
  readonly clock: Clock
  readonly about: Omit<FrameAbout, 'seq'>
  /** Shortest time between two progress frames. */
  readonly progressEveryMs: number
  /** Of frames that are kept for readers that come later; the oldest go first. */
  readonly keptBytes: number
  nextSeq(): Promise<number>
}

/** What happens in one run, numbered, for those who follow it now and those who come back in the middle. */
export class RunFeed {
  readonly #options: RunFeedOptions
  readonly #readers = new Set<FeedReader>()
  #kept: Frame[] = []
  #keptBytes = 0
  /** Frames are numbered and shown in the order in which they were made. */
  #order: Promise<void> = Promise.resolve()
  #round = -1
  #text = ''
  #isShownText = true
  #timer: Timer | undefined
  #ended = false

  constructor(options: RunFeedOptions) {
    this.#options = options
  }

  /** Shows what is kept behind this number, then everything that comes. Returns how to stop reading. */
  read(reader: FeedReader, afterSeq: number): () => void {
    for (const frame of this.#kept) if (frame.seq > afterSeq) reader.show(frame)
    this.#readers.add(reader)
    return () => this.#readers.delete(reader)
  }

  get isRead(): boolean {
    return this.#readers.size > 0
  }

  accepted(): void {
    this.#post('accepted', encodeAccepted)
  }

  observe(event: SessionEvent): void {
    if (event.event.type === 'text-delta') return this.#addText(event.event)
    if (!isShown(event)) return
    this.#postProgress()
    this.#post('event', (about) => encodeEvent(event, about))
  }

  end(last: Frame | undefined): void {
    this.#ended = true
    this.#timer?.cancel()
    for (const reader of this.#readers) reader.end(last)
    this.#readers.clear()
  }

  #addText({ round, delta }: { readonly round: number; readonly delta: string }): void {
    this.#text = round === this.#round ? this.#text + delta : delta
    this.#round = round
    this.#isShownText = false
    if (this.#timer === undefined) this.#postProgress()
  }

  #postProgress(): void {
    if (this.#isShownText || this.#ended) return
    this.#isShownText = true
    const text = this.#text
    this.#timer?.cancel()
    this.#timer = this.#options.clock.after(this.#options.progressEveryMs, () => {
      this.#timer = undefined
      this.#postProgress()
    })
    this.#post('progress', (about) => encodeProgress(text, about))
  }

  #post(type: string, make: (about: FrameAbout) => string | undefined): void {
    const posted = this.#order.then(async () => {
      if (this.#ended) return
      const seq = await this.#options.nextSeq()
      const text = make({ ...this.#options.about, seq })
      // The terminal frame was numbered and shown meanwhile: nothing may follow it.
      if (text === undefined || this.#ended) return
      this.#show({ type, seq, text })
    })
    // A preview that cannot be numbered is not shown; the answer itself comes another way.
    this.#order = posted.catch(() => undefined)
  }

  #show(frame: Frame): void {
    if (frame.type === 'progress') this.#kept = this.#kept.filter(({ type }) => type !== 'progress')
    this.#kept.push(frame)
    this.#keptBytes = this.#kept.reduce((sum, { text }) => sum + text.length, 0)
    while (this.#keptBytes > this.#options.keptBytes && this.#kept.length > 1)
      this.#keptBytes -= this.#kept.shift()?.text.length ?? 0
    for (const reader of this.#readers) reader.show(frame)
  }
}
