import { errnoOf } from '../base/files.ts'
import { GatewayError } from '../core/errors.ts'
import { capText } from './cap-output.ts'

const MAX_CHARS = 500

/** Shapes in which keys and passwords appear in other people's error messages. Each begins with a fixed word or sign. */
const PASSWORD_IN_ADDRESS = /:\/\/[^\s/@]*@/g
const ADDRESS = /:\/\/[^\s"'<>]+/g
const LOGIN = /\b(?<kind>bearer|basic)\s{1,20}[\w.~+/=-]{6,}/gi
const NAMED_SECRET =
  /(?<name>(?:api[-_]?key|token|secret|password|passwd|authorization|cookie)["']?\s{0,20}[:=]\s{0,20})(?:"[^"]*"|'[^']*'|[^\s,;]+)/gi
const KEY = /\b(?:sk|pk|rk|ghp|gho|xox[a-z]|AKIA|AIza)[A-Za-z0-9_-]*/g
const KEY_CHARS = 14

/** What a thrown value may say to the model: one short line without keys, passwords or query strings. */
export function safeErrorText(thrown: unknown, secrets: readonly string[] = []): string {
  if (thrown instanceof GatewayError) return withoutSecrets(thrown.message, secrets)
  if (!(thrown instanceof Error)) return 'it failed without saying why'
  const errno = errnoOf(thrown)
  const firstLine = thrown.message.split('\n', 1)[0]?.trim() ?? ''
  return withoutSecrets(firstLine || (errno ?? thrown.name), secrets)
}

export function withoutSecrets(text: string, secrets: readonly string[] = []): string {
  let safe = capText(text, MAX_CHARS * 4)
  for (const secret of secrets) if (secret.length >= 4) safe = safe.replaceAll(secret, '…')
  safe = safe
    .replaceAll(PASSWORD_IN_ADDRESS, '://…@')
    .replaceAll(ADDRESS, withoutQuery)
    .replaceAll(LOGIN, '$<kind> …')
    .replaceAll(NAMED_SECRET, '$<name>…')
    .replaceAll(KEY, (found) => (found.length >= KEY_CHARS ? '…' : found))
  return capText(safe, MAX_CHARS)
}

function withoutQuery(address: string): string {
  const at = address.search(/[?#]/)
  return at < 0 ? address : `${address.slice(0, at)}?…`
}
