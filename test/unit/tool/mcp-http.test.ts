import { describe, expect, it } from 'vitest'
import type { HttpClient } from '../../../src/base/http.ts'
import { nodeCommands } from '../../../src/platform/node-commands.ts'
import { systemClock } from '../../../src/platform/system.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { createHttpFetch } from '../../../src/tool/mcp/http-fetch.ts'
import { openMcpServers } from '../../../src/tool/mcp/servers.ts'
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

describe('an MCP server over HTTP', () => {
  const problemOf = async (http: HttpClient): Promise<string | undefined> => {
    const servers = openMcpServers(
      {
        web: { url, start_timeout_ms: 1_500, timeout_ms: 1_500, headers: { authorization: 'Bearer top-secret-token' } },
      },
      { clock: systemClock, commands: nodeCommands, http, ids: new SeededIds(), workspace: '/', version: '0' },
    )
    try {
      await servers.settled()
      expect(servers.tools()).toEqual([])
      return servers.status()[0]?.reason
    } finally {
      await servers.close()
      expect(servers.status()[0]?.state).toBe('closed')
    }
  }

  it('that never answers does not hold up anybody', async () => {
    const silent: HttpClient = {
      request: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
    }
    expect(await problemOf(silent)).toBe('there was no answer within 1500 ms')
  })

  it('that ignores our signal does not hold up anybody either', async () => {
    expect(await problemOf({ request: () => new Promise(() => undefined) })).toBe('there was no answer within 1500 ms')
  })

  it.each([
    ['fails', { status: 500, body: 'secret detail' }],
    ['answers nonsense', { body: 'not json', headers: { 'content-type': 'application/json' } }],
    ['answers with a page', { body: '<html>', headers: { 'content-type': 'text/html' } }],
    ['answers with another protocol', { body: '{"hello": 1}', headers: { 'content-type': 'application/json' } }],
    ['repeats our key', { status: 401, body: 'bad token top-secret-token' }],
    ['cannot be reached', { failure: new Error('ECONNREFUSED') }],
  ])('that %s is a problem in its status, without our keys', async (_, answer) => {
    const problem = await problemOf(new ScriptedHttp({ [url]: answer }))
    expect(problem).toBeDefined()
    expect(problem).not.toContain('top-secret-token')
  })
})
