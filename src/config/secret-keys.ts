import { z } from 'zod'
import type { KeyPath } from './problem.ts'
import { fileSchema } from './schema.ts'

let patterns: readonly KeyPath[] | undefined

/**
 * Whether a key's value must never be shown. Read from the schema itself, where `secret()` marks it: the JSON Schema
 * knows it too, but takes 50 ms to make, and every start asks this.
 */
export function isSecret(path: KeyPath): boolean {
  patterns ??= secretKeys(fileSchema, [])
  return patterns.some(
    (pattern) => pattern.length <= path.length && pattern.every((part, index) => part === '*' || part === path[index]),
  )
}

function secretKeys(schema: z.core.$ZodType, path: KeyPath): KeyPath[] {
  if (z.globalRegistry.get(schema)?.['writeOnly'] === true) return [path]
  // The library's own way from the base type to its members
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'object') {
    return Object.entries(def.shape).flatMap(([key, inner]) => secretKeys(inner, [...path, key]))
  }
  if (def.type === 'record') return secretKeys(def.valueType, [...path, '*'])
  if (def.type === 'array') return secretKeys(def.element, [...path, '*'])
  if (def.type === 'union') return def.options.flatMap((option) => secretKeys(option, path))
  if (def.type === 'pipe') return secretKeys(def.in, path)
  return 'innerType' in def ? secretKeys(def.innerType, path) : []
}
