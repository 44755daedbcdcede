import { GrowingText } from '../../base/text.ts'
import type { ArtifactUpdate } from './frames.ts'
import type { XiaoyiSettings } from './settings.ts'

export type Piece = Omit<ArtifactUpdate, 'artifactId' | 'final' | 'error'>

/**
 * The answer as it grows, cut into frames. `delta`: the first piece replaces, later ones append. `replace`: every piece
 * is the whole text. After a change of connection both begin with the whole text, because it is unknown what of the last
 * one arrived; that is why a dropped link leaves no gap on the phone.
 */
export class Preview {
  readonly #mode: XiaoyiSettings['streamMode']
  readonly #maxChars: number
  /** What a connection was sent, and what is new since. Apart: joining them for each piece would copy the answer. */
  readonly #sent = new GrowingText()
  #news = ''
  #round: number | undefined
  #connection: string | undefined
  #reasoning = ''

  constructor(
    settings: Pick<XiaoyiSettings, 'streamMode'> & { readonly limits: { readonly maxPreviewChars: number } },
  ) {
    this.#mode = settings.streamMode
    this.#maxChars = settings.limits.maxPreviewChars
  }

  get hasNews(): boolean {
    return this.#reasoning !== '' || this.#sendable() > 0
  }

  get shownText(): string {
    return this.#sent.toString()
  }

  /** Text of a later round continues after a blank line. */
  addText(round: number, delta: string): void {
    if (this.#length >= this.#maxChars) return
    if (this.#round !== undefined && round !== this.#round && this.#length > 0) this.#news += '\n\n'
    this.#round = round
    this.#news += delta.slice(0, this.#maxChars - this.#length)
  }

  addReasoning(delta: string): void {
    this.#reasoning = (this.#reasoning + delta).slice(0, this.#maxChars)
  }

  /** What the given connection has to be sent to show everything. */
  take(connection: string): Piece[] {
    const pieces: Piece[] = []
    if (this.#reasoning !== '') {
      // Appended from the first on: a replacing frame would take the visible answer with it.
      pieces.push({ append: true, lastChunk: this.#mode !== 'delta', part: { reasoningText: this.#reasoning } })
      this.#reasoning = ''
    }
    const end = this.#sendable()
    if (end === 0) return pieces
    const whole = this.#mode === 'replace' || this.#sent.length === 0 || connection !== this.#connection
    const news = this.#news.slice(0, end)
    this.#news = this.#news.slice(end)
    this.#sent.append(news)
    this.#connection = connection
    pieces.push({
      append: !whole,
      lastChunk: this.#mode === 'replace',
      part: { text: whole ? this.#sent.toString() : news },
    })
    return pieces
  }

  get #length(): number {
    return this.#sent.length + this.#news.length
  }

  /** Not half of a surrogate pair: the other half comes with the next delta. */
  #sendable(): number {
    const last = this.#news.charCodeAt(this.#news.length - 1)
    return last >= 0xd800 && last <= 0xdbff ? this.#news.length - 1 : this.#news.length
  }
}
