import { isRecord, type JsonObject, type JsonValue } from '../base/json.ts'
import { createRedactor, REDACTED } from '../base/redact.ts'
import type { Config } from './config.ts'
import type { KeyPath } from './problem.ts'
import { isSecret } from './secret-keys.ts'
import { jsonSchema } from './validate.ts'

/** The JSON Schema of `bridge.json`, with the meaning and default of every key: for editors and for `clew config schema`. */
export function configSchema(): JsonObject {
  return jsonSchema()
}

/** The configuration as it holds, for people to read: every secret is replaced by a mark that it is set. */
export function describeConfig(config: Config): JsonObject {
  const redactText = createRedactor({ maxTextLength: 10_000 })
  const describe = (value: unknown, path: KeyPath): JsonValue => {
    if (Array.isArray(value)) return value.map((item, index) => describe(item, [...path, index]))
    if (isRecord(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, describe(inner, [...path, key])]))
    }
    if (isSecret(path) || isArgument(path)) return REDACTED
    if (typeof value === 'string') return redactText(withoutCredentials(value)) ?? ''
    return typeof value === 'number' || typeof value === 'boolean' ? value : null
  }
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, describe(value, [key])]))
}

/** The values a log must never show. */
export function secretsOf(config: Config): readonly string[] {
  const found: string[] = []
  const collect = (value: unknown, path: KeyPath): void => {
    if (typeof value === 'string' && isSecret(path)) found.push(value)
    else if (Array.isArray(value)) value.forEach((item, index) => collect(item, [...path, index]))
    else if (isRecord(value)) for (const [key, inner] of Object.entries(value)) collect(inner, [...path, key])
  }
  collect(config, [])
  return found
}

/** Arguments of a program (`--token …`) often hold a key, and which of them do cannot be told. */
function isArgument(path: KeyPath): boolean {
  return path.at(-2) === 'args'
}

/** `wss://user:password@host/` is an address with a secret inside. */
function withoutCredentials(text: string): string {
  return text.replace(/^([a-z+]+:\/\/)[^/@\s]+@/i, `$1${REDACTED}@`)
}
