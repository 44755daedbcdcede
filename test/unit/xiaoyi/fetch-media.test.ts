import { expect, test } from 'vitest'
import { FetchRefused } from '../../../src/base/fetch-policy.ts'
import type { HttpClient } from '../../../src/base/http.ts'
import { createMediaFetch } from '../../../src/channel/xiaoyi/fetch-media.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const OPTIONS = { maxBytes: 100, timeoutMs: 1_000, allowHosts: [] as readonly string[] }
const never = new AbortController().signal

/** Answers by host; everything asked for is remembered. */
function web(answers: Readonly<Record<string, { status: number; headers?: Record<string, string> }>>) {
  const asked: string[] = []
  const http: HttpClient = {
    request: async ({ url }) => {
      asked.push(url)
      const { status, headers = {} } = answers[new URL(url).hostname] ?? { status: 404 }
      async function* body(): AsyncGenerator<Uint8Array> {
        yield new TextEncoder().encode('hello')
      }
      return { status, headers: new Headers(headers), body: body() }
    },
  }
  return { asked, fetchMedia: createMediaFetch(http, new ManualClock()) }
}

test('a file over https is fetched with its type', async () => {
  const { fetchMedia } = web({ 'obs.example.com': { status: 200, headers: { 'content-type': 'text/markdown' } } })
  const { bytes, mimeType } = await fetchMedia('https://obs.example.com/a.md?sig=1', OPTIONS, never)
  expect([new TextDecoder().decode(bytes), mimeType]).toEqual(['hello', 'text/markdown'])
})

test.each([
  'http://obs.example.com/a',
  'https://127.0.0.1/a',
  'https://[::1]/a',
  'https://10.0.0.1/a',
  'file:///etc/passwd',
  'nonsense',
])('%s is not even asked for', async (url) => {
  const { asked, fetchMedia } = web({ 'obs.example.com': { status: 200 } })
  await expect(fetchMedia(url, OPTIONS, never)).rejects.toBeInstanceOf(FetchRefused)
  expect(asked).toEqual([])
})

test('the operator’s hosts are the only ones, at every hop of a redirect', async () => {
  const allowHosts = ['*.myhuaweicloud.com', 'files.example.com']
  const { fetchMedia, asked } = web({
    'a.obs.myhuaweicloud.com': { status: 200 },
    'files.example.com': { status: 302, headers: { location: 'https://elsewhere.example.com/x' } },
    'elsewhere.example.com': { status: 200 },
  })
  await fetchMedia('https://a.obs.myhuaweicloud.com/f', { ...OPTIONS, allowHosts }, never)
  await expect(fetchMedia('https://myhuaweicloud.com/f', { ...OPTIONS, allowHosts }, never)).rejects.toThrow(
    'this host',
  )
  await expect(fetchMedia('https://evilmyhuaweicloud.com/f', { ...OPTIONS, allowHosts }, never)).rejects.toThrow(
    'this host',
  )
  await expect(fetchMedia('https://files.example.com/f', { ...OPTIONS, allowHosts }, never)).rejects.toThrow(
    'this host',
  )
  // Not even asked, although what it would have said is not used.
  expect(asked.map((url) => new URL(url).hostname)).toEqual(['a.obs.myhuaweicloud.com', 'files.example.com'])
})

test('anything but 200 is no file', async () => {
  const { fetchMedia } = web({})
  await expect(fetchMedia('https://gone.example.com/a', OPTIONS, never)).rejects.toThrow('404')
})
