import { signal } from '@preact/signals'

/** What was just done, said for some seconds in words. */
export const notice = signal('')

const SHOWN_MS = 6_000
let timer: ReturnType<typeof setTimeout> | undefined

export function notify(text: string): void {
  clearTimeout(timer)
  notice.value = text
  timer = setTimeout(() => (notice.value = ''), SHOWN_MS)
}
