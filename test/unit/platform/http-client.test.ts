import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import { HttpFailure, type HttpRequest } from '../../../src/base/http.ts'
import {
  guardLookup,
  isPublicAddress,
  isRefusedLiteral,
  createHttpClient,
  type HttpClientOptions,
} from '../../../src/platform/undici-http-client.ts'

const NEVER = new AbortController().signal
const connections = new EventEmitter()
const closers: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

type Handler = (request: IncomingMessage, response: ServerResponse) => void

async function serve(handler: Handler): Promise<{ url: string; server: Server; sockets: Set<Socket> }> {
  const server = createServer(handler)
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    connections.emit('change')
    socket.on('close', () => {
      sockets.delete(socket)
      connections.emit('change')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, server, sockets }
}

/** Accepts connections and says no word of HTTP. */
async function silentTcp(greet?: (socket: Socket) => void): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    greet?.(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

function client(options: HttpClientOptions = {}): ReturnType<typeof createHttpClient> {
  const http = createHttpClient(options)
  closers.push(() => http.close())
  return http
}

function get(url: string, extra: Partial<HttpRequest> = {}): HttpRequest {
  const limits = { connectTimeoutMs: 5000, firstByteTimeoutMs: 5000, idleTimeoutMs: 5000 }
  return { method: 'GET', url, headers: {}, ...limits, ...extra }
}

async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Looks again whenever a connection to a server of this file begins or ends. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await once(connections, 'change')
}

/** Requests to another server: the same event loop answers them, so what else is under way goes on between them. */
async function exchanges(count: number): Promise<void> {
  const { url } = await serve((_request, response) => response.end('ok'))
  const http = client()
  for (let requests = 0; requests < count; requests++) await text((await http.request(get(url), NEVER)).body)
}

describe('the HTTP client', () => {
  it('sends method, headers and body, and gives status, headers and bytes back', async () => {
    const { url } = await serve((request, response) => {
      void text(request).then((body) => {
        response.writeHead(207, { 'x-echo': String(request.headers['x-in']), 'set-cookie': ['a=1', 'b=2'] })
        response.end(`${request.method} ${request.url} ${body}`)
      })
    })
    const request = get(`${url}path?q=1`, { method: 'POST', headers: { 'x-in': 'yes' }, body: '中文' })
    const { status, headers, body } = await client().request(request, NEVER)
    expect([status, headers.get('x-echo'), headers.getSetCookie()]).toEqual([207, 'yes', ['a=1', 'b=2']])
    expect(await text(body)).toBe('POST /path?q=1 中文')
  })

  it('uses a connection again after an answer was read to its end', async () => {
    const ports = new Set<number | undefined>()
    const { url } = await serve((request, response) => {
      ports.add(request.socket.remotePort)
      response.end('ok')
    })
    const http = client()
    for (let request = 0; request < 6; request++) await text((await http.request(get(url), NEVER)).body)
    // The very next request may come before undici has put the connection back.
    expect(ports.size).toBeLessThanOrEqual(2)
  })

  it('does not follow redirects', async () => {
    const { url } = await serve((_request, response) => response.writeHead(302, { location: '/elsewhere' }).end())
    const { status, headers, body } = await client().request(get(url), NEVER)
    await text(body)
    expect([status, headers.get('location')]).toEqual([302, '/elsewhere'])
  })

  it('says when nobody listens', async () => {
    const { url, server } = await serve((_request, response) => response.end())
    server.close()
    await once(server, 'close')
    closers.pop()
    await expect(client().request(get(url), NEVER)).rejects.toMatchObject({ kind: 'connect', code: 'ECONNREFUSED' })
  })

  it('says when a connection is not made in time', async () => {
    const { port } = await silentTcp()
    const request = get(`https://127.0.0.1:${port}/`, { connectTimeoutMs: 30 })
    await expect(client().request(request, NEVER)).rejects.toMatchObject({ kind: 'connect-timeout' })
  })

  it('says when the first byte does not come in time, and closes', async () => {
    const { url, sockets } = await serve(() => undefined)
    await expect(client().request(get(url, { firstByteTimeoutMs: 30 }), NEVER)).rejects.toMatchObject({
      kind: 'first-byte-timeout',
    })
    await until(() => sockets.size === 0)
  })

  it('says when the body falls silent, after handing out what came', async () => {
    const { url, sockets } = await serve((_request, response) => {
      response.write('some')
    })
    const { body } = await client().request(get(url, { idleTimeoutMs: 30 }), NEVER)
    const chunks: string[] = []
    const reading = (async () => {
      for await (const chunk of body) chunks.push(Buffer.from(chunk).toString())
    })()
    await expect(reading).rejects.toMatchObject({ kind: 'idle-timeout' })
    expect(chunks).toEqual(['some'])
    await until(() => sockets.size === 0)
  })

  it('does not take its own slowness for the silence of the peer', async () => {
    const { url } = await serve((_request, response) => response.end(Buffer.alloc(600_000, 120)))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { body } = await client({ maxBufferedBytes: 1000 }).request(get(url, { idleTimeoutMs: 40 }), NEVER)
      let bytes = 0
      for await (const chunk of body) {
        bytes += chunk.length
        if (bytes > chunk.length) continue
        await exchanges(50)
        vi.advanceTimersByTime(120)
      }
      expect(bytes).toBe(600_000)
    } finally {
      vi.useRealTimers()
    }
  })

  it('lets the peer wait while its answer is not read', async () => {
    let written = 0
    const { url } = await serve((_request, response) => {
      const block = Buffer.alloc(64 * 1024)
      const write = (): void => {
        while (written < 200 * 1024 * 1024) {
          written += block.length
          if (!response.write(block)) {
            response.once('drain', write)
            return
          }
        }
        response.end()
      }
      write()
    })
    const { body } = await client().request(get(url), NEVER)
    const reader = body[Symbol.asyncIterator]()
    await reader.next()
    await exchanges(200)
    expect(written).toBeLessThan(40 * 1024 * 1024)
    await reader.return?.()
  })

  it('tells a connection that ends early from an answer that ends', async () => {
    const { url } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('part', () => response.destroy())
    })
    const { body } = await client().request(get(url), NEVER)
    await expect(text(body)).rejects.toMatchObject({ kind: 'reset' })
  })

  it('says when the answer is not HTTP', async () => {
    const { port } = await silentTcp((socket) => socket.write('SSH-2.0-OpenSSH\r\n'))
    await expect(client().request(get(`http://127.0.0.1:${port}/`), NEVER)).rejects.toMatchObject({ kind: 'invalid' })
  })

  it.each(['ftp://host/', 'nonsense', 'file:///etc/passwd'])('refuses %s', async (url) => {
    await expect(client().request(get(url), NEVER)).rejects.toMatchObject({ kind: 'invalid' })
  })

  it('never shows a header in a failure', async () => {
    const request = get('http://127.0.0.1:1/', { headers: { authorization: 'Bearer canary\nx' } })
    const failure: unknown = await client()
      .request(request, NEVER)
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(HttpFailure)
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain('canary')
  })
})

describe('aborting', () => {
  const reason = new Error('enough')

  it('before the request sends nothing', async () => {
    const { url, sockets } = await serve(() => undefined)
    await expect(client().request(get(url), AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(sockets.size).toBe(0)
  })

  it('while the server already has the connection gives the reason of the abort', async () => {
    const { url, sockets } = await serve(() => undefined)
    const abort = new AbortController()
    const waiting = client().request(get(url), abort.signal)
    await until(() => sockets.size === 1)
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await until(() => sockets.size === 0)
  })

  it('while waiting for the first byte closes the connection', async () => {
    const arrived = deferred()
    const { url, sockets } = await serve(() => arrived.resolve())
    const abort = new AbortController()
    const waiting = client().request(get(url), abort.signal)
    await arrived.promise
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await until(() => sockets.size === 0)
  })

  it('while a connection is being made sends nothing on it later', async () => {
    const { port } = await silentTcp()
    const abort = new AbortController()
    const waiting = client().request(get(`https://127.0.0.1:${port}/`), abort.signal)
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
  })

  it('in the middle of the body closes the connection and ends the read under way', async () => {
    const { url, sockets } = await serve((_request, response) => {
      response.write('data')
    })
    const abort = new AbortController()
    const { body } = await client().request(get(url), abort.signal)
    const reader = body[Symbol.asyncIterator]()
    await reader.next()
    const next = reader.next()
    abort.abort(reason)
    await expect(next).rejects.toBe(reason)
    await until(() => sockets.size === 0)
  })

  it('is what leaving the loop amounts to', async () => {
    const { url, sockets } = await serve((_request, response) => {
      response.write('data')
    })
    const { body } = await client().request(get(url), NEVER)
    for await (const _chunk of body) break
    await until(() => sockets.size === 0)
  })
})

describe('publicOnly', () => {
  const HOSTS = [
    '127.0.0.1', '127.1', '2130706433', '0x7f.1', '0x7f000001', '0177.0.0.1', '0.0.0.0', '[::1]', '[::]', '10.0.0.1',
    '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[fe80::1]',
    '[fc00::1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '198.18.0.1', '192.0.2.1', '224.0.0.1', '255.255.255.255',
  ] // prettier-ignore

  it.each(HOSTS)('refuses %s', async (host) => {
    const request = get(`http://${host}:9/`, { publicOnly: true })
    await expect(client().request(request, NEVER)).rejects.toMatchObject({ kind: 'address-refused' })
  })

  it('refuses a name that resolves to a private address', async () => {
    const { url } = await serve((_request, response) => response.end('secret'))
    const request = get(url.replace('127.0.0.1', 'localhost'), { publicOnly: true })
    await expect(client().request(request, NEVER)).rejects.toMatchObject({ kind: 'address-refused' })
  })

  it('never uses a connection somebody opened without the guard', async () => {
    const { url } = await serve((_request, response) => response.end('secret'))
    const http = client()
    await text((await http.request(get(url), NEVER)).body)
    await expect(http.request(get(url, { publicOnly: true }), NEVER)).rejects.toMatchObject({ kind: 'address-refused' })
  })

  it('refuses a name as soon as one of its answers is private', () => {
    type Lookup = Parameters<typeof guardLookup>[0]
    const answering = (...addresses: readonly string[]): Lookup =>
      ((_host: string, _options: unknown, callback: (error: null, found: unknown) => void) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        )) as unknown as Lookup
    const outcome = (...addresses: readonly string[]): string => {
      let seen = ''
      guardLookup(answering(...addresses))('host', { all: true }, (error, found) => {
        seen = error === null ? JSON.stringify(found) : error.message
      })
      return seen
    }
    expect(outcome('93.184.216.34', '10.0.0.1')).toContain('not public')
    expect(outcome()).toContain('not public')
    expect(outcome('93.184.216.34', '2606:2800:220:1::1')).toContain('93.184.216.34')
  })

  it.each(['93.184.216.34', '8.8.8.8', '2606:4700:4700::1111'])('knows %s as public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
    expect(isRefusedLiteral(address)).toBe(false)
  })

  it.each(['', 'host', '::1%lo', '999.1.1.1', 'fe80::1%eth0'])('takes %j for no public address', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})
