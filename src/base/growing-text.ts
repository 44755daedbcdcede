/** Few enough that the oldest of them are still young for the collector when they are joined. */
const WORDS_PER_PIECE = 32

/**
 * Text that arrives word by word. Added to a string, every word stays an object of its own for as long as the text is
 * only stored, several times the size of what it says; here they are joined a few at a time.
 */
export class GrowingText {
  #pieces: string
  readonly #words: string[] = []
  #length: number

  constructor(start = '') {
    this.#pieces = start
    this.#length = start.length
  }

  get length(): number {
    return this.#length
  }

  append(words: string): void {
    this.#length += words.length
    if (this.#words.push(words) === WORDS_PER_PIECE) this.#join()
  }

  toString(): string {
    if (this.#words.length > 0) this.#join()
    return this.#pieces
  }

  #join(): void {
    this.#pieces += this.#words.join('')
    this.#words.length = 0
  }
}
