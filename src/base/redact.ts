import { isRecord, type JsonValue } from './json.ts'

export const REDACTED = '[redacted]'

/** Names whose values never belong in a log line: credentials, and everything a user, model or tool said. */
const SECRET_NAME = /token$|secret|passw|api_?-?key|access_?-?key|authorization|cookie|credential|^x-sign$|^ak$|^sk$/i
const PAYLOAD_NAME = /^(content|text|prompt|body|arguments|message_?text|payload|instruction|delta)$/i

/** Credentials by their look, for strings that carry one inside (an error text, an address with a query). */
const SECRET_TEXT = /\bBearer\s+[\w.~+/=-]+|\bsk-[\w-]{8,}|([?&](?:token|key|api_key|access_token|sign)=)[^&\s"]+/gi

export interface RedactOptions {
  /** Secrets known by value (from the configuration): cut out wherever they appear. */
  readonly secrets?: readonly string[]
  readonly maxTextLength?: number
}

/**
 * The second line of defence: facts are meant to hold ids, sizes and codes only, and the writer of a log line keeps to
 * that. This catches the slip. Short secrets are left alone, cutting out `a` everywhere would make lines unreadable.
 */
export function createRedactor(options: RedactOptions = {}): (value: JsonValue | undefined) => JsonValue | undefined {
  const secrets = (options.secrets ?? []).filter((secret) => secret.length >= 6)
  const maxTextLength = options.maxTextLength ?? 500

  const cleanText = (text: string): string => {
    let clean = text.replace(SECRET_TEXT, (_match, prefix?: string) => `${prefix ?? ''}${REDACTED}`)
    for (const secret of secrets) clean = clean.replaceAll(secret, REDACTED)
    return clean.length > maxTextLength ? `${clean.slice(0, maxTextLength)}… (${text.length} characters)` : clean
  }

  const clean = (value: JsonValue | undefined, depth: number): JsonValue | undefined => {
    if (typeof value === 'string') return cleanText(value)
    if (typeof value !== 'object' || value === null) return value
    if (depth >= 6) return '[deep]'
    if (Array.isArray(value)) return value.slice(0, 50).map((item: JsonValue) => clean(item, depth + 1) ?? null)
    if (!isRecord(value)) return null
    const out: Record<string, JsonValue | undefined> = {}
    for (const [name, inner] of Object.entries(value)) {
      out[name] = isSensitive(name, inner) ? REDACTED : clean(inner, depth + 1)
    }
    return out
  }
  return (value) => clean(value, 0)
}

/** Numbers and flags under such a name (`inputToken: 12`, `text: true`) give nothing away. */
function isSensitive(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'number' || typeof value === 'boolean') return false
  return SECRET_NAME.test(name) || PAYLOAD_NAME.test(name)
}
