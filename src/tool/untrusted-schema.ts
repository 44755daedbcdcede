import { isRecord, type JsonObject, type JsonValue } from '../base/json.ts'

const MAX_DEPTH = 64

/**
 * A schema without regular expressions. A hostile pattern can run for years on thirty characters, and the server that
 * sent it checks its own arguments anyway. Dropping `patternProperties` takes `additionalProperties` with it, because
 * that would now refuse what the patterns allowed.
 */
export function withoutPatterns(schema: JsonObject): JsonObject {
  const cleaned = cleanSchema(schema, 0)
  return isRecord(cleaned) ? cleaned : {}
}

function cleanSchema(value: JsonValue | undefined, depth: number): JsonValue {
  if (depth > MAX_DEPTH) throw new Error('the schema is nested too deeply')
  if (Array.isArray(value)) return value.map((item: JsonValue) => cleanSchema(item, depth + 1))
  if (!isRecord(value)) return value ?? null
  const cleaned: Record<string, JsonValue> = {}
  const hasPatternProperties = 'patternProperties' in value
  for (const [keyword, inner] of Object.entries(value)) {
    if (keyword === 'pattern' && typeof inner === 'string') continue
    if (keyword === 'patternProperties') continue
    if (keyword === 'additionalProperties' && hasPatternProperties) continue
    cleaned[keyword] = isNamesOfProperties(keyword) ? cleanEach(inner, depth + 1) : cleanSchema(inner, depth + 1)
  }
  return cleaned
}

/** Below these keywords the keys are names chosen by the server, and may well be `pattern`. */
function isNamesOfProperties(keyword: string): boolean {
  return ['properties', '$defs', 'definitions', 'dependentSchemas'].includes(keyword)
}

function cleanEach(value: JsonValue | undefined, depth: number): JsonValue {
  if (!isRecord(value)) return cleanSchema(value, depth)
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, cleanSchema(schema, depth)]))
}
