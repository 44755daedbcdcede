import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../built-gateway.ts'
import {
  answerTo,
  FETCHABLE_PORTS,
  listenOn,
  pause,
  require,
  requireServing,
  residentBytes,
  type Attack,
} from './attack.ts'
import { callTool, openObedientModel } from './model.ts'
import { nodeHttpServers } from '../../../src/platform/node-http-server.ts'
import { systemClock, systemIds } from '../../../src/platform/system.ts'
import { createXiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'

const MIB = 1024 * 1024
const SERVER = join(ROOT, 'test', 'support', 'hostile-mcp-server.mjs')
const LYING_RESOLVER = join(ROOT, 'test', 'support', 'attack', 'lying-resolver.mjs')

/** 128 MB that travel as an eighth of one. */
const packed = (): Buffer => gzipSync(Buffer.alloc(128 * MIB, 0x20))

function bomb(type: string, bytes: Buffer): RequestListener {
  return (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
    response.end(bytes)
  }
}

/** What an MCP server can do to us, and the tool of it that is called; without one it never gets so far. */
const MCP_BEHAVIOURS: readonly (readonly [behaviour: string, tool?: string])[] = [
  ['good', 'echo'],
  ['lies', 'echo'],
  ['many-tools', 'tool-1'],
  ['millions-of-tools'],
  ['endless-list', 'echo'],
  ['changing-lists', 'echo'],
  ['changes', 'echo'],
  ['bad-names', 'echo'],
  ['prototype', 'echo'],
  ['hangs-at-start'],
  ['hangs-in-call', 'echo'],
  ['exits-at-once'],
  ['exits-with-words'],
  ['crashes-in-call', 'echo'],
  ['ignores-sigterm', 'echo'],
  ['greets', 'echo'],
  ['floods-at-start'],
  ['floods-in-call', 'echo'],
  ['floods-errors', 'echo'],
  ['chatters', 'echo'],
  ['endless-line', 'echo'],
  ['deep-answer', 'echo'],
  ['huge-answer', 'echo'],
  ['nonsense-answer', 'echo'],
  ['refuses', 'echo'],
  ['asks-back', 'echo'],
]

export const serverAttacks: readonly Attack[] = [
  {
    row: 'held',
    title: 'MCP servers that lie, flood, hang, die and stay',
    async run(world) {
      const servers = Object.fromEntries(
        MCP_BEHAVIOURS.map(([behaviour]) => [
          behaviour,
          {
            command: process.execPath,
            args: [SERVER, behaviour],
            env: { SECRET_KEY: 'CANARY-of-mcp' },
            timeout_ms: 2_000,
          },
        ]),
      )
      const home = await world.home({
        ...(await openObedientModel(world)),
        agent: { tools: ['time'], mcp: { servers } },
      })
      const gateway = await world.start(home)
      const before = await residentBytes(gateway)
      await pause(2_000)
      for (const [behaviour, tool] of MCP_BEHAVIOURS) {
        const calling = tool === undefined ? undefined : callTool(gateway, `${behaviour}__${tool}`, { text: 'hi' })
        await requireServing(gateway, behaviour)
        const answer = (await calling) ?? ''
        require(!answer.includes('CANARY'), `${behaviour}: its key is shown to the model`)
      }
      const good = await callTool(gateway, 'good__echo', { text: 'still here' })
      require(good.includes('still here'), `the good server is not reached any more: ${good.slice(0, 100)}`)
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 300, `${Math.round(grown)} MB more memory`)
      require(!gateway.output.includes('CANARY'), 'its key is in the log')
      const code = await Promise.race([gateway.stop(), pause(30_000)])
      require(code === 0, 'the gateway does not end while such servers run')
      return `${MCP_BEHAVIOURS.length} servers of one gateway, ${Math.round(grown)} MB more, all ended with it`
    },
  },
  {
    row: 'held',
    title: 'packed answers of a model and of an MCP server that unpack to 128 MB',
    quick: true,
    async run(world) {
      const bytes = packed()
      const model = await listenOn(world, bomb('text/event-stream', bytes))
      const mcp = await listenOn(world, bomb('application/json', bytes))
      const gateway = await world.start(
        await world.home({
          model: 'bomb/model',
          providers: {
            bomb: { type: 'openai-compatible', baseUrl: `http://127.0.0.1:${model}/v1`, maxRetries: 0 },
          },
          agent: { mcp: { servers: { bomb: { url: `http://127.0.0.1:${mcp}/` } } } },
        }),
      )
      const before = await residentBytes(gateway)
      const client = await gateway.connect('?uid=a')
      const answering = answerTo(client, { id: '1', content: 'hello', session: 's' })
      await requireServing(gateway, 'a packed answer')
      const answer = await answering
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 64, `${Math.round(grown)} MB more memory`)
      return `2 × 128 MB; answered ${String(answer['code'] ?? answer['type'])}, ${Math.round(grown)} MB more`
    },
  },
  {
    row: 'held',
    title: 'packed downloads that unpack to 128 MB: a file of a phone, another agent, the receiver of a callback',
    quick: true,
    async run(world) {
      const bytes = packed()
      const asked = new Map<string, number>()
      const port = await listenOn(world, (request, response) => {
        const [, kind = ''] = (request.url ?? '').split('/')
        asked.set(kind, (asked.get(kind) ?? 0) + 1)
        bomb('text/plain', bytes)(request, response)
      })
      const agent = { ak: 'ak-of-the-attack', sk: 'sk-of-the-attack', agentId: 'agent-1' }
      const endpoint = { host: '127.0.0.1', port: 0 }
      const platform = { clock: systemClock, ids: systemIds, servers: nodeHttpServers }
      const phone = await createXiaoyiSimulator({ ...platform, agent, endpoints: [endpoint, endpoint] })
      world.onClose(() => phone.close())
      const [wsUrl1, wsUrl2] = phone.urls
      const gateway = await world.start(
        await world.home({
          ...(await openObedientModel(world)),
          agent: { tools: ['a2a'] },
          a2a: { agents: { other: { url: `http://127.0.0.1:${port}/`, private: true } } },
          limits: { callback_hosts: ['127.0.0.1'] },
          channels: { xiaoyi: { enabled: true, ...agent, wsUrl1, wsUrl2, media: { allowHosts: ['127.0.0.1'] } } },
        }),
      )
      await until(() => phone.connections.ready().length === 2, 'the phone is not connected')
      const before = await residentBytes(gateway)
      const uri = `http://127.0.0.1:${port}/file/a.txt`
      const file = { kind: 'file', file: { name: 'a.txt', mimeType: 'text/plain', uri } }
      const task = phone.sayParts([{ kind: 'text', text: 'read this' }, file])
      await requireServing(gateway, 'a packed file')
      await until(() => task.state !== 'running', 'the phone is never answered')
      const calling = callTool(gateway, 'a2a', { agent: 'other', message: 'hello' })
      await requireServing(gateway, 'a packed agent')
      await calling
      const callback = { url: `http://127.0.0.1:${port}/callback` }
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ content: 'hello', callback })
      await (await fetch(`${gateway.url}/api/messages`, { method: 'POST', headers, body })).arrayBuffer()
      await until(() => asked.has('callback'), 'the callback was never sent')
      await requireServing(gateway, 'a packed receiver')
      await pause(3_000)
      require(asked.get('callback') === 1, 'a callback that was taken is sent again')
      for (const kind of ['file', '.well-known', 'callback'])
        require(asked.has(kind), `nothing asked for the ${kind}, but for ${[...asked.keys()].join()}`)
      const grown = ((await residentBytes(gateway)) - before) / MIB
      require(grown < 150, `${Math.round(grown)} MB more memory`)
      return `3 × 128 MB; each cut at its limit, ${Math.round(grown)} MB more`
    },
  },
  {
    row: 'held',
    title: 'resolvers that lie to fetch',
    quick: true,
    async run(world) {
      let reached = 0
      const inside: RequestListener = (_request, response) => {
        reached++
        response.end('inside')
      }
      const port = await listenOn(world, inside, FETCHABLE_PORTS)
      const home = await world.home({ ...(await openObedientModel(world)), agent: { tools: ['fetch'] } })
      const gateway = await world.start(home, ['--port', '0'], {
        NODE_OPTIONS: `--import ${pathToFileURL(LYING_RESOLVER).href}`,
      })
      const names = ['private', 'mixed', 'rebinding', 'mapped', 'empty', 'nonsense', 'second-time']
      for (const name of names)
        for (let time = 0; time < 2; time++)
          await callTool(gateway, 'fetch', { url: `http://${name}.lying.test:${port}/` })
      require(reached === 0, `${reached} requests reached a local server`)
      for (const name of names)
        require(gateway.output.includes(`asked for ${name}`), `the resolver was never asked for ${name}`)
      return `${names.length} names that resolve to this machine in ${names.length} ways, 0 reached`
    },
  },
]

async function until(holds: () => boolean, otherwise: string): Promise<void> {
  for (let waited = 0; !holds(); waited += 20) {
    require(waited < 30_000, otherwise)
    await pause(20)
  }
}
