/**
 * Cuts the middle out of a text and says how many characters (code points). Head and tail stay, because a tool's answer
 * begins with what was asked and ends with what went wrong. Never longer than `maxChars` UTF-16 units, never between the
 * halves of a surrogate pair.
 */
export function cutMiddle(text: string, maxChars: number, noticeOf: (omittedChars: number) => string): string {
  if (text.length <= maxChars) return text
  // The number of omitted characters only gets shorter than the text's length, so this notice is the longest one.
  const room = maxChars - noticeOf(text.length).length - 2
  if (room < 2) return takeHead(text, Math.max(0, maxChars))
  const tailRoom = Math.floor(room * TAIL_SHARE)
  const head = endAtLine(takeHead(text, room - tailRoom))
  const tail = takeTail(text, tailRoom)
  return `${head}\n${noticeOf(countCharacters(text, head.length, text.length - tail.length))}\n${tail}`
}

/**
 * Shares `max` characters out over texts that are longer together: each keeps at least `least`, or an equal part when
 * there is not room for that; the rest goes by length. The shares never add up to more than `max`.
 */
export function shareOut(lengths: readonly number[], max: number, least: number): readonly number[] {
  const total = lengths.reduce((sum, length) => sum + length, 0)
  if (total <= max) return lengths
  const texts = lengths.filter((length) => length > 0).length
  const floor = Math.min(least, Math.floor(max / Math.max(1, texts)))
  const kept = lengths.map((length) => Math.min(length, floor))
  const room = max - kept.reduce((sum, length) => sum + length, 0)
  const wanted = lengths.map((length, at) => length - (kept[at] ?? 0))
  const allWanted = wanted.reduce((sum, length) => sum + length, 0)
  return kept.map((length, at) => length + (allWanted === 0 ? 0 : Math.floor((room * (wanted[at] ?? 0)) / allWanted)))
}

const TAIL_SHARE = 0.3
const LINE_END_SHARE = 0.8

/** The first `chars` UTF-16 units or one less, so that no surrogate pair is split. */
export function takeHead(text: string, chars: number): string {
  return text.slice(0, isHighSurrogate(text, chars - 1) ? chars - 1 : chars)
}

export function takeTail(text: string, chars: number): string {
  const start = Math.max(0, text.length - chars)
  return text.slice(start > 0 && isHighSurrogate(text, start - 1) ? start + 1 : start)
}

/** At most `chars` UTF-16 units from `offset` on, moved by one where a surrogate pair would be split. */
export function sliceText(
  text: string,
  offset: number,
  chars: number,
): { readonly text: string; readonly start: number } {
  const wanted = Math.min(offset, text.length)
  const start = isHighSurrogate(text, wanted - 1) && isLowSurrogate(text, wanted) ? wanted - 1 : wanted
  const part = text.slice(start, start + chars)
  // One unit alone may be half a pair; nothing would be shown at all.
  return { text: part.length > 1 ? takeHead(part, chars) : text.slice(start, start + 2), start }
}

/** Of the part from `start` to `end`, counting a surrogate pair once. */
function countCharacters(text: string, start: number, end: number): number {
  let pairs = 0
  for (let at = start; at < end; at++) if (isHighSurrogate(text, at) && isLowSurrogate(text, at + 1)) pairs++
  return end - start - pairs
}

function isLowSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0xd800 && code <= 0xdbff
}

function endAtLine(head: string): string {
  const lineEnd = head.lastIndexOf('\n')
  return lineEnd > head.length * LINE_END_SHARE ? head.slice(0, lineEnd) : head
}

declare global {
  /** ES2024; Node has had both since 20.0, our `lib` does not know yet. */
  interface String {
    isWellFormed(): boolean
    toWellFormed(): string
  }
}

/** Replaces halves of surrogate pairs that stand alone: one of them makes a whole request body invalid. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed()
}

/** Behind an answer that the output limit cut short, for people. */
export const CUT_NOTICE = '\n\n[The answer was cut off at the model’s output limit. Say “continue” to go on.]'

/** The answer alone, for programs that learn in another way that it was cut. */
export function withoutCutNotice(text: string): string {
  return text.endsWith(CUT_NOTICE) ? text.slice(0, -CUT_NOTICE.length) : text
}
