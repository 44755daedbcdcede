import { errnoOf } from '../base/files.ts'
import { GatewayError } from '../core/errors.ts'
import { capText } from './cap-output.ts'

const MAX_CHARS = 500

/** Shapes in which keys and passwords appear in other people's error messages. */
const SECRET_SHAPES: readonly (readonly [RegExp, string])[] = [
  [/\b(?<scheme>[a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$<scheme>…@'],
  [/(?<url>[a-z][a-z0-9+.-]*:\/\/[^\s?#"'<>]*)[?#][^\s"'<>]*/gi, '$<url>?…'],
  [/\b(?<kind>bearer|basic)\s+[\w.~+/=-]{6,}/gi, '$<kind> …'],
  [
    /(?<name>[\w-]*(?:api[-_]?key|token|secret|password|passwd|authorization|cookie)["']?\s*[:=]\s*)(?:"[^"]*"|'[^']*'|[^\s,;]+)/gi,
    '$<name>…',
  ],
  [/\b(?:sk|pk|rk|ghp|gho|xox[a-z]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{12,}/g, '…'],
]

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
  for (const [shape, replacement] of SECRET_SHAPES) safe = safe.replace(shape, replacement)
  return capText(safe, MAX_CHARS)
}
