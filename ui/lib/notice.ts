import { signal } from '@preact/signals'
import { wordsOf } from './failures.ts'

/** What was just done, or could not be done, said for some seconds in words. */
export const notice = signal<{ readonly text: string; readonly isFailure: boolean } | undefined>(undefined)

const SHOWN_MS = 6_000
const FAILURE_SHOWN_MS = 12_000
let timer: ReturnType<typeof setTimeout> | undefined

export function notify(text: string): void {
  say(text, false)
}

/** For what has no place of its own to show its failure at. */
export function notifyFailure(thrown: unknown): void {
  const { message, hint } = wordsOf(thrown)
  say(hint === undefined ? message : `${message} · ${hint}`, true)
}

/** Does what a button asks for: nothing that fails stays unsaid. */
export function attempt(work: () => Promise<unknown>): void {
  work().catch(notifyFailure)
}

function say(text: string, isFailure: boolean): void {
  clearTimeout(timer)
  notice.value = { text, isFailure }
  timer = setTimeout(() => (notice.value = undefined), isFailure ? FAILURE_SHOWN_MS : SHOWN_MS)
}
