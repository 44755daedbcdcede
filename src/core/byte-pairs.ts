/**
 * Counts the tokens of a byte-pair vocabulary. The merge keeps its candidates in a heap, so a text without spaces (a
 * hundred thousand letters, base64, Chinese) costs n log n where the usual loop costs n²; and it knows no special
 * tokens, so no text of a user can make it throw.
 */
export interface BytePairs {
  count(text: string): number
}

/** `tokens[rank]` is a token as text, or as bytes where it is not whole UTF-8. */
export function createBytePairs(tokens: readonly (string | readonly number[])[], pieces: RegExp): BytePairs {
  const ranks = new Map<string, number>()
  let longest = 0
  tokens.forEach((token, rank) => {
    const bytes = typeof token === 'string' ? toByteString(token) : String.fromCharCode(...token)
    ranks.set(bytes, rank)
    longest = Math.max(longest, bytes.length)
  })
  // Words come back all the time; the most common thousands of pieces make up most of a text.
  const counted = new Map<string, number>()
  return {
    count(text) {
      let total = 0
      for (const [piece] of text.matchAll(pieces)) {
        const known = counted.get(piece)
        const own = known ?? countPiece(toByteString(piece), ranks, longest)
        if (known === undefined && piece.length <= MAX_REMEMBERED_CHARS && counted.size < MAX_REMEMBERED)
          counted.set(piece, own)
        total += own
      }
      return total
    },
  }
}

const MAX_REMEMBERED = 20_000
const MAX_REMEMBERED_CHARS = 24

/** UTF-8, one character per byte: substrings of it are cheap and can be looked up in a map. */
function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

const NO_RANK = -1
/** A heap key is `rank * POSITIONS + position`: the lowest rank first, then the leftmost, and exact in a double. */
const POSITIONS = 2 ** 32

function countPiece(bytes: string, ranks: ReadonlyMap<string, number>, longest: number): number {
  if (bytes.length <= 1 || ranks.has(bytes)) return Math.min(1, bytes.length)
  const length = bytes.length
  // The parts as a linked list: part i is bytes[i … next[i]).
  const next = Int32Array.from({ length: length + 1 }, (_, i) => i + 1)
  const previous = Int32Array.from({ length: length + 1 }, (_, i) => i - 1)
  const rankAt = new Int32Array(length).fill(NO_RANK)
  const heap = createHeap()
  const offer = (at: number): void => {
    const middle = next[at] ?? length
    const end = middle < length ? (next[middle] ?? length) : length
    const rank = middle < length && end - at <= longest ? ranks.get(bytes.slice(at, end)) : undefined
    rankAt[at] = rank ?? NO_RANK
    if (rank !== undefined) heap.push(rank * POSITIONS + at)
  }
  for (let at = 0; at < length - 1; at++) offer(at)

  let parts = length
  for (let key = heap.pop(); key !== undefined; key = heap.pop()) {
    const at = key % POSITIONS
    // A part that has been merged since has another pair, or none, and is in the heap with that.
    if (rankAt[at] !== Math.floor(key / POSITIONS)) continue
    const merged = next[at] ?? length
    const end = next[merged] ?? length
    next[at] = end
    if (end < length) previous[end] = at
    rankAt[merged] = NO_RANK
    parts--
    offer(at)
    const before = previous[at] ?? -1
    if (before >= 0) offer(before)
  }
  return parts
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
