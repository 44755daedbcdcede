/**
 * PostgreSQL's text holds no NUL and no half of a surrogate pair, JavaScript's strings do. Such characters are written
 * as U+F8FF and four hexadecimal digits; every other text stays as it is, so that an operator can read and write it.
 */
const UNSTORABLE = /\uf8ff|\p{Surrogate}/gu
const ESCAPED = /\uf8ff([0-9a-f]{4})/gu
const MARK = '\uf8ff'

export function toColumn(text: string): string {
  return text
    .replace(UNSTORABLE, (one) => `${MARK}${one.charCodeAt(0).toString(16)}`)
    .replaceAll('\u0000', `${MARK}0000`)
}

export function fromColumn(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(ESCAPED, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** Every text of a JSON value, names of fields too. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]))
}
