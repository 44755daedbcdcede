/**
 * Counts the tokens of a byte-pair vocabulary. The merge keeps its candidates in a heap, so a text without spaces (a
 * hundred thousand letters, base64, Chinese) costs n log n where the usual loop costs n²; and it knows no special
 * tokens, so no text of a user can make it throw.
 */
export interface BytePairs {
  count(text: string): number
  /** The same count in pieces of work of about equal size; the last one returns it. */
  counting(text: string): Generator<void, number>
}

/** `tokens[rank]` is a token as text, or as bytes where it is not whole UTF-8. `pause` is awaited between thousands of them. */
export async function createBytePairs(
  tokens: readonly (string | readonly number[])[],
  pieces: RegExp,
  pause: () => Promise<void>,
): Promise<BytePairs> {
  const ranks = new Map<string, number>()
  let longest = 0
  for (const [rank, token] of tokens.entries()) {
    const bytes = typeof token === 'string' ? toByteString(token) : String.fromCharCode(...token)
    ranks.set(bytes, rank)
    longest = Math.max(longest, bytes.length)
    if (rank % TOKENS_OF_WORK === TOKENS_OF_WORK - 1) await pause()
  }
  return createCounter(ranks, longest, pieces)
}

function createCounter(ranks: ReadonlyMap<string, number>, longest: number, pieces: RegExp): BytePairs {
  // Words come back all the time; the most common thousands of pieces make up most of a text.
  const counted = new Map<string, number>()
  function* counting(text: string): Generator<void, number> {
    let total = 0
    let work = 0
    for (const [piece] of text.matchAll(pieces)) {
      const known = counted.get(piece)
      const merge = known === undefined ? new PieceMerge(toByteString(piece), ranks, longest) : undefined
      while (merge?.advance(STEPS_OF_WORK) === false) yield
      const own = known ?? merge?.parts ?? 0
      if (known === undefined && piece.length <= MAX_REMEMBERED_CHARS && counted.size < MAX_REMEMBERED)
        counted.set(piece, own)
      total += own
      work += merge === undefined ? 1 : piece.length
      if (work < CHARS_OF_WORK) continue
      work = 0
      yield
    }
    return total
  }
  return {
    counting,
    count(text) {
      const work = counting(text)
      for (;;) {
        const step = work.next()
        if (step.done === true) return step.value
      }
    },
  }
}

/** Each takes a few milliseconds. */
const TOKENS_OF_WORK = 10_000
const STEPS_OF_WORK = 8_192
const CHARS_OF_WORK = 2_000
const MAX_REMEMBERED = 20_000
const MAX_REMEMBERED_CHARS = 24

/** UTF-8, one character per byte: substrings of it are cheap and can be looked up in a map. */
function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

const NO_RANK = -1
/** A heap key is `rank * POSITIONS + position`: the lowest rank first, then the leftmost, and exact in a double. */
const POSITIONS = 2 ** 32

/** One piece on its way from bytes to tokens; can be left and taken up again at any step. */
class PieceMerge {
  readonly #bytes: string
  readonly #ranks: ReadonlyMap<string, number>
  readonly #longest: number
  // The parts as a linked list: part i is bytes[i … next[i]).
  readonly #next: Int32Array
  readonly #previous: Int32Array
  readonly #rankAt: Int32Array
  readonly #heap = createHeap()
  #offered = 0
  /** Tokens, once `advance` has returned true. */
  parts: number

  constructor(bytes: string, ranks: ReadonlyMap<string, number>, longest: number) {
    const isWhole = bytes.length <= 1 || ranks.has(bytes)
    const length = isWhole ? 0 : bytes.length
    this.#bytes = bytes
    this.#ranks = ranks
    this.#longest = longest
    this.#next = new Int32Array(length + 1)
    this.#previous = new Int32Array(length + 1)
    this.#rankAt = new Int32Array(length).fill(NO_RANK)
    for (let at = 0; at <= length; at++) {
      this.#next[at] = at + 1
      this.#previous[at] = at - 1
    }
    this.parts = isWhole ? Math.min(1, bytes.length) : length
  }

  /** Works for at most this many steps; true when the count is final. */
  advance(steps: number): boolean {
    const last = this.#rankAt.length - 1
    for (let left = steps; left > 0; left--) {
      if (this.#offered < last) this.#offer(this.#offered++)
      else if (!this.#mergeNext()) return true
    }
    return false
  }

  #mergeNext(): boolean {
    const key = this.#heap.pop()
    if (key === undefined) return false
    const length = this.#rankAt.length
    const at = key % POSITIONS
    // A part that has been merged since has another pair, or none, and is in the heap with that.
    if (this.#rankAt[at] !== Math.floor(key / POSITIONS)) return true
    const merged = this.#next[at] ?? length
    const end = this.#next[merged] ?? length
    this.#next[at] = end
    if (end < length) this.#previous[end] = at
    this.#rankAt[merged] = NO_RANK
    this.parts--
    this.#offer(at)
    const before = this.#previous[at] ?? -1
    if (before >= 0) this.#offer(before)
    return true
  }

  #offer(at: number): void {
    const length = this.#rankAt.length
    const middle = this.#next[at] ?? length
    const end = middle < length ? (this.#next[middle] ?? length) : length
    const fits = middle < length && end - at <= this.#longest
    const rank = fits ? this.#ranks.get(this.#bytes.slice(at, end)) : undefined
    this.#rankAt[at] = rank ?? NO_RANK
    if (rank !== undefined) this.#heap.push(rank * POSITIONS + at)
  }
}

function createHeap() {
  const keys: number[] = []
  return {
    push(key: number): void {
      let at = keys.length
      keys.push(key)
      while (at > 0) {
        const parent = (at - 1) >> 1
        const above = keys[parent] ?? 0
        if (above <= key) break
        keys[at] = above
        at = parent
      }
      keys[at] = key
    },
    pop(): number | undefined {
      const top = keys[0]
      const last = keys.pop()
      if (keys.length === 0 || last === undefined) return top
      let at = 0
      for (let child = 1; child < keys.length; child = 2 * at + 1) {
        const right = keys[child + 1]
        if (right !== undefined && right < (keys[child] ?? 0)) child++
        const below = keys[child] ?? 0
        if (below >= last) break
        keys[at] = below
        at = child
      }
      keys[at] = last
      return top
    },
  }
}
