import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import type { HttpListener, UpgradeRequest } from '../../../src/base/http.ts'
import { SocketRefused, type DialOptions } from '../../../src/base/sockets.ts'
import { nodeHttpServers } from '../../../src/platform/node-http-server.ts'
import { createWsDialer } from '../../../src/platform/ws-sockets.ts'
import { localhostTls } from '../../support/tls.ts'

const cleanups: (() => Promise<void>)[] = []
const never = new AbortController().signal
const options: DialOptions = { maxFrameBytes: 1_000, timeoutMs: 5_000 }
const dialer = createWsDialer()

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function serve(secure: boolean, seen: UpgradeRequest[] = [], status?: number): Promise<HttpListener> {
  const server = await nodeHttpServers.listen({
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 1_000,
    maxFrameBytes: 1_000,
    closeGraceMs: 100,
    ...(secure ? { tls: localhostTls } : {}),
    handle: async () => new Response('no'),
    upgrade(request) {
      seen.push(request)
      if (status === undefined) return { accept: true, opened: (socket) => socket.listen(silent) }
      return { accept: false, status, body: 'no', headers: { date: 'Thu, 01 Jan 2026 00:00:00 GMT' } }
    },
  })
  cleanups.push(() => server.close())
  return server
}

const silent = { onText: () => undefined, onPong: () => undefined, onClose: () => undefined }

const readAndIgnore = (socket: Socket): void => void socket.on('error', () => undefined).resume()

/** A peer that accepts and then says nothing. */
async function mute(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise((resolve) => server.close(() => resolve())))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

it('sends the given headers', async () => {
  const seen: UpgradeRequest[] = []
  const { port } = await serve(false, seen)
  const socket = await dialer.dial(
    `ws://127.0.0.1:${port}/link?uid=a`,
    { ...options, headers: { 'x-ts': '12' } },
    never,
  )
  expect(seen[0]?.headers.get('x-ts')).toBe('12')
  expect(seen[0]?.url.search).toBe('?uid=a')
  socket.terminate()
})

it('rejects with the status and the time of a peer that refuses', async () => {
  const { port } = await serve(false, [], 401)
  const refusal = await dialer.dial(`ws://127.0.0.1:${port}/`, options, never).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(SocketRefused)
  expect(refusal).toMatchObject({ status: 401, peerTime: Date.UTC(2026, 0, 1) })
})

it('passes on the errno of a peer that is not there', async () => {
  const server = await serve(false)
  await server.close()
  await expect(dialer.dial(`ws://127.0.0.1:${server.port}/`, options, never)).rejects.toMatchObject({
    code: 'ECONNREFUSED',
  })
})

describe.each([
  ['plain', 'ws', () => createServer(readAndIgnore)],
  ['TLS', 'wss', () => createServer(readAndIgnore)],
  ['HTTP over TLS', 'wss', () => createTlsServer({ ...localhostTls }, readAndIgnore)],
] as const)('a peer that never answers the %s handshake', (_name, scheme, createPeer) => {
  const tls = { tls: { verify: false } }

  it('is given up after the time limit', async () => {
    const port = await mute(createPeer())
    await expect(
      dialer.dial(`${scheme}://127.0.0.1:${port}/`, { ...options, ...tls, timeoutMs: 50 }, never),
    ).rejects.toThrow('no connection within 50 ms')
  })

  it('is given up when the caller aborts', async () => {
    const port = await mute(createPeer())
    const stop = new AbortController()
    const dialling = dialer.dial(`${scheme}://127.0.0.1:${port}/`, { ...options, ...tls }, stop.signal)
    stop.abort(new Error('changed my mind'))
    await expect(dialling).rejects.toThrow('changed my mind')
  })
})

it('does nothing when it was aborted before', async () => {
  await expect(dialer.dial('ws://127.0.0.1:1/', options, AbortSignal.abort(new Error('no')))).rejects.toThrow('no')
})

describe('over TLS', () => {
  const fingerprint = new X509Certificate(localhostTls.cert).fingerprint256

  it('refuses a certificate nobody vouches for', async () => {
    const seen: UpgradeRequest[] = []
    const { port } = await serve(true, seen)
    await expect(dialer.dial(`wss://localhost:${port}/`, options, never)).rejects.toMatchObject({
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    })
    expect(seen).toEqual([])
  })

  it('checks the name it was told to expect', async () => {
    const { port } = await serve(true)
    const trusting = createWsDialer({ ca: localhostTls.cert })
    const wrongName = { ...options, tls: { verify: true, servername: 'example.org' } }
    await expect(trusting.dial(`wss://127.0.0.1:${port}/`, wrongName, never)).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    const rightName = { ...options, tls: { verify: true, servername: 'localhost' } }
    const socket = await trusting.dial(`wss://127.0.0.1:${port}/`, rightName, never)
    expect(socket.isOpen).toBe(true)
    socket.terminate()
  })

  it('shows the fingerprint before the peer has seen a header', async () => {
    const seen: UpgradeRequest[] = []
    const { port } = await serve(true, seen)
    const checked: string[] = []
    const refusing = {
      ...options,
      tls: {
        verify: false,
        checkFingerprint(value: string) {
          checked.push(value)
          throw new Error('not the pinned one')
        },
      },
    }
    await expect(dialer.dial(`wss://127.0.0.1:${port}/`, refusing, never)).rejects.toThrow('not the pinned one')
    expect(checked).toEqual([fingerprint])
    expect(seen).toEqual([])
  })

  it('connects to an address without a name once the fingerprint is accepted', async () => {
    const { port } = await serve(true)
    const accepting = { ...options, tls: { verify: false, checkFingerprint: () => undefined } }
    const socket = await dialer.dial(`wss://127.0.0.1:${port}/`, accepting, never)
    expect(socket.isOpen).toBe(true)
    socket.terminate()
  })
})
