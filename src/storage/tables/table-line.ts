import { crc32 } from 'node:zlib'
import { parseJson } from '../../base/json.ts'

/**
 * A line of a file of rows: eight hexadecimal digits of CRC-32 over the rest, a space, a digit for the table, eight
 * digits of the hash of the row's name, a space, `["key",value]` as JSON or `["key"]` for a row that is gone, a newline.
 */
export interface Line {
  readonly table: number
  readonly hash: number
  readonly key: string
  /** Undefined: the row is gone. */
  readonly value: unknown
}

const SPACE = 32
const NEWLINE = 10
const CHECKSUM_DIGITS = 8
const TABLE_AT = CHECKSUM_DIGITS + 1
const HASH_AT = TABLE_AT + 1
const JSON_AT = HASH_AT + CHECKSUM_DIGITS + 1

/** The lines as bytes, with their lengths. */
export function encodeLines(lines: readonly Line[]): { readonly bytes: Buffer; readonly lengths: readonly number[] } {
  const texts = lines.map(({ table, hash, key, value }) => {
    const json = value === undefined ? JSON.stringify([key]) : JSON.stringify([key, value])
    return `${'0'.repeat(CHECKSUM_DIGITS)} ${table}${digitsOf(hash)} ${json}\n`
  })
  const bytes = Buffer.from(texts.join(''))
  const lengths: number[] = []
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start)
    bytes.write(digitsOf(crc32(bytes.subarray(start + TABLE_AT, end))), start, 'latin1')
    lengths.push(end + 1 - start)
    start = end + 1
  }
  return { bytes, lengths }
}

/** Which row a line is of, without a look at its checksum; `end` is the place of its newline. */
export function headOf(bytes: Buffer, start: number, end: number): { table: number; hash: number } | undefined {
  if (end - start < JSON_AT || bytes[start + CHECKSUM_DIGITS] !== SPACE || bytes[start + JSON_AT - 1] !== SPACE)
    return undefined
  const hash = numberAt(bytes, start + HASH_AT)
  return hash === undefined ? undefined : { table: (bytes[start + TABLE_AT] ?? 0) - 48, hash }
}

export function isWhole(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= JSON_AT && crc32(bytes.subarray(start + TABLE_AT, end)) === numberAt(bytes, start)
}

/** `["key",value]`. */
export function jsonIn(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start + JSON_AT, end)
}

/** Undefined for bytes that are no whole line. */
export function decodeLine(bytes: Buffer, start: number, end: number): Line | undefined {
  const head = headOf(bytes, start, end)
  if (head === undefined || !isWhole(bytes, start, end)) return undefined
  const row = parseJson(jsonIn(bytes, start, end))
  if (!Array.isArray(row) || typeof row[0] !== 'string') return undefined
  return { ...head, key: row[0], value: row[1] }
}

function digitsOf(word: number): string {
  return word.toString(16).padStart(CHECKSUM_DIGITS, '0')
}

/** Of eight hexadecimal digits. */
function numberAt(bytes: Buffer, at: number): number | undefined {
  let number = 0
  for (let digit = 0; digit < CHECKSUM_DIGITS; digit++) {
    const code = bytes[at + digit] ?? 0
    const value = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 102 ? code - 87 : -1
    if (value < 0) return undefined
    number = number * 16 + value
  }
  return number
}
