/**
 * Cuts the middle out of a text and says how much. Head and tail stay, because a tool's answer begins with what was
 * asked and ends with what went wrong. Never longer than `maxChars`, never between the halves of a surrogate pair.
 */
export function cutMiddle(text: string, maxChars: number, noticeOf: (omittedChars: number) => string): string {
  if (text.length <= maxChars) return text
  // The number of omitted characters only gets shorter than the text's length, so this notice is the longest one.
  const room = maxChars - noticeOf(text.length).length - 2
  if (room < 2) return takeHead(text, Math.max(0, maxChars))
  const tailRoom = Math.floor(room * TAIL_SHARE)
  const head = endAtLine(takeHead(text, room - tailRoom))
  const tail = takeTail(text, tailRoom)
  return `${head}\n${noticeOf(text.length - head.length - tail.length)}\n${tail}`
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
