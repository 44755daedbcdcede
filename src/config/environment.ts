import { isRecord } from '../base/json.ts'
import type { KeyPath } from './problem.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Expanded {
  readonly value: Record<string, unknown>
  /** Where a value came from the environment, by the JSON of its path. */
  readonly fromEnvironment: ReadonlyMap<string, string>
  readonly missing: readonly { readonly path: KeyPath; readonly variable: string }[]
}

const REFERENCE = /^\$([A-Za-z_][A-Za-z0-9_]*)$/

/**
 * Replaces texts of the form `$NAME`. `$$NAME` is the text `$NAME`. An empty variable counts as not set: taking it would
 * turn a token into no token.
 */
export function expandEnvironment(value: Record<string, unknown>, environment: Environment): Expanded {
  const fromEnvironment = new Map<string, string>()
  const missing: { path: KeyPath; variable: string }[] = []

  const expand = (item: unknown, path: KeyPath): unknown => {
    if (Array.isArray(item)) return item.map((inner, index) => expand(inner, [...path, index]))
    if (isRecord(item)) return expandObject(item, path)
    if (typeof item !== 'string') return item
    const variable = REFERENCE.exec(item)?.[1]
    if (variable === undefined) return item.startsWith('$$') && REFERENCE.test(item.slice(1)) ? item.slice(1) : item
    const found = Object.hasOwn(environment, variable) ? environment[variable] : undefined
    if (found === undefined || found === '') {
      missing.push({ path, variable })
      return item
    }
    fromEnvironment.set(JSON.stringify(path), variable)
    return found
  }
  const expandObject = (item: Record<string, unknown>, path: KeyPath): Record<string, unknown> =>
    Object.fromEntries(
      // `$schema` is the editors' key.
      Object.entries(item).map(([key, inner]) => [key, key === '$schema' ? inner : expand(inner, [...path, key])]),
    )

  return { value: expandObject(value, []), fromEnvironment, missing }
}
