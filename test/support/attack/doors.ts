import type { RequestListener } from 'node:http'
import type { BuiltGateway } from '../built-gateway.ts'
import {
  FETCHABLE_PORTS,
  listenOn,
  pause,
  rawRequest,
  require,
  requireServing,
  residentBytes,
  statusOf,
  type Attack,
} from './attack.ts'
import { openObedientModel } from './model.ts'

const MIB = 1024 * 1024
const TOKEN = 'a-token-of-24-characters'
const JSON_TYPE = { 'content-type': 'application/json', 'a2a-version': '1.0' }

/** Where a stranger can knock, with a body that is fine. */
const DOORS: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', '/v1/models'],
  ['POST', '/v1/chat/completions', { model: 'clew', messages: [{ role: 'user', content: 'hello' }] }],
  ['POST', '/v1/responses', { model: 'clew', input: 'hello' }],
  ['GET', '/v1/responses/resp_x'],
  ['POST', '/a2a', rpc('SendMessage', { message: message('hello') })],
  ['POST', '/a2a', rpc('ListTasks', {})],
  ['POST', '/a2a/v1/message:send', { message: message('hello') }],
  ['GET', '/a2a/v1/tasks'],
]

function message(text: string): object {
  return { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] }
}

function rpc(method: string, params: object): object {
  return { jsonrpc: '2.0', id: 1, method, params }
}

/** The status of one request, written by hand so that every header is what the attacker wants. */
async function knock(
  world: Parameters<Attack['run']>[0],
  gateway: BuiltGateway,
  [method, path, body]: (typeof DOORS)[number],
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const all = {
    host: `127.0.0.1:${gateway.port}`,
    ...JSON_TYPE,
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
    ...headers,
  }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return statusOf(await rawRequest(world, gateway.port, `${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n${text}`))
}

async function post(gateway: BuiltGateway, path: string, body: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', headers: JSON_TYPE, body })
  return { status: answer.status, text: await answer.text() }
}

export const doorAttacks: readonly Attack[] = [
  {
    row: 'held',
    title: 'the doors /v1 and /a2a for other pages, other names and wrong tokens',
    quick: true,
    async run(world) {
      const open = await world.start(await world.home())
      const closed = await world.start(await world.home({ listen: { token: TOKEN } }))
      for (const door of DOORS) {
        const name = `${door[0]} ${door[1]}`
        for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:1'])
          require((await knock(world, open, door, { origin })) === 403, `${name} answers a page of ${origin}`)
        const renamed = await knock(world, open, door, { host: 'evil.example' })
        require(renamed === 403 || renamed === 421, `${name} answers under another name (${renamed})`)
        for (const authorization of ['', 'Bearer ', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`]) {
          const status = await knock(world, closed, door, { authorization })
          require(status === 401 || status === 429, `${name} answers ${status} to "${authorization}"`)
        }
      }
      return `${DOORS.length} requests × 3 origins, another host name and 4 wrong tokens`
    },
  },
  {
    row: 'held',
    title: 'bodies that are too deep, too many or of other shapes at /v1 and /a2a',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const deep = '['.repeat(200_000)
      const bodies = [
        deep,
        `{"model":"clew","messages":${deep}`,
        `{"messages":[${'{"role":"user"},'.repeat(40_000)}{}]}`,
        `{"messages":[{"role":"user","content":[${'{"type":"text","text":""},'.repeat(20_000)}{}]}]}`,
        '{"__proto__":{"messages":[]},"constructor":{"prototype":1},"messages":[{"role":"__proto__","content":"x"}]}',
        '{"jsonrpc":"2.0","id":{"a":1},"method":"constructor","params":{"__proto__":1}}',
        `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"parts":[${'{"text":"x"},'.repeat(30_000)}{}]}}}`,
        'null',
        '"text"',
        '',
        '{"messages":[{"role":"user","content":null}]}',
        `{"model":"clew","messages":[{"role":"user","content":"hi"}],"tools":[${'{"type":"function"},'.repeat(30_000)}{}]}`,
        `{"model":"clew","input":[{"role":"user","content":"hi"}],"text":{"format":{"type":"json_schema","name":"x","schema":${'{"allOf":['.repeat(2_000)}{}${']}'.repeat(2_000)}}}}`,
      ]
      const paths = ['/v1/chat/completions', '/v1/responses', '/a2a', '/a2a/v1/message:send']
      for (const path of paths) {
        for (const body of bodies) {
          const answering = post(gateway, path, body.slice(0, MIB))
          await requireServing(gateway, path)
          const { status, text } = await answering
          require(status < 500, `${path} answered ${status} to ${body.slice(0, 40)}`)
          require(!text.includes('INTERNAL') && !text.includes('-32603'), `${path}: our defect: ${body.slice(0, 40)}`)
        }
      }
      return `${bodies.length} bodies × ${paths.length} addresses, none of them our defect`
    },
  },
  {
    row: 'held',
    title: 'addresses of this machine in pictures, files and push notifications',
    quick: true,
    async run(world) {
      let reached = 0
      const inside: RequestListener = (_request, response) => {
        reached++
        response.end('inside')
      }
      const port = await listenOn(world, inside, FETCHABLE_PORTS)
      const gateway = await world.start(await world.home(await openObedientModel(world)))
      const urls = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'].map(
        (host) => `http://${host}:${port}/x.png`,
      )
      for (const url of urls) {
        const picture = [{ type: 'image_url', image_url: { url } }]
        await post(
          gateway,
          '/v1/chat/completions',
          JSON.stringify({ model: 'clew', messages: [{ role: 'user', content: picture }] }),
        )
        const item = { role: 'user', content: [{ type: 'input_image', image_url: url }] }
        await post(gateway, '/v1/responses', JSON.stringify({ model: 'clew', input: [item] }))
        const parts = [{ text: 'look' }, { url, mediaType: 'image/png' }]
        const named = { message: { messageId: 'm', role: 'ROLE_USER', parts } }
        await post(gateway, '/a2a', JSON.stringify(rpc('SendMessage', named)))
        const configuration = { taskPushNotificationConfig: { url } }
        await post(
          gateway,
          '/a2a',
          JSON.stringify(rpc('SendMessage', { message: { ...message('hi'), messageId: url }, configuration })),
        )
        await post(gateway, '/api/messages', JSON.stringify({ content: 'hi', callback: { url } }))
      }
      await pause(500)
      require(reached === 0, `${reached} requests reached a local server`)
      return `${urls.length} addresses × 5 ways in, 0 reached`
    },
  },
  {
    row: 'held',
    title: 'streams of /v1 and /a2a that are never read, and a flood of requests',
    async run(world) {
      const gateway = await world.start(await world.home({ limits: { frames_per_second: 5, frames_burst: 100 } }))
      const before = await residentBytes(gateway)
      const streams = [
        [
          '/v1/chat/completions',
          { model: 'clew', stream: true, messages: [{ role: 'user', content: 'count to 5000' }] },
        ],
        ['/v1/responses', { model: 'clew', stream: true, input: 'count to 5000' }],
        ['/a2a', rpc('SendStreamingMessage', { message: message('count to 5000') })],
      ] as const
      for (let at = 0; at < 60; at++) {
        const [path, body] = streams[at % streams.length] ?? streams[0]
        const text = JSON.stringify(body)
        const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: ${text.length}\r\n\r\n`
        ;(await world.raw(gateway.port, head + text)).pause()
      }
      await pause(5_000)
      await requireServing(gateway, 'unread streams')
      const statuses: number[] = []
      for (let batch = 0; batch < 20; batch++)
        statuses.push(
          ...(await Promise.all(
            Array.from({ length: 25 }, async () => (await post(gateway, '/v1/chat/completions', '{}')).status),
          )),
        )
      const limited = statuses.filter((status) => status === 429).length
      require(limited > 0, 'a flood of requests at /v1 is never limited')
      await requireServing(gateway, 'a flood of requests')
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 200, `${Math.round(grown)} MB more memory`)
      return `60 unread streams, ${statuses.length} requests (${limited} limited), ${Math.round(grown)} MB more`
    },
  },
]
