import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { createHttpFetch } from '../../../src/tool/mcp/http-fetch.ts'
import { ScriptedHttp, type ScriptedAnswer } from '../../support/scripted-http.ts'

const url = 'https://example.com/mcp'

function open(answer: ScriptedAnswer, clock = new ManualClock()) {
  const http = new ScriptedHttp({ [url]: answer })
  const flood = { maxBytes: 100, maxMessages: 10 }
  return { http, clock, fetch: createHttpFetch({ http, clock, timeoutMs: 1_000, maxAnswerBytes: 20, flood }) }
}

describe('HTTP for MCP servers', () => {
  it('carries method, headers and body, and streams the answer', async () => {
    const { http, fetch } = open({ body: ['he', 'llo'], headers: { 'mcp-session-id': 's1' } })
    const response = await fetch(url, { method: 'POST', body: '{}', headers: { authorization: 'x' } })
    expect([response.status, response.headers.get('mcp-session-id'), await response.text()]).toEqual([
      200,
      's1',
      'hello',
    ])
    expect(http.requests[0]).toMatchObject({ method: 'POST', body: '{}', headers: { authorization: 'x' } })
    expect(http.openBodies).toBe(0)
  })

  it('does not read more of an answer than it may have', async () => {
    const { http, fetch } = open({ body: Array.from({ length: 50 }, () => 'x'.repeat(10)) })
    const response = await fetch(url, { method: 'POST', body: '{}' })
    await expect(response.text()).rejects.toThrow('the server sends too much')
    expect([http.deliveredBytes, http.openBodies]).toEqual([30, 0])
  })

  it('lets a stream of notifications go on, but not flood', async () => {
    const { http, fetch } = open({ body: Array.from({ length: 50 }, () => 'x'.repeat(10)) })
    const response = await fetch(url, { method: 'GET' })
    await expect(response.text()).rejects.toThrow('the server sends too much')
    expect([http.deliveredBytes, http.openBodies]).toEqual([110, 0])
  })

  it('closes what nobody reads any more', async () => {
    const { http, fetch } = open({ body: ['a', 'b', 'c'] })
    const response = await fetch(url)
    await response.body?.cancel()
    expect(http.openBodies).toBe(0)
  })

  it('knows answers without a body', async () => {
    const { fetch } = open({ status: 204 })
    expect((await fetch(url, { method: 'DELETE' })).body).toBeNull()
  })
})
