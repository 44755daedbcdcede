import { signal } from '@preact/signals'
import { segment } from './router.ts'

/** A refusal or failure of the gateway, in its own words. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** True after the gateway asked for a code or token; the shell then shows the sign-in form. */
export const needsLogin = signal(false)

type Method = 'POST' | 'PATCH' | 'DELETE'

function request<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return answerOf<T>(path, {
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** A read that takes long may hang on a dead connection, as after a laptop's sleep: it is asked again on another. */
const READS_MS = [4_000, 8_000, 30_000] as const

async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (const [at, ms] of READS_MS.entries()) {
    const limit = AbortSignal.timeout(ms)
    try {
      return await answerOf<T>(path, { signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) })
    } catch (error) {
      if (!limit.aborted || signal?.aborted === true || at === READS_MS.length - 1) throw error
    }
  }
  throw unreachable()
}

export const unreachable = (): ApiError => new ApiError(0, 'OFFLINE', 'the gateway cannot be reached')

/** A connection that ends, before an answer or in the middle of one; what the page itself gave up stays that. */
function asUnreachable(error: unknown): never {
  if (error instanceof DOMException && error.name === 'AbortError') throw error
  throw unreachable()
}

async function answerOf<T>(path: string, init: RequestInit): Promise<T> {
  const response = await fetch(path, { credentials: 'same-origin', ...init }).catch(asUnreachable)
  if (response.ok) return (await response.json().catch(asUnreachable)) as T
  if (response.status === 401) needsLogin.value = true
  const failure = (await response.json().catch(() => ({}))) as { error?: string; code?: string }
  throw new ApiError(response.status, failure.code ?? `HTTP_${response.status}`, failure.error ?? response.statusText)
}

export const api = {
  get: read,
  post: <T>(path: string, body: unknown = {}) => request<T>('POST', path, body),
  patch: <T>(path: string, body: unknown) => request<T>('PATCH', path, body),
  delete: <T>(path: string) => request<T>('DELETE', path),
}

/** Stores a file with the gateway, so that a message can name it. */
export function uploadFile<T>(file: Blob, name: string): Promise<T> {
  const headers = { 'content-type': file.type || 'application/octet-stream', 'x-filename': segment(name) }
  return answerOf<T>('/api/files', { method: 'POST', headers, body: file })
}

export function sessionPath(key: string, rest = ''): string {
  return `/api/sessions/${segment(key)}${rest}`
}

export function query(fields: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== '' && value !== false) search.set(name, value === true ? '1' : String(value))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
