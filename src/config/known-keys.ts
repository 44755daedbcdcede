import type { JsonObject, JsonValue } from '../base/json.ts'
import { isRecord } from '../base/json.ts'
import { keyOf, type KeyPath } from './problem.ts'

/** The part of the published JSON Schema that describes the value at a path. */
export function schemaAt(schema: JsonObject, path: KeyPath): JsonObject | undefined {
  let nodes: JsonObject[] = [schema]
  for (const part of path) nodes = nodes.flatMap((node) => children(node, part))
  const values = nodes.flatMap((node) => (node['const'] === undefined ? [] : [node['const']]))
  return values.length > 1 ? { enum: values } : nodes[0]
}

function children(node: JsonObject, part: string | number): JsonObject[] {
  const alternatives = [node, ...objectsOf(node['anyOf']), ...objectsOf(node['oneOf'])]
  return alternatives.flatMap((one) => {
    const properties = one['properties']
    if (isRecord(properties) && Object.hasOwn(properties, part)) return objectsOf([properties[part]])
    return typeof part === 'number' ? objectsOf([one['items']]) : objectsOf([one['additionalProperties']])
  })
}

function objectsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter((item): item is JsonObject => isRecord(item)) : []
}

/**
 * What was probably meant by an unknown key: the nearest key of the same section by spelling, else a key of the same
 * name in another section.
 */
export function nearestKey(schema: JsonObject, section: KeyPath, unknown: string): string | undefined {
  const node = schemaAt(schema, section)
  const siblings =
    node === undefined ? [] : [node, ...objectsOf(node['oneOf'])].flatMap((one) => keysOf(one['properties']))
  const wanted = plain(unknown)
  const allowance = Math.max(1, Math.floor(wanted.length / 3))
  const [best] = siblings
    .map((key) => ({ key, distance: editDistance(wanted, plain(key)) }))
    .filter(({ distance }) => distance <= allowance)
    .sort((a, b) => a.distance - b.distance)
  if (best !== undefined) return best.key
  return allKeys(schema, []).find(([name]) => plain(name) === wanted)?.[1]
}

function keysOf(properties: JsonValue | undefined): string[] {
  return isRecord(properties) ? Object.keys(properties) : []
}

function allKeys(node: JsonObject, path: KeyPath): [name: string, key: string][] {
  return keysOf(node['properties']).flatMap((name) => {
    const here = [...path, name]
    const child = children(node, name)[0]
    return [[name, keyOf(here)] as [string, string], ...(child === undefined ? [] : allKeys(child, here))]
  })
}

/** `maxRounds`, `max_rounds` and `max-rounds` are one slip apart for people, not three. */
function plain(key: string): string {
  return key.toLowerCase().replace(/[_-]/g, '')
}

/** Insertions, deletions, replacements, and swapped neighbours as one (`prot` → `port`). */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1)
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] && i > 1 && j > 1)
        best = Math.min(best, (beforePrevious[j - 2] ?? 0) + 1)
      row.push(best)
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length] ?? 0
}
