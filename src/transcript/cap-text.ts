/**
 * Shares `max` characters out over texts that are longer together: each keeps at least `least` as long as the total
 * allows, the rest goes by length. The shares never add up to more than `max`.
 */
export function shareOut(lengths: readonly number[], max: number, least: number): number[] {
  const total = lengths.reduce((sum, length) => sum + length, 0)
  if (total <= max) return [...lengths]
  const floor = least * lengths.length <= max ? least : 0
  const base = lengths.map((length) => Math.min(length, floor))
  const room = max - base.reduce((sum, length) => sum + length, 0)
  const wanted = lengths.map((length, at) => length - (base[at] ?? 0))
  const wantedTotal = wanted.reduce((sum, length) => sum + length, 0)
  return base.map((length, at) => length + Math.floor((room * (wanted[at] ?? 0)) / wantedTotal))
}

/** Which share of what is kept comes from the start; the end of an output is where its errors are. */
const HEAD_SHARE = 0.7

/**
 * Head, notice, tail: together at most `max` UTF-16 units, never half a code point. `notice` is told how many
 * characters (code points) it stands for.
 */
export function cutMiddle(text: string, max: number, notice: (omittedCharacters: number) => string): string {
  if (text.length <= max) return text
  // The count in the notice has at most as many digits as the text is long.
  const room = max - notice(text.length).length
  if (room <= 0) return text.slice(0, startOfCodePoint(text, max))
  const headEnd = startOfCodePoint(text, Math.ceil(room * HEAD_SHARE))
  const tailStart = endOfCodePoint(text, text.length - (room - headEnd))
  const omitted = countCodePoints(text, headEnd, tailStart)
  return text.slice(0, headEnd) + notice(omitted) + text.slice(tailStart)
}

function isLowSurrogateOfPair(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  const before = text.charCodeAt(at - 1)
  return unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff
}

function startOfCodePoint(text: string, at: number): number {
  return isLowSurrogateOfPair(text, at) ? at - 1 : at
}

function endOfCodePoint(text: string, at: number): number {
  return isLowSurrogateOfPair(text, at) ? at + 1 : at
}

function countCodePoints(text: string, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at++) if (!isLowSurrogateOfPair(text, at)) count++
  return count
}
