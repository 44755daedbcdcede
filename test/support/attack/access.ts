import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BuiltGateway } from '../built-gateway.ts'
import { clew, pause, rawRequest, require, requireServing, statusOf, type Attack } from './attack.ts'

const TOKEN = 'a-token-of-24-characters'

const HOSTS = [
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '127.0.0.1@evil.example',
  'evil.example#127.0.0.1',
  '[::1].evil.example',
  '0.0.0.0.evil.example',
  '169.254.169.254',
  'metadata.google.internal',
  'xn--lcalhost-nza',
  '127.0.0.1 evil.example',
]

const ORIGINS = [
  'http://evil.example',
  'https://evil.example',
  'http://localhost.evil.example',
  'http://127.0.0.1.evil.example',
  'http://127.0.0.1:1',
  'http://localhost:1',
  'null',
  'file://',
  'http://[::1]:1',
]

const PATHS = [
  '/../bridge.json',
  '/..%2fbridge.json',
  '/%2e%2e/bridge.json',
  '//evil.example/api/status',
  '/api/sessions/..%2f..%2fbridge.json',
  '/api/sessions/%00',
  '/api/%73tatus/..%2f',
  '/bridge.json',
  '/sessions.json',
  '/gateway.json',
  '/.git/config',
]

const WRONG_TOKENS = [
  '',
  'Bearer',
  'Bearer ',
  `Bearer ${TOKEN.slice(0, -1)}`,
  `Bearer ${TOKEN}x`,
  `Bearer ${TOKEN.toUpperCase()}`,
  `Basic ${TOKEN}`,
  `Bearer x ${TOKEN}`,
  `Token ${TOKEN}`,
  'Bearer undefined',
  'Bearer null',
]

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'

const HOST_SPELLINGS = [
  '0.0.0.0',
  '::',
  '0',
  '0.0',
  '0x0.0.0.0',
  '00.0.0.0',
  '::0',
  '0:0:0:0:0:0:0:0',
  '::ffff:0.0.0.0',
  '[::]',
  '*',
  ' 0.0.0.0',
  '0.0.0.0 ',
  'localhost',
  'LOCALHOST',
  'localhost.',
  '127.0.0.1',
  '127.1',
  '::1',
  '::ffff:127.0.0.1',
  '[::1]',
  'no-such-host.invalid',
]

/** What the system says listens on a port, as hexadecimal addresses of /proc. */
async function listeningAddresses(port: number): Promise<readonly string[]> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')))
  return tables
    .flatMap((table) => table.split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === '0A' && local.endsWith(`:${wanted}`))
    .map(([, local = '']) => local.split(':')[0] ?? '')
}

/** Undefined when it ended instead of listening. */
async function boundAddresses(gateway: BuiltGateway): Promise<readonly string[] | undefined> {
  let isOver = false
  void gateway.exited.then(() => (isOver = true))
  for (let tries = 0; tries < 3_000 && !isOver; tries++) {
    if (!gateway.output.includes('clew is ready')) await pause(10)
    else {
      const contact = JSON.parse(await readFile(join(gateway.home, 'gateway.json'), 'utf8')) as { port: number }
      return listeningAddresses(contact.port)
    }
  }
  require(isOver, 'the gateway neither listens nor ends')
  return undefined
}

function isLoopback(address: string): boolean {
  return /^[0-9A-F]{6}7F$|^0{24}01000000$|^0{16}FFFF0000[0-9A-F]{6}7F$/.test(address)
}

export const accessAttacks: readonly Attack[] = [
  {
    row: 'held',
    title: 'Host header of another name (DNS rebinding)',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      for (const host of HOSTS) {
        const api = await rawRequest(world, gateway.port, `GET /api/status HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
        require(statusOf(api) !== 200, `the API answered to the name ${host}`)
        const socket = await rawRequest(world, gateway.port, `GET /ws HTTP/1.1\r\nHost: ${host}\r\n${UPGRADE}\r\n`)
        require(statusOf(socket) !== 101, `the socket opened for the name ${host}`)
      }
      return `${HOSTS.length} names × API and socket`
    },
  },
  {
    row: 'held',
    title: 'pages of another origin (CSWSH, CSRF)',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const host = `127.0.0.1:${gateway.port}`
      for (const origin of ORIGINS) {
        const head = `Host: ${host}\r\nOrigin: ${origin}\r\n`
        const socket = await rawRequest(world, gateway.port, `GET /ws HTTP/1.1\r\n${head}${UPGRADE}\r\n`)
        require(statusOf(socket) !== 101, `the socket opened for ${origin}`)
        const reset = `POST /api/sessions/x/reset HTTP/1.1\r\n${head}Content-Length: 0\r\n\r\n`
        const answer = await rawRequest(world, gateway.port, reset)
        require(statusOf(answer) === 403, `a page of ${origin} may change things (${statusOf(answer)})`)
        require(!/access-control-allow-origin/i.test(answer), `a page of ${origin} may read answers`)
      }
      return `${ORIGINS.length} origins × socket and POST`
    },
  },
  {
    row: 'held',
    title: 'anything but the exact token',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home({ listen: { token: TOKEN } }))
      const host = `127.0.0.1:${gateway.port}`
      for (const path of ['/api/status', '/api/sessions', '/metrics', '/ws']) {
        for (const token of WRONG_TOKENS) {
          const more = path === '/ws' ? UPGRADE : ''
          const head = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${token}\r\n${more}\r\n`
          const status = statusOf(await rawRequest(world, gateway.port, head))
          require([401, 403, 429, 400].includes(status), `${path} answered ${status} to "${token}"`)
        }
      }
      require(!gateway.output.includes(TOKEN), 'the token is in the log')
      return `${WRONG_TOKENS.length} ways × 4 addresses`
    },
  },
  {
    row: 'held',
    title: 'paths and methods that reach files or change by GET',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const host = `127.0.0.1:${gateway.port}`
      for (const path of PATHS) {
        const answer = await rawRequest(world, gateway.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
        require(statusOf(answer) !== 200, `${path} was answered with 200`)
      }
      for (const method of ['TRACE', 'CONNECT', 'PUT', 'PATCH', 'PROPFIND', 'GET']) {
        const head = `${method} /api/sessions/x/reset HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`
        const status = statusOf(await rawRequest(world, gateway.port, head))
        require(status !== 200 && status !== 101, `${method} was answered with ${status}`)
      }
      return `${PATHS.length} paths, 6 methods`
    },
  },
  {
    row: '20',
    title: 'listening beyond loopback without a real token',
    quick: true,
    async run(world) {
      const tried = [undefined, '', '   ', '\t\t\t', 'short', ' '.repeat(20)]
      for (const token of tried) {
        for (const host of ['0.0.0.0', '::']) {
          const home = await world.home({ listen: { host, port: 0, ...(token === undefined ? {} : { token }) } })
          const gateway = world.spawn(home)
          const ended = await Promise.race([gateway.exited, pause(15_000)])
          require(ended !== undefined, `it listens on ${host} with the token ${JSON.stringify(token)}`)
          require(ended.code === 1, `it ended with ${ended.code}`)
        }
      }
      return `${tried.length} tokens × 2 hosts, all refused`
    },
  },
  {
    row: '17',
    title: 'configuration mistakes show passwords',
    quick: true,
    async run(world) {
      const secret = 'CANARY-s3cr3t-value'
      const mistakes: object[] = [
        { webhook_url: `http://u:${secret}@example.com/ws` },
        { agent: { mcp: { servers: { a: { url: `ftp://u:${secret}@example.com` } } } } },
        { listen: secret },
        { webhook_url: secret },
        { agent: { exec: { allow: [{ program: secret }] } } },
        { providers: { openai: { apiKey: secret, baseUrl: `ftp://u:${secret}@x` } } },
      ]
      for (const config of mistakes) {
        const home = await world.home(config)
        for (const args of [
          ['config', 'check'],
          ['config', 'check', '--json'],
        ]) {
          const { output } = await clew(home, ...args)
          require(!output.includes(secret), `config check shows it: ${Object.keys(config).join()}`)
        }
      }
      return `${mistakes.length} mistakes, text and --json`
    },
  },
  {
    row: 'held',
    title: 'files of the home readable by others',
    quick: true,
    async run(world) {
      const home = await world.home()
      const gateway = await world.start(home)
      const client = await gateway.connect('?uid=a')
      await client.ask({ id: '1', content: 'hello', session: 's' })
      for (const name of ['gateway.json', 'sessions', 'journal', 'workspace']) {
        const mode = (await stat(join(home, name)).catch(() => undefined))?.mode
        require(mode === undefined || (mode & 0o077) === 0, `${name} has mode ${((mode ?? 0) & 0o777).toString(8)}`)
      }
      await requireServing(gateway, 'modes')
      return '4 entries'
    },
  },
  {
    row: 'held',
    title: 'listen.host in other spellings, without a token',
    async run(world) {
      const outcomes = { refused: 0, loopback: 0 }
      const left = [...HOST_SPELLINGS]
      const tryOne = async (host: string): Promise<void> => {
        const gateway = world.spawn(await world.home({ listen: { host, port: 0 } }), [])
        const bound = await boundAddresses(gateway)
        if (bound === undefined) {
          const isSaid = /\(?(?:TOKEN_REQUIRED|CONFIG_INVALID|HOST_UNUSABLE|LISTEN_FAILED)\)?|bridge\.json/.test(
            gateway.output,
          )
          require(isSaid, `${JSON.stringify(host)} is refused without a reason: ${gateway.output.slice(-200)}`)
          outcomes.refused++
        } else {
          require(bound.length > 0 && bound.every(isLoopback), `${JSON.stringify(host)} listens on ${bound.join(', ')}`)
          outcomes.loopback++
        }
        await gateway.kill()
      }
      while (left.length > 0) await Promise.all(left.splice(0, 3).map(tryOne))
      return `${HOST_SPELLINGS.length} spellings: ${outcomes.refused} refused, ${outcomes.loopback} bound to loopback`
    },
  },
]
