import type { ArtifactUpdate } from './frames.ts'
import type { XiaoyiSettings } from './settings.ts'

export type Piece = Omit<ArtifactUpdate, 'artifactId' | 'final' | 'error'>

/**
 * The answer as it grows, cut into frames. `delta`: the first piece replaces, later ones append. `replace`: every piece
 * is the whole text. After a change of connection both begin with the whole text, because nobody knows what of the last
 * one arrived; that is why a dropped link leaves no gap on the phone.
 */
export class Preview {
  readonly #mode: XiaoyiSettings['streamMode']
  readonly #maxChars: number
  #text = ''
  #round: number | undefined
  #sentChars = 0
  #connection: string | undefined
  #reasoning = ''

  constructor(
    settings: Pick<XiaoyiSettings, 'streamMode'> & { readonly limits: { readonly maxPreviewChars: number } },
  ) {
    this.#mode = settings.streamMode
    this.#maxChars = settings.limits.maxPreviewChars
  }

  get hasNews(): boolean {
    return this.#reasoning !== '' || this.#sendable() > this.#sentChars
  }

  get shownText(): string {
    return this.#text.slice(0, this.#sentChars)
  }

  /** Text of a later round continues after a blank line. */
  addText(round: number, delta: string): void {
    if (this.#text.length >= this.#maxChars) return
    if (this.#round !== undefined && round !== this.#round && this.#text !== '') this.#text += '\n\n'
    this.#round = round
    this.#text += delta.slice(0, this.#maxChars - this.#text.length)
  }

  addReasoning(delta: string): void {
    this.#reasoning = (this.#reasoning + delta).slice(0, this.#maxChars)
  }

  /** What the given connection has to be told to show everything. */
  take(connection: string): Piece[] {
    const pieces: Piece[] = []
    if (this.#reasoning !== '') {
      // Appended from the first on: a replacing frame would take the visible answer with it.
      pieces.push({ append: true, lastChunk: this.#mode !== 'delta', part: { reasoningText: this.#reasoning } })
      this.#reasoning = ''
    }
    const end = this.#sendable()
    if (end <= this.#sentChars) return pieces
    const whole = this.#mode === 'replace' || this.#sentChars === 0 || connection !== this.#connection
    const text = this.#text.slice(whole ? 0 : this.#sentChars, end)
    pieces.push({ append: !whole, lastChunk: this.#mode === 'replace', part: { text } })
    this.#connection = connection
    this.#sentChars = end
    return pieces
  }

  /** Not half of a surrogate pair: the other half comes with the next delta. */
  #sendable(): number {
    const last = this.#text.charCodeAt(this.#text.length - 1)
    return last >= 0xd800 && last <= 0xdbff ? this.#text.length - 1 : this.#text.length
  }
}
