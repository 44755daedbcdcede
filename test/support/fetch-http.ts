import type { HttpClient } from '../../src/base/http.ts'

const NOTHING: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
}

/** Real requests through Node's own `fetch`, for tests against servers on loopback. */
export const fetchHttp: HttpClient = {
  async request({ method, url, headers, body }, signal) {
    const response = await fetch(url, {
      method,
      headers: { ...headers },
      signal,
      redirect: 'manual',
      ...(body !== undefined && { body }),
    })
    return { status: response.status, headers: response.headers, body: response.body ?? NOTHING }
  },
}
