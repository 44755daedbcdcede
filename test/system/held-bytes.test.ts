import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { startGateway, type RunningGateway } from '../../src/app/library.ts'

const KIB = 1024
const MIB = 1024 * KIB
const TOKEN = 'held-bytes-test-token'

let cleanups: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.toReversed()) await cleanup()
  cleanups = []
})

async function start(limits: Record<string, number>): Promise<RunningGateway> {
  const home = await mkdtemp(join(tmpdir(), 'clew-held-'))
  const gateway = await startGateway({
    home,
    config: { listen: { token: TOKEN, port: 0 }, limits, model: 'demo' },
    env: {},
  })
  cleanups.push(() => rm(home, { recursive: true, force: true }))
  cleanups.push(() => gateway.stop())
  return gateway
}

async function held(gateway: RunningGateway): Promise<Record<string, number>> {
  const response = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
  const rows = [...(await response.text()).matchAll(/^clew_held_bytes\{kind="(\w+)"\} (\d+)$/gmu)]
  return Object.fromEntries(rows.map(([, kind = '', bytes]) => [kind, Number(bytes)]))
}

function open(gateway: RunningGateway, first: string | Buffer): Socket {
  const socket = connect(gateway.port, '127.0.0.1', () => socket.write(first))
  socket.on('error', () => undefined)
  cleanups.push(() => void socket.destroy())
  return socket
}

function upgrade(query = ''): string {
  const key = Buffer.alloc(16).toString('base64')
  return `GET /ws?token=${TOKEN}${query} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`
}

/** A masked frame as a client sends it; the mask is zero. */
function frame(opcode: number, length: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(length < 126 ? 6 : 14)
  head[0] = 0x80 | opcode
  if (length < 126) head[1] = 0x80 | length
  else {
    head[1] = 0xff
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}

function opened(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('data', () => resolve()))
}

function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

/** Each with one message; the frames that answer them. */
async function beginConversations(gateway: RunningGateway, count: number): Promise<Record<string, unknown>[]> {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws?token=${TOKEN}&uid=u`)
  cleanups.push(() => socket.terminate())
  await new Promise((resolve) => socket.on('open', resolve))
  const frames: Record<string, unknown>[] = []
  const enough = new Promise((resolve) =>
    socket.on('message', (data: Buffer) => {
      frames.push(JSON.parse(data.toString()) as Record<string, unknown>)
      if (frames.length === count) resolve(undefined)
    }),
  )
  for (let id = 0; id < count; id++) socket.send(JSON.stringify({ id, content: 'hello' }))
  await enough
  return frames
}

describe('what is held for clients has a ceiling:', () => {
  it('pongs to a client that never reads', async () => {
    const gateway = await start({
      frames_per_second: 1_000_000,
      frames_burst: 1_000_000,
      reply_buffer_bytes: 256 * KIB,
    })
    const socket = open(gateway, upgrade())
    await opened(socket)
    socket.pause()
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(0x9, 125, Buffer.alloc(125))))
    let most = 0
    const gone = ended(socket)
    let isGone = false
    void gone.then(() => (isGone = true))
    for (let round = 0; round < 200 && !isGone; round++) {
      if (!socket.write(pings)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), gone])
      if (round % 20 === 0) most = Math.max(most, (await held(gateway))['unsent'] ?? 0)
    }
    expect(most).toBeLessThanOrEqual(256 * KIB + 1_000)
    expect((await held(gateway))['unsent']).toBeLessThanOrEqual(256 * KIB + 1_000)
  })

  it('answers to a client that never reads', async () => {
    const gateway = await start({ reply_buffer_bytes: 64 * KIB, frames_per_second: 10_000, frames_burst: 10_000 })
    await beginConversations(gateway, 200)
    const socket = open(gateway, upgrade('&uid=deaf'))
    await opened(socket)
    socket.pause()
    let isGone = false
    void ended(socket).then(() => (isGone = true))
    const list = Buffer.from('{"type":"session.list"}')
    let most = 0
    // The system takes some megabytes before anything waits here.
    for (let count = 0; count < 2_000 && !isGone; count++) {
      socket.write(frame(0x1, list.length, list))
      if (count % 20 === 19) most = Math.max(most, (await held(gateway))['unsent'] ?? 0)
    }
    expect(most).toBeGreaterThan(0)
    // The list that goes beyond the limit is still written.
    expect(most).toBeLessThanOrEqual(64 * KIB + 128 * KIB)
  }, 60_000)

  it('bodies of strangers are not read, those of clients only as far as all together may take', async () => {
    const gateway = await start({ bodies_bytes: MIB })
    const path = '/api/sessions/none/restore'
    const head = (token: string): string =>
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: ${MIB}\r\n\r\n`
    const strangers = Array.from({ length: 30 }, () => open(gateway, `${head('wrong')}${'x'.repeat(600 * KIB)}`))
    await Promise.all(strangers.map(opened))
    expect((await held(gateway))['bodies']).toBe(0)
    const clients = Array.from({ length: 5 }, () => open(gateway, `${head(TOKEN)}${'x'.repeat(600 * KIB)}`))
    const answers = clients.map(
      (socket) => new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString()))),
    )
    expect(await Promise.race(answers)).toContain('503')
    expect((await held(gateway))['bodies']).toBeLessThanOrEqual(MIB)
    for (const socket of clients) socket.destroy()
  })

  it('frames that never end', async () => {
    const gateway = await start({ unfinished_bytes: 2 * MIB })
    const sockets = Array.from({ length: 8 }, () => open(gateway, upgrade()))
    await Promise.all(sockets.map(opened))
    const gone = Promise.race(sockets.map(ended))
    for (const socket of sockets) socket.write(frame(0x1, MIB, Buffer.alloc(600 * KIB)))
    await gone
    expect((await held(gateway))['unfinished']).toBeLessThanOrEqual(2 * MIB)
  })

  it('conversations', async () => {
    const gateway = await start({ sessions: 20 })
    const frames = await beginConversations(gateway, 60)
    expect(frames.filter(({ type }) => type === 'complete')).toHaveLength(20)
    expect(frames.filter(({ code }) => code === 'SESSION_LIMIT')).toHaveLength(40)
    const status = await gateway.status()
    expect(status['sessions']).toBe(20)
  })
})
