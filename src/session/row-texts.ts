import { takeHead } from '../core/cut-text.ts'

const TITLE_CHARS = 60
const PREVIEW_CHARS = 120

/** What a list shows of a message, on one line. */
export function titleOf(text: string): string {
  return takeHead(oneLine(text), TITLE_CHARS)
}

export function previewOf(text: string): string {
  return takeHead(oneLine(text), PREVIEW_CHARS)
}

function oneLine(text: string): string {
  return text.slice(0, 2_000).replaceAll(/\s+/gu, ' ').trim()
}
