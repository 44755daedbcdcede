import { describe, it } from 'vitest'
import { deferred } from '../../src/base/async.ts'
import type { Socket } from '../../src/base/sockets.ts'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import { createWsDialer } from '../../src/platform/ws-sockets.ts'
import { describeSockets, type SocketPair } from '../../src/testing/contracts/sockets.ts'
import { linkedSockets } from '../../src/testing/linked-sockets.ts'
import { localhostTls } from '../support/tls.ts'

async function overLoopback(secure: boolean): Promise<SocketPair> {
  const accepted = deferred<Socket>()
  const server = await nodeHttpServers.listen({
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 1_000,
    maxFrameBytes: 1_000_000,
    ...(secure ? { tls: localhostTls } : {}),
    handle: async () => new Response('no'),
    upgrade: () => ({ accept: true, opened: (socket) => accepted.resolve(socket) }),
  })
  const dialer = createWsDialer(secure ? { ca: localhostTls.cert } : {})
  const left = await dialer.dial(
    `${secure ? 'wss' : 'ws'}://${secure ? 'localhost' : '127.0.0.1'}:${server.port}/ws`,
    { maxFrameBytes: 1_000_000, timeoutMs: 5_000 },
    new AbortController().signal,
  )
  return { left, right: await accepted.promise, close: () => server.close() }
}

describeSockets({ describe, it }, 'ws sockets', () => overLoopback(false))
describeSockets({ describe, it }, 'ws sockets over TLS', () => overLoopback(true))
describeSockets({ describe, it }, 'linked sockets', async () => {
  const [left, right] = linkedSockets()
  return { left, right, close: async () => undefined }
})
