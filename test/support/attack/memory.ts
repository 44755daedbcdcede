import { randomBytes } from 'node:crypto'
import { answerTo, pause, rawRequest, require, requireServing, residentBytes, statusOf, type Attack } from './attack.ts'

const MIB = 1024 * 1024
const TOKEN = 'a-token-of-24-characters'

/** A masked frame of a client. */
function frame(
  opcode: number,
  payload: Uint8Array,
  options: { readonly claimed?: number; readonly fin?: boolean } = {},
): Buffer {
  const length = options.claimed ?? payload.length
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = (options.fin === false ? 0 : 0x80) | opcode
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (length >= 65_536) head.writeBigUInt64BE(BigInt(length), 2)
  else if (length >= 126) head.writeUInt16BE(length, 2)
  return Buffer.concat([head, Buffer.alloc(4), payload])
}

const upgrade = (port: number): string =>
  `GET /ws?uid=attacker HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`

export const memoryAttacks: readonly Attack[] = [
  {
    row: '6',
    title: 'pings to a peer that does not read fill the memory',
    async run(world) {
      const gateway = await world.start(await world.home())
      const before = await residentBytes(gateway)
      const socket = await world.raw(gateway.port, upgrade(gateway.port))
      socket.pause()
      const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(9, Buffer.alloc(125))))
      let sent = 0
      for (; sent < 400 && !socket.destroyed; sent++) {
        if (!socket.write(pings))
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), pause(500)])
        if (sent % 50 === 49) await requireServing(gateway, 'pings')
      }
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 100, `${sent * 1_000} pings: ${Math.round(grown)} MB more memory`)
      return `${sent * 1_000} pings, ${Math.round(grown)} MB more`
    },
  },
  {
    row: '7',
    title: 'bodies of strangers are read before the token is looked at',
    async run(world) {
      const gateway = await world.start(await world.home({ listen: { token: TOKEN } }))
      const before = await residentBytes(gateway, TOKEN)
      const body = Buffer.alloc(MIB - 1, 97)
      for (let count = 0; count < 150; count++) {
        const head = `POST /api/sessions/x/restore HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Length: ${MIB}\r\n\r\n`
        await world.raw(gateway.port, Buffer.concat([Buffer.from(head), body]))
      }
      await pause(2_000)
      await requireServing(gateway, 'bodies')
      const grown = ((await residentBytes(gateway, TOKEN)) - before) / MIB
      require(grown < 75, `150 bodies without a token: ${Math.round(grown)} MB more memory`)
      return `150 bodies of 1 MB without a token, ${Math.round(grown)} MB more`
    },
  },
  {
    row: '11',
    title: 'unfinished frames cost far more than their limit',
    async run(world) {
      const gateway = await world.start(await world.home())
      const before = await residentBytes(gateway)
      const connections = 60
      for (let count = 0; count < connections; count++) {
        const socket = await world.raw(gateway.port, upgrade(gateway.port))
        socket.resume()
        socket.write(frame(1, Buffer.alloc(3.9 * MIB, 97), { claimed: 4 * MIB - 100 }))
      }
      await pause(3_000)
      await requireServing(gateway, 'unfinished frames')
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < connections * 1.6 + 40, `${connections} unfinished frames: ${Math.round(grown)} MB more memory`)
      return `${connections} unfinished frames of 4 MB, ${Math.round(grown)} MB more`
    },
  },
  {
    row: '12',
    title: 'sessions without bound',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home({ limits: { sessions: 20 } }))
      const client = await gateway.connect('?uid=a')
      const codes: string[] = []
      for (let at = 0; at < 30; at++) {
        const answer = await answerTo(client, { id: `m${at}`, content: 'hello', session: `s${at}` })
        codes.push(String(answer['code'] ?? answer['type']))
      }
      const accepted = codes.filter((code) => code === 'complete').length
      require(accepted <= 20, `${accepted} sessions with limits.sessions 20`)
      return `30 sessions with limits.sessions 20: ${accepted} begun`
    },
  },
  {
    row: 'held',
    title: '10 000 upgrades',
    async run(world) {
      const gateway = await world.start(await world.home())
      const before = await residentBytes(gateway)
      let [opened, refused] = [0, 0]
      for (let batch = 0; batch < 100; batch++) {
        const statuses = await Promise.all(
          Array.from({ length: 100 }, async () => {
            const socket = await world.raw(gateway.port, upgrade(gateway.port))
            const head = await Promise.race([
              new Promise<string>((resolve) =>
                socket.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1'))),
              ),
              new Promise<string>((resolve) => socket.once('close', () => resolve(''))),
            ])
            if (statusOf(head) !== 101) socket.destroy()
            return statusOf(head)
          }),
        )
        opened += statuses.filter((status) => status === 101).length
        refused += statuses.filter((status) => status === 503).length
      }
      await requireServing(gateway, '10 000 upgrades')
      require(opened === 2_000, `${opened} connections are open with limits.connections 2 000`)
      require(refused === 8_000, `${refused} of 8 000 too many were refused with 503`)
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 200, `${Math.round(grown)} MB more memory`)
      return `10 000 upgrades: ${opened} open, ${refused} × 503, ${Math.round(grown)} MB more`
    },
  },
  {
    row: 'held',
    title: 'connections that never finish what they began',
    async run(world) {
      const gateway = await world.start(await world.home())
      const host = `Host: 127.0.0.1:${gateway.port}\r\n`
      const beginnings = [
        `GET /healthz HTTP/1.1\r\n${host}X-A: `,
        `GET /ws HTTP/1.1\r\n${host}Connection: Upgrade\r\n`,
        `POST /api/messages HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"content":`,
      ]
      const sockets = await Promise.all(
        Array.from({ length: 150 }, (_, at) => world.raw(gateway.port, beginnings[at % beginnings.length])),
      )
      for (const socket of sockets) socket.resume()
      const closed = Promise.all(
        sockets.map(
          (socket) => new Promise((resolve) => (socket.destroyed ? resolve(0) : socket.once('close', resolve))),
        ),
      )
      await requireServing(gateway, 'slow connections')
      const isOver = await Promise.race([closed.then(() => true), pause(100_000).then(() => false)])
      const left = sockets.filter((socket) => !socket.destroyed).length
      require(isOver, `${left} of ${sockets.length} slow connections are still open after 100 s`)
      await requireServing(gateway, 'slow connections')
      return `${sockets.length} unfinished heads, upgrades and bodies, all thrown out`
    },
  },
  {
    row: 'held',
    title: 'odd frames, fragments and endless heads',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const odd: Buffer[] = [
        frame(2, Buffer.from('{"id":"1","content":"binary"}')),
        frame(3, Buffer.from('reserved')),
        frame(1, Buffer.from([0xff, 0xfe])),
        frame(0, Buffer.from('a continuation of nothing')),
        frame(9, Buffer.alloc(126)),
        frame(1, Buffer.alloc(0), { claimed: 2 ** 40 }),
        Buffer.from([0x81, 0x05, 1, 2, 3, 4, 5]),
        Buffer.from([0xf1, 0x80, 0, 0, 0, 0]),
      ]
      for (const bytes of odd) await world.raw(gateway.port, Buffer.concat([Buffer.from(upgrade(gateway.port)), bytes]))
      const fragments = await world.raw(gateway.port, upgrade(gateway.port))
      fragments.write(
        Buffer.concat([
          frame(1, Buffer.from('a'), { fin: false }),
          ...Array.from({ length: 100_000 }, () => frame(0, Buffer.alloc(0), { fin: false })),
        ]),
      )
      for (let count = 0; count < 50; count++)
        await world.raw(gateway.port, `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nX-A: `)
      const long = await rawRequest(
        world,
        gateway.port,
        `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`,
      )
      require([400, 431].includes(statusOf(long)), `a head of 100 KB was answered with ${statusOf(long)}`)
      await requireServing(gateway, 'odd frames')
      return `${odd.length} odd frames, 100 000 empty fragments, 50 unfinished heads`
    },
  },
  {
    row: 'held',
    title: 'a flood of malformed frames on one connection',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const client = await gateway.connect('?uid=flood')
      for (let at = 0; at < 5_000; at++) client.send('{"no')
      const other = await gateway.connect('?uid=other')
      const answer = await answerTo(other, { id: '1', content: 'hello', session: 's' })
      require(answer['type'] === 'complete', 'others are not answered')
      require(gateway.output.length < 15_000, 'the log grows with every bad frame')
      return '5 000 malformed frames; others answered, log bounded'
    },
  },
]
