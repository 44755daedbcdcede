import { request as httpRequest } from 'node:http'
import { connect, type Socket as NetSocket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { deferred } from '../../../src/base/async.ts'
import type { HttpListener, ListenOptions } from '../../../src/base/http.ts'
import type { Socket } from '../../../src/base/sockets.ts'
import { nodeHttpServers } from '../../../src/platform/node-http-server.ts'

const open: HttpListener[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

async function listen(options: Partial<ListenOptions> = {}): Promise<HttpListener> {
  const server = await nodeHttpServers.listen({
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 1_000,
    maxFrameBytes: 1_000,
    closeGraceMs: 200,
    handle: async () => new Response('hello'),
    upgrade: () => ({ accept: false, status: 404, body: 'nothing here' }),
    ...options,
  })
  open.push(server)
  return server
}

/** Sends raw bytes and returns everything until the server ends the connection. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}

it('hands the handler a Web request and sends back its response', async () => {
  const { port } = await listen({
    handle: async (request, peer) =>
      Response.json(
        { method: request.method, path: new URL(request.url).pathname, body: await request.text(), peer: peer.address },
        {
          status: 201,
          headers: [
            ['set-cookie', 'a=1'],
            ['set-cookie', 'b=2'],
          ],
        },
      ),
  })
  const response = await fetch(`http://127.0.0.1:${port}/api/thing?x=1`, { method: 'POST', body: '你好' })
  expect(response.status).toBe(201)
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(await response.json()).toEqual({ method: 'POST', path: '/api/thing', body: '你好', peer: '127.0.0.1' })
})

it('streams a response piece by piece and tells the handler when the client leaves', async () => {
  const left = deferred()
  const { port } = await listen({
    handle: async (request) => {
      request.signal.addEventListener('abort', () => left.resolve())
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('data: 1\n\n'))
        },
        cancel: () => left.resolve(),
      })
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const stop = new AbortController()
  const response = await fetch(`http://127.0.0.1:${port}/events`, { signal: stop.signal })
  const first = await response.body?.getReader().read()
  expect(new TextDecoder().decode(first?.value)).toBe('data: 1\n\n')
  stop.abort()
  await left.promise
})

it('cancels a stream whose client left before there was an answer, and gives its body back', async () => {
  const cancelled = deferred()
  const server = await listen({
    handle: async (request) => {
      await request.text()
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      return new Response(new ReadableStream({ cancel: () => cancelled.resolve() }))
    },
  })
  const socket = connect(server.port, '127.0.0.1', () =>
    socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nhi'),
  )
  await expect.poll(() => server.held().bodies).toBe(2)
  socket.destroy()
  await cancelled.promise
  await expect.poll(() => server.held().bodies).toBe(0)
})

it('asks a stream for no more than a client that does not read can hold', async () => {
  const piece = new Uint8Array(64 * 1024)
  let pieces = 0
  const { port } = await listen({
    handle: async (request) =>
      request.url.endsWith('/meanwhile')
        ? new Response('served')
        : new Response(
            new ReadableStream({
              pull(controller) {
                if (++pieces > 1_000) controller.close()
                else controller.enqueue(piece)
              },
            }),
          ),
  })
  const client = connect(port, '127.0.0.1')
  client.pause()
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  for (let before = -1; before < 1 || before < pieces;) {
    before = pieces
    // A stream that is asked for more goes on while another request is served.
    await raw(port, 'GET /meanwhile HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  }
  expect(pieces).toBeLessThan(1_000)
  let bytes = 0
  client.on('data', (chunk) => (bytes += chunk.length))
  client.resume()
  await new Promise((resolve) => client.on('close', resolve))
  expect(bytes).toBeGreaterThan(1_000 * piece.length)
})

it('answers HEAD with headers only, and several requests on one connection', async () => {
  const { port } = await listen({ handle: async () => new Response('body', { headers: { 'x-a': '1' } }) })
  const answer = await raw(
    port,
    'HEAD /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  )
  expect(answer.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2)
  expect(answer.match(/x-a: 1/g)).toHaveLength(2)
  expect(answer.match(/body/g)).toHaveLength(1)
})

const reading: Partial<ListenOptions> = { handle: async (request) => new Response(await request.text()) }

it('answers 413 to a declared body over the limit without reading it', async () => {
  const { port } = await listen(reading)
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x'.repeat(1_001) })
  expect(response.status).toBe(413)
})

it('answers 413 to a chunked body as soon as it passes the limit', async () => {
  const { port } = await listen(reading)
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', method: 'POST' }, (response) => {
      resolve(response.statusCode)
      request.destroy()
    })
    request.on('error', reject)
    for (let piece = 0; piece < 30; piece++) request.write('x'.repeat(100))
  })
  expect(status).toBe(413)
})

it('asks for a body only after its declared size was checked', async () => {
  const { port } = await listen(reading)
  const head = 'POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length:'
  expect(await raw(port, `${head} 5000\r\n\r\n`)).toMatch(/^HTTP\/1.1 413 /)
  expect(await raw(port, `${head} 2\r\n\r\nhi`)).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK[^]*hi/)
})

it('reads nothing of a body that the handler does not ask for, and ends the connection', async () => {
  const server: HttpListener = await listen({
    handle: async () => new Response(`${server.held().bodies} held`, { status: 401 }),
  })
  const head = 'POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 900\r\n\r\n'
  const answer = await raw(server.port, head)
  expect(answer).toMatch(/^HTTP\/1.1 401 [^]*connection: close[^]*0 held/iu)
})

it('refuses with 503 what all bodies together may not hold, and has room again afterwards', async () => {
  const first = deferred()
  const server = await listen({
    maxBodiesBytes: 1_500,
    handle: async (request) => {
      const text = await request.text()
      if (text.startsWith('wait')) await first.promise
      return new Response(text)
    },
  })
  const post = (body: string): Promise<Response> => fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST', body })
  const waiting = post(`wait${'x'.repeat(900)}`)
  while (server.held().bodies < 904) await new Promise((resolve) => setImmediate(resolve))
  expect((await post('y'.repeat(900))).status).toBe(503)
  first.resolve()
  expect((await waiting).status).toBe(200)
  expect((await post('y'.repeat(900))).status).toBe(200)
  expect(server.held().bodies).toBe(0)
})

it('keeps the request target a path whatever the client writes into it', async () => {
  const { port } = await listen({ handle: async (request) => new Response(request.url) })
  expect(await raw(port, 'GET //evil.example/x HTTP/1.1\r\nhost: a.b:1\r\nconnection: close\r\n\r\n')).toContain(
    'http://a.b:1//evil.example/x',
  )
  for (const head of [
    'GET http://evil.example/ HTTP/1.1\r\nhost: a',
    'GET / HTTP/1.1\r\nhost: a/@b',
    'OPTIONS * HTTP/1.1\r\nhost: a',
  ]) {
    expect(await raw(port, `${head}\r\nconnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /)
  }
})

it('answers 500 without details when the handler throws, and 405 to TRACE', async () => {
  const { port } = await listen({
    handle: async () => {
      throw new Error('the secret is 42')
    },
  })
  const response = await fetch(`http://127.0.0.1:${port}/`)
  expect([response.status, await response.text()]).toEqual([500, 'internal error'])
  expect(await raw(port, 'TRACE / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 405 /)
})

it('refuses an upgrade with exactly the status, body and headers decided', async () => {
  const { port } = await listen({
    upgrade: ({ url, headers, peer }) => ({
      accept: false,
      status: 403,
      body: JSON.stringify({ path: url.pathname, origin: headers.get('origin'), from: peer.address }),
      headers: { 'x-why': 'origin' },
    }),
  })
  const answer = await raw(
    port,
    'GET /ws HTTP/1.1\r\nhost: a\r\norigin: http://evil.example\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  )
  expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/)
  expect(answer).toContain('content-type: application/json\r\n')
  expect(answer).toContain('x-why: origin\r\n')
  expect(answer).toMatch(/\r\n\r\n\{"path":"\/ws","origin":"http:\/\/evil.example","from":"127.0.0.1"\}$/)
})

it('refuses upgrades to anything but websocket, and survives a decision that throws', async () => {
  const { port } = await listen({
    upgrade: () => {
      throw new Error('no')
    },
  })
  const head = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade:'
  expect(await raw(port, `${head} h2c\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /)
  expect(await raw(port, `${head} websocket\r\n\r\n`)).toMatch(/^HTTP\/1.1 500 /)
  expect(await raw(port, `${head} websocket\r\n\r\n`)).toMatch(/^HTTP\/1.1 500 /)
})

it('closes a socket with 1009 when a frame is over the limit', async () => {
  const serverSide = deferred<number>()
  const { port } = await listen({
    upgrade: () => ({ accept: true, opened: (socket) => socket.listen(closing((code) => serverSide.resolve(code))) }),
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}/`)
  const clientSide = new Promise<number>((resolve) => client.on('close', resolve))
  client.on('open', () => client.send('x'.repeat(1_001)))
  expect(await clientSide).toBe(1009)
  expect(await serverSide.promise).toBe(1009)
})

it('ends only the socket whose frame sets off a defect', async () => {
  const ends: number[] = []
  const { port } = await listen({
    upgrade: () => ({
      accept: true,
      opened: (socket) =>
        socket.listen({
          onText: (text) => {
            if (text === 'bad') throw new Error('a defect')
            void socket.send(text)
          },
          onPong: () => undefined,
          onClose: (code) => ends.push(code),
        }),
    }),
  })
  const [sick, well] = [new WebSocket(`ws://127.0.0.1:${port}/`), new WebSocket(`ws://127.0.0.1:${port}/`)]
  sick.on('open', () => sick.send('bad'))
  expect(await new Promise((resolve) => sick.on('close', resolve))).toBe(1011)
  const echo = new Promise((resolve) => well.on('message', (data: Buffer) => resolve(data.toString())))
  if (well.readyState === WebSocket.OPEN) well.send('hello')
  else well.on('open', () => well.send('hello'))
  expect(await echo).toBe('hello')
  expect(ends).toEqual([1011])
  well.terminate()
})

it('asks whether a ping is to be answered, and answers it with its own payload', async () => {
  const asked: number[] = []
  const { port } = await listen({
    upgrade: () => ({
      accept: true,
      opened: (socket) => socket.listen({ ...closing(), onPing: () => asked.push(1) < 2 }),
    }),
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}/`)
  const pongs: string[] = []
  client.on('pong', (payload) => pongs.push(payload.toString()))
  client.on('open', () => {
    for (const name of ['one', 'two', 'three']) client.ping(name)
    client.close()
  })
  await new Promise((resolve) => client.on('close', resolve))
  expect(pongs).toEqual(['one'])
  expect(asked).toHaveLength(3)
})

it('ends the socket whose unfinished frame is more than all of them may hold', async () => {
  const server = await listen({
    maxFrameBytes: 100_000,
    maxUnfinishedBytes: 150_000,
    upgrade: () => ({ accept: true, opened: (socket) => socket.listen(closing()) }),
  })
  const begin = (): Promise<{ socket: NetSocket; closed: Promise<unknown> }> =>
    new Promise((resolve) => {
      const key = Buffer.alloc(16).toString('base64')
      const head = `GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`
      const socket = connect(server.port, '127.0.0.1', () => socket.write(head))
      const closed = new Promise((done) => socket.on('close', done))
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.resume()
        // The head of a masked text frame of 90 000 bytes, and most of them.
        socket.write(
          Buffer.concat([Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 1, 0x5f, 0x90, 0, 0, 0, 0]), Buffer.alloc(80_000)]),
        )
        resolve({ socket, closed })
      })
    })
  const first = await begin()
  while (server.held().unfinished < 80_000) await new Promise((resolve) => setImmediate(resolve))
  const second = await begin()
  await second.closed
  expect(server.held().unfinished).toBeLessThanOrEqual(150_000)
  expect(first.socket.destroyed).toBe(false)
  first.socket.destroy()
})

it('closes a socket with 1003 when a frame is binary', async () => {
  const { port } = await listen({ upgrade: () => ({ accept: true, opened: (socket) => socket.listen(closing()) }) })
  const client = new WebSocket(`ws://127.0.0.1:${port}/`)
  client.on('open', () => client.send(Buffer.from([1, 2])))
  expect(await new Promise((resolve) => client.on('close', resolve))).toBe(1003)
})

it('reports a port that is taken as EADDRINUSE', async () => {
  const { port } = await listen()
  await expect(listen({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

it('ends sockets, streams and idle connections when it closes, and takes no new ones', async () => {
  const accepted = deferred<Socket>()
  const server = await listen({
    handle: async () => new Response(new ReadableStream()),
    upgrade: () => ({ accept: true, opened: (socket) => accepted.resolve(socket) }),
  })
  const { port } = server
  const client = new WebSocket(`ws://127.0.0.1:${port}/`)
  const clientClosed = new Promise<number>((resolve) => client.on('close', resolve))
  const serverClosed = deferred<number>()
  ;(await accepted.promise).listen(closing((code) => serverClosed.resolve(code)))
  const stream = await fetch(`http://127.0.0.1:${port}/forever`)
  const idle = connect(port, '127.0.0.1')
  const idleEnded = new Promise((resolve) => idle.on('close', resolve))
  idle.on('error', () => undefined)
  await Promise.all([server.close(), server.close()])
  expect(await clientClosed).toBe(1001)
  expect(await serverClosed.promise).toBe(1001)
  await expect(stream.text()).rejects.toThrow('terminated')
  await idleEnded
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed')
})

function closing(onClose: (code: number) => void = () => undefined): Parameters<Socket['listen']>[0] {
  return { onText: () => undefined, onPong: () => undefined, onClose }
}

it('closes connections beyond its limit and serves those it has', async () => {
  const { port } = await listen({ maxConnections: 2 })
  const kept: NetSocket[] = []
  for (let count = 0; count < 2; count++) {
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    kept.push(socket)
  }
  const refused = connect(port, '127.0.0.1')
  refused.on('error', () => undefined)
  await new Promise((resolve) => refused.once('close', resolve))
  const [first] = kept
  const answer = new Promise<string>((resolve) => first?.once('data', (bytes) => resolve(bytes.toString())))
  first?.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  expect(await answer).toContain('200 OK')
  for (const socket of kept) socket.destroy()
})
