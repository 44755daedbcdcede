import { isRecord, type JsonObject } from '../base/json.ts'

/** A JSON object whose fields nothing has checked. */
export type Fields = Readonly<Record<string, unknown>>

/** What a field must hold, made from what it holds; undefined takes the field away. */
export type Rule = (value: unknown) => unknown

/** The object with every named field as its rule wants it; the same object when all are so already. */
export function withRules(given: Fields, rules: Readonly<Record<string, Rule>>): Fields {
  let corrected: Record<string, unknown> | undefined
  for (const field in rules) {
    const value = given[field]
    const right = rules[field]?.(value)
    if (Object.is(right, value)) continue
    corrected ??= { ...given }
    if (right === undefined) delete corrected[field]
    else corrected[field] = right
  }
  return corrected ?? given
}

/** Every word that a value holds, as text: JSON where it is nothing better. Nothing for null. */
export function textFrom(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (isRecord(value) && typeof value['text'] === 'string') return value['text']
  return JSON.stringify(value)
}

export const isEmpty = (value: Fields): boolean => Object.keys(value).length === 0

/** What a later version may call a kind or a role; words that slid into the place of a name are none. */
export const NAME = /^[a-z][\w.-]{0,63}$/iu

export const nameOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)

export const isTrue = (value: unknown): boolean => value === true

export const optionalText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const optionalNumber = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const optionalFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)

export const optionalObject = (value: unknown): JsonObject | undefined =>
  isRecord(value) ? (value as JsonObject) : undefined

/** Far above what a program writes, and low enough for every recursive reader, `JSON.stringify` among them. */
const MAX_LEVELS = 500

/** A JSON value of bounded depth: what is nested more deeply is kept as the words in it. */
export function withBoundedDepth<T>(value: T): T
export function withBoundedDepth(value: unknown): unknown {
  return isDeeperThan(MAX_LEVELS, value) ? cutAt(MAX_LEVELS, value) : value
}

export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const inner of Object.values(value)) if (isDeeperThan(levels - 1, inner)) return true
  return false
}

function cutAt(levels: number, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return wordsIn(value)
  if (Array.isArray(value)) return value.map((inner) => cutAt(levels - 1, inner))
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, cutAt(levels - 1, inner)]))
}

/** Without recursion: the value may be nested a million levels deep. */
function wordsIn(value: object): string {
  const words: string[] = []
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') words.push(next)
    else if (typeof next === 'object' && next !== null) waiting.push(...Object.values(next).toReversed())
  }
  return words.join(' ')
}
