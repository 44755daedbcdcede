import { parseForeignJson, isRecord, type JsonObject } from '../base/json.ts'
import { isJsonObject } from './json-object.ts'
import { lengthNumbersOf, type LengthNumbers } from './length-numbers.ts'

/** What a provider said about a failure, whichever of their shapes it used. */
export interface ProviderError {
  /** 0 for an error inside a stream. */
  readonly status: number
  /** `overloaded_error`, `insufficient_quota`, `RESOURCE_EXHAUSTED` …, all the words found, in lower case. */
  readonly words: readonly string[]
  readonly message: string
  readonly retryDelayMs?: number
  /** Of a refusal for length that names them. */
  readonly length?: LengthNumbers
}

/** Shapes: Anthropic, OpenAI and Google `{error: {…}}`, Mistral flat, FastAPI `{detail}`, Ollama `{error: "…"}`. */
export function readProviderError(status: number, text: string): ProviderError {
  const parsed = parseForeignJson(text)
  const body = Array.isArray(parsed) ? (parsed[0] as unknown) : parsed
  if (!isJsonObject(body)) return { status, words: [], message: text.trim(), ...lengthOf(undefined, text) }
  return fromObject(status, body)
}

export function fromObject(status: number, body: JsonObject): ProviderError {
  const nested = body['error'] ?? body['detail'] ?? body
  if (typeof nested === 'string') return { status, words: [], message: nested, ...lengthOf(body, nested) }
  const error: unknown = Array.isArray(nested) ? nested[0] : nested
  if (!isRecord(error)) return { status, words: [], message: '' }
  const words = [error['type'], error['code'], error['status'], ...detailReasons(error['details'])]
  const delay = retryDelayOf(error['details'])
  const message = firstText(error['message'], error['msg'], error['param'])
  return {
    status: status === 0 && typeof error['code'] === 'number' ? error['code'] : status,
    words: words.flatMap((word) => (typeof word === 'string' ? [word.toLowerCase()] : [])),
    message,
    ...(delay === undefined ? {} : { retryDelayMs: delay }),
    ...lengthOf(error, message),
  }
}

function lengthOf(error: unknown, message: string): Pick<ProviderError, 'length'> {
  const length = lengthNumbersOf(error, message)
  return length === undefined ? {} : { length }
}

function firstText(...values: readonly unknown[]): string {
  for (const value of values) if (typeof value === 'string' && value !== '') return value
  return ''
}

function detailReasons(details: unknown): readonly unknown[] {
  return Array.isArray(details)
    ? details.map((detail: unknown) => (isRecord(detail) ? detail['reason'] : undefined))
    : []
}

/** Google's `RetryInfo`: `"retryDelay": "34.07s"`. */
function retryDelayOf(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined
  for (const detail of details as readonly unknown[]) {
    const delay = isRecord(detail) ? detail['retryDelay'] : undefined
    const seconds = typeof delay === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(delay)?.[1] : undefined
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000)
  }
  return undefined
}
