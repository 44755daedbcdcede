import { ApiError } from './api.ts'
import { texts } from './language.ts'

/** A failure in words: the gateway's own where it said some, else those of the page, and what can be done about it. */
export function wordsOf(thrown: unknown): {
  readonly message: string
  readonly code?: string
  readonly hint?: string
} {
  if (!(thrown instanceof ApiError)) return { message: thrown instanceof Error ? thrown.message : String(thrown) }
  const { shell, hints } = texts.value
  const { code } = thrown
  return { message: code === 'OFFLINE' ? shell.unreachable : thrown.message, code, hint: hints[hintOf(thrown)] }
}

function hintOf({ status, code }: ApiError): keyof typeof texts.value.hints {
  if (code === 'OFFLINE') return 'offline'
  if (status === 401 || status === 403) return 'access'
  if (status === 404) return 'gone'
  if (status === 429 || status === 503) return 'busy'
  return status >= 400 && status < 500 ? 'input' : 'broken'
}
