/**
 * Text of users, models and tools as a terminal may safely show it: control characters could move the cursor, set titles
 * or rewrite what was printed before, so they are written out. Line breaks and tabs stay.
 */
export function visibleText(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, writtenOut)
}

/** The same on one line: a line break inside a value would forge a second one. */
export function visibleLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, writtenOut)
}

function writtenOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
