import { signal } from '@preact/signals'

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

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: 'same-origin',
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, 'OFFLINE', 'the gateway cannot be reached')
  })
  if (response.ok) return (await response.json()) as T
  if (response.status === 401) needsLogin.value = true
  const failure = (await response.json().catch(() => ({}))) as { error?: string; code?: string }
  throw new ApiError(response.status, failure.code ?? `HTTP_${response.status}`, failure.error ?? response.statusText)
}

export const api = {
  get: <T>(path: string, signal?: AbortSignal) => request<T>('GET', path, undefined, signal),
  post: <T>(path: string, body: unknown = {}) => request<T>('POST', path, body),
  patch: <T>(path: string, body: unknown) => request<T>('PATCH', path, body),
  delete: <T>(path: string) => request<T>('DELETE', path),
}

export function sessionPath(key: string, rest = ''): string {
  return `/api/sessions/${encodeURIComponent(key)}${rest}`
}

export function query(fields: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== '' && value !== false) search.set(name, value === true ? '1' : String(value))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
