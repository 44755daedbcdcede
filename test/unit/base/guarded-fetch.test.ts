import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { FetchRefused } from '../../../src/base/fetch-policy.ts'
import { guardedFetch, type GuardedFetchOptions } from '../../../src/base/guarded-fetch.ts'
import { HttpFailure } from '../../../src/base/http.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { ScriptedHttp, type ScriptedAnswer } from '../../support/scripted-http.ts'
import { never } from '../../support/tool-call.ts'

const start = 'https://example.com/'
const MIB = 1024 * 1024

function fetchWith(answers: Readonly<Record<string, ScriptedAnswer>>, options: Partial<GuardedFetchOptions> = {}) {
  const http = new ScriptedHttp(answers)
  const clock = new ManualClock()
  const result = guardedFetch(http, start, { clock, ...options }, never)
  result.catch(() => undefined)
  const reason = async (): Promise<string> => {
    const error: unknown = await result.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    return error instanceof FetchRefused ? error.reason : 'none'
  }
  return { http, clock, result, reason }
}

describe('the guarded fetch', () => {
  it('asks for public addresses only and says what it got', async () => {
    const { http, clock, result } = fetchWith({
      [start]: { body: ['hel', 'lo'], headers: { 'content-type': 'text/plain' } },
    })
    expect(await result).toMatchObject({ url: start, status: 200, mediaType: 'text/plain', cut: false, redirects: 0 })
    expect(new TextDecoder().decode((await result).bytes)).toBe('hello')
    expect(http.requests[0]?.publicOnly).toBe(true)
    expect([http.openBodies, clock.pending]).toEqual([0, 0])
  })

  it('follows three redirects, each checked, and closes what it leaves', async () => {
    const { http, result } = fetchWith({
      [start]: { status: 301, headers: { location: '/a' } },
      'https://example.com/a': { status: 302, headers: { location: 'https://example.org/b?token=1' } },
      'https://example.org/b?token=1': { status: 308, headers: { location: 'c' } },
      'https://example.org/c': { body: 'found' },
    })
    expect(await result).toMatchObject({ url: 'https://example.org/c', redirects: 3 })
    expect(http.openBodies).toBe(0)
    expect(http.requests.every((request) => request.publicOnly === true)).toBe(true)
  })

  it('shows the address without its query', async () => {
    const { result } = fetchWith({
      [start]: { status: 302, headers: { location: '/x?key=secret#f' } },
      'https://example.com/x?key=secret#f': { body: '' },
    })
    expect((await result).url).toBe('https://example.com/x')
  })

  it.each([
    ['http://example.com/', 'downgrade'],
    ['https://127.0.0.1/', 'address'],
    ['https://[::ffff:169.254.169.254]/', 'address'],
    ['https://2130706433/', 'address'],
    ['//localhost/', 'address'],
    ['file:///etc/passwd', 'scheme'],
    ['https://user:pw@example.org/', 'credentials'],
    ['https://example.org:22/', 'port'],
    ['https://[', 'invalid-url'],
  ])('does not follow a redirect to %s', async (location, reason) => {
    const fetching = fetchWith({ [start]: { status: 302, headers: { location } } })
    expect(await fetching.reason()).toBe(reason)
    expect(fetching.http.requests).toHaveLength(1)
    expect(fetching.http.openBodies).toBe(0)
  })

  it('gives up after too many redirects', async () => {
    const fetching = fetchWith({ [start]: { status: 302, headers: { location: start } } })
    expect(await fetching.reason()).toBe('redirects')
    expect(fetching.http.requests).toHaveLength(4)
  })

  it('keeps headers of the caller from other origins', async () => {
    const { http, result } = fetchWith(
      {
        [start]: { status: 302, headers: { location: 'https://example.org/' } },
        'https://example.org/': { body: '' },
      },
      { headers: { authorization: 'Bearer x' } },
    )
    await result
    expect(http.requests.map((request) => request.headers['authorization'])).toEqual(['Bearer x', undefined])
  })

  it('refuses what is too large, before reading it where the server says so', async () => {
    const declared = fetchWith({ [start]: { headers: { 'content-length': '11' }, body: 'x' } }, { maxBytes: 10 })
    expect(await declared.reason()).toBe('too-large')
    expect([declared.http.deliveredBytes, declared.http.openBodies]).toEqual([0, 0])
    const flood = Array.from({ length: 100 }, () => 'x'.repeat(10))
    const undeclared = fetchWith({ [start]: { body: flood } }, { maxBytes: 25 })
    expect(await undeclared.reason()).toBe('too-large')
    expect([undeclared.http.deliveredBytes, undeclared.http.openBodies]).toEqual([30, 0])
  })

  it('or keeps its beginning', async () => {
    const flood = Array.from({ length: 100 }, () => 'x'.repeat(10))
    const { http, result } = fetchWith({ [start]: { body: flood } }, { maxBytes: 25, oversize: 'cut' })
    expect(await result).toMatchObject({ cut: true })
    expect((await result).bytes).toHaveLength(25)
    expect([http.deliveredBytes, http.openBodies]).toEqual([30, 0])
  })

  it('cuts off a body that drips too slowly', async () => {
    const drip = new Promise<void>(() => undefined)
    const fetching = fetchWith({ [start]: { body: ['a', drip, 'b'] } }, { timeoutMs: 5_000 })
    await fetching.clock.advance(5_000)
    expect(await fetching.reason()).toBe('timeout')
    expect([fetching.http.openBodies, fetching.clock.pending]).toEqual([0, 0])
  })

  it('throws the reason of an abort', async () => {
    const turn = new AbortController()
    const http = new ScriptedHttp({ [start]: { body: [new Promise<void>(() => undefined)] } })
    const clock = new ManualClock()
    const result = guardedFetch(http, start, { clock }, turn.signal)
    turn.abort(new Error('cancelled'))
    await expect(result).rejects.toThrow('cancelled')
    expect([http.openBodies, clock.pending]).toEqual([0, 0])
  })

  it('unpacks what was packed against its wish, but no bombs', async () => {
    const headers = { 'content-encoding': 'gzip' }
    const { result } = fetchWith({ [start]: { headers, body: gzipSync('packed') } })
    expect(new TextDecoder().decode((await result).bytes)).toBe('packed')
    const bomb = fetchWith({ [start]: { headers, body: gzipSync(Buffer.alloc(2_000_000)) } }, { maxBytes: 10_000 })
    expect(await bomb.reason()).toBe('too-large')
    for (const [encoding, body] of [
      ['zstd', 'x'],
      ['gzip', 'not packed at all'],
    ] as const) {
      const broken = fetchWith({ [start]: { headers: { 'content-encoding': encoding }, body } })
      expect(await broken.reason()).toBe('encoding')
    }
  })

  it.each([
    ['gzip', gzipSync(Buffer.alloc(64 * MIB))],
    ['deflate', deflateSync(Buffer.alloc(64 * MIB))],
    ['br', brotliCompressSync(Buffer.alloc(64 * MIB))],
  ])('takes the beginning of a bomb packed with %s, and the loop turns meanwhile', async (encoding, body) => {
    let turns = 0
    const turn = (): void => {
      turns++
      next = setImmediate(turn)
    }
    let next = setImmediate(turn)
    const headers = { 'content-encoding': encoding }
    const { result } = fetchWith({ [start]: { headers, body } }, { maxBytes: 8 * MIB, oversize: 'cut' })
    const { bytes, cut } = await result
    clearImmediate(next)
    expect([bytes.length, cut]).toEqual([8 * MIB, true])
    // 16 KB to a piece.
    expect(turns).toBeGreaterThan(100)
  })

  it.each([
    [new HttpFailure('address-refused', 'secret detail'), 'address'],
    [new HttpFailure('first-byte-timeout', 'secret detail'), 'timeout'],
    [new HttpFailure('connect', 'secret detail', 'ECONNREFUSED'), 'network'],
    [new Error('secret detail'), 'network'],
  ])('reports a failure of the network (%o) as "%s", without its text', async (failure, reason) => {
    const fetching = fetchWith({ [start]: { failure } })
    expect(await fetching.reason()).toBe(reason)
    await expect(fetching.result).rejects.not.toThrow('secret detail')
  })

  it('fetches from allowed hosts only, where there is a list of them', async () => {
    const answers = { [start]: { status: 302, headers: { location: 'https://evil.org/' } } }
    expect(await fetchWith(answers, { allowHosts: ['*.example.com'] }).reason()).toBe('host')
    const fetching = fetchWith(answers, { allowHosts: ['EXAMPLE.com', '*.example.org'] })
    expect(await fetching.reason()).toBe('host')
    expect(fetching.http.requests).toHaveLength(1)
  })
})
