import { Lexer, type Token } from 'marked'

/** A single block longer than this is shown as it was written: to read it with every word would hold up the page. */
const MAX_BLOCK_CHARS = 30_000
export interface ReadText {
  /** Blocks that cannot change any more: the same objects as long as they stand. */
  readonly done: readonly Token[]
  /** The block that may still grow. */
  readonly growing: readonly Token[]
  /** What is too long to be read. */
  readonly plain: string
}

/** Markdown that is being written: only its last block is read again when words are added. */
export class GrowingMarkdown {
  #head = ''
  #done: readonly Token[] = []

  read(text: string): ReadText {
    const source = text.replaceAll(/\r\n?/gu, '\n')
    if (!source.startsWith(this.#head)) {
      this.#head = ''
      this.#done = []
    }
    const tail = source.slice(this.#head.length)
    const tokens = tail.length > MAX_BLOCK_CHARS ? undefined : tokensOf(tail)
    if (tokens === undefined) return { done: this.#done, growing: [], plain: tail }
    const last = tokens.findLastIndex(({ type }) => type !== 'space')
    const finished = tokens
      .slice(0, Math.max(0, last))
      .map(({ raw }) => raw)
      .join('')
    if (finished === '' || !tail.startsWith(finished)) return { done: this.#done, growing: tokens, plain: '' }
    this.#done = [...this.#done, ...tokens.slice(0, last)]
    this.#head += finished
    return { done: this.#done, growing: tokens.slice(last), plain: '' }
  }
}

function tokensOf(text: string): readonly Token[] | undefined {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text)
  } catch {
    return undefined
  }
}

const PIECE_CHARS = 4_000

/** A long text in pieces that end at the end of a line or word; all but the last stay the same when it grows. */
export function piecesOf(text: string): readonly string[] {
  const pieces: string[] = []
  let at = 0
  while (text.length - at > PIECE_CHARS) {
    const piece = text.slice(at, at + PIECE_CHARS)
    const end = Math.max(piece.lastIndexOf('\n'), piece.lastIndexOf(' '))
    const length = end > 0 ? end + 1 : isHalf(piece) ? PIECE_CHARS - 1 : PIECE_CHARS
    pieces.push(piece.slice(0, length))
    at += length
  }
  pieces.push(text.slice(at))
  return pieces
}

/** A character of two halves is not parted. */
function isHalf(piece: string): boolean {
  const last = piece.charCodeAt(piece.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}
