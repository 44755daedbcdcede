import { isRecord } from '../base/json.ts'
import type { RequestDelta } from './request-delta.ts'
import type { RequestRecord } from './request-record.ts'

/** The entry may be another program's, or damaged: a record with a field of another kind is none. */
export function isRequestRecord(data: unknown): data is RequestRecord {
  if (!isRecord(data) || 'base' in data || !hasCommonFields(data)) return false
  const { model, api, input, windowLearned } = data
  return [model, api, windowLearned].every(isTextOrAbsent) && isRecord(input)
}

export function isRequestDelta(data: unknown): data is RequestDelta {
  if (!isRecord(data) || !hasCommonFields(data)) return false
  const { base, distance, m, c, fields, input, budget, reasons } = data
  return (
    isWholeNumber(base) &&
    isWholeNumber(distance) &&
    Array.isArray(m) &&
    isWholeNumber(m[0]) &&
    typeof m[1] === 'string' &&
    (c === undefined || (Array.isArray(c) && c.every(isChangedRow))) &&
    [fields, input, budget].every((part) => part === undefined || isRecord(part)) &&
    (reasons === undefined || isTexts(reasons))
  )
}

/** A row of the changes of a report. */
export function isReportRow(row: unknown): row is readonly (number | string)[] {
  return Array.isArray(row) && row.every((cell) => typeof cell === 'number' || typeof cell === 'string')
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}

const TIMES_AND_SIZES = ['messages', 'startedAt', 'firstByteMs', 'durationMs'] as const

function hasCommonFields(data: Readonly<Record<string, unknown>>): boolean {
  const { n, leaf, hash, estimate } = data
  return (
    Number.isFinite(n) &&
    Number.isFinite(estimate) &&
    typeof hash === 'string' &&
    (leaf === null || typeof leaf === 'string') &&
    TIMES_AND_SIZES.every((field) => data[field] === undefined || Number.isFinite(data[field]))
  )
}

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string'

/** More rows than any request has kinds of changes; a damaged number must not make a list of a million holes. */
const MAX_ROWS = 10_000

function isChangedRow(row: unknown): boolean {
  return isReportRow(row) && isWholeNumber(row[0]) && row[0] < MAX_ROWS && isWholeNumber(row[1])
}

function isWholeNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
