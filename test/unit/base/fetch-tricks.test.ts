import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FetchRefused } from '../../../src/base/fetch-policy.ts'
import { guardedFetch } from '../../../src/base/guarded-fetch.ts'
import { HttpFailure } from '../../../src/base/http.ts'
import { systemClock } from '../../../src/platform/system.ts'
import { type ClosableHttpClient, createHttpClient } from '../../../src/platform/undici-http-client.ts'
import { never } from '../../support/tool-call.ts'

/** Ways to write this machine; each reaches the server below when nobody guards it. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.1',
  '0177.0.0.1',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  'localhost',
  'localhost.',
]

describe('a server on this machine', () => {
  let server: Server
  let http: ClosableHttpClient
  let port: number
  let reached = 0

  beforeAll(async () => {
    http = createHttpClient()
    server = createServer((_request, response) => response.end('inside'))
    server.on('connection', () => reached++)
    await new Promise<void>((resolve) => server.listen(0, '::', resolve))
    const address = server.address()
    port = typeof address === 'object' && address !== null ? address.port : 0
  })
  afterAll(async () => {
    await http.close()
    await new Promise((resolve) => server.close(resolve))
  })

  it.each(HOSTS)('is not reached by fetching %s', async (host) => {
    const fetching = guardedFetch(http, `http://${host}:${port}/`, { clock: systemClock, ports: [port] }, never)
    await expect(fetching).rejects.toBeInstanceOf(FetchRefused)
    expect(reached).toBe(0)
  })

  it.each(HOSTS)('is not reached through the socket guard alone by %s', async (host) => {
    const limits = { connectTimeoutMs: 5_000, firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 }
    const request = { method: 'GET', url: `http://${host}:${port}/`, headers: {}, ...limits, publicOnly: true }
    await expect(http.request(request, never)).rejects.toBeInstanceOf(HttpFailure)
    expect(reached).toBe(0)
  })
})
