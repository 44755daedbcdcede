import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { ROOT } from '../built-gateway.ts'
import { answerTo, clew, listenOn, pause, require, requireServing, type Attack, type AttackWorld } from './attack.ts'

const MAIN = join(ROOT, 'dist', 'cli', 'main.js')

/** Every place of a configuration that holds a secret, each with one of its own. */
const CANARIES = {
  token: 'canary-token-0001',
  key: 'canary-key-0002',
  header: 'canary-header-0003',
  mcpEnv: 'canary-mcp-env-0004',
  mcpArg: 'canary-mcp-arg-0005',
  hub: 'canary-hub-0006',
  ak: 'canary-ak-0007',
  sk: 'canary-sk-0008',
  text: 'canary-text-0009',
} as const

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 1
}

/** A gateway that may have only so many files open. */
async function startWithFew(world: AttackWorld, descriptors: number): Promise<string> {
  const home = await world.home()
  const line = `ulimit -n ${descriptors}; exec "${process.execPath}" "${MAIN}" start --home "${home}" --port 0`
  const child = spawn('sh', ['-c', line])
  const exited = new Promise((resolve) => child.on('exit', resolve))
  world.onClose(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (output += piece.toString()))
  for (let waited = 0; waited < 30_000; waited += 20) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
    if (url !== undefined) return url
    await pause(20)
  }
  throw new Error(`it does not start with ${descriptors} descriptors`)
}

function open(url: string): Promise<WebSocket | undefined> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?uid=idle`)
    socket.once('open', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  })
}

async function ask(url: string, id: number): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ id: `m${id}`, content: 'hello', session: `s${id % 5}` })
  const answer = await fetch(`${url}/api/messages`, { method: 'POST', headers, body })
  await answer.arrayBuffer()
  return answer.status
}

export const operationAttacks: readonly Attack[] = [
  {
    row: 'held',
    title: 'secrets in the log, the metrics, the status and what commands print',
    quick: true,
    async run(world) {
      const model = await listenOn(world, (request, response) => {
        request.resume()
        response.writeHead(401, { 'content-type': 'application/json' })
        const { authorization, 'x-secret': secret } = request.headers
        const message = `the key ${authorization ?? ''} is wrong, and so is ${String(secret)}`
        response.end(JSON.stringify({ error: { message } }))
      })
      const nowhere = await closedPort()
      const home = await world.home({
        listen: { token: CANARIES.token },
        model: 'refusing/model',
        providers: {
          refusing: {
            type: 'openai-compatible',
            baseUrl: `http://127.0.0.1:${model}/v1`,
            apiKey: CANARIES.key,
            headers: { 'x-secret': CANARIES.header },
          },
        },
        webhook_url: `ws://user:${CANARIES.hub}@127.0.0.1:${nowhere}/ws`,
        agent: {
          mcp: {
            servers: {
              broken: {
                command: process.execPath,
                args: ['-e', 'process.exit(3)', CANARIES.mcpArg],
                env: { KEY: CANARIES.mcpEnv },
              },
            },
          },
        },
        channels: {
          xiaoyi: {
            enabled: true,
            ak: CANARIES.ak,
            sk: CANARIES.sk,
            agentId: 'agent',
            wsUrl1: `ws://127.0.0.1:${nowhere}/`,
          },
        },
      })
      const gateway = await world.start(home, ['--port', '0', '--verbose'])
      const client = await gateway.connect(`?uid=a&token=${CANARIES.token}`)
      const answer = await answerTo(client, { id: '1', content: CANARIES.text, session: 's' })
      const headers = { authorization: `Bearer ${CANARIES.token}` }
      const pages = await Promise.all(
        ['/metrics', '/api/status', '/api/config'].map(async (path) =>
          (await fetch(`${gateway.url}${path}`, { headers })).text(),
        ),
      )
      const shown = new Map([
        ['the answer', JSON.stringify(answer)],
        ...pages.map((text, at) => [`page ${at}`, text] as const),
      ])
      const commands = [['status'], ['doctor'], ['config', 'check'], ['tools', 'list'], ['models', 'list'], ['logs']]
      for (const command of commands) {
        shown.set(command.join(' '), (await clew(home, ...command)).output)
        shown.set(`${command.join(' ')} --json`, (await clew(home, ...command, '--json')).output)
      }
      shown.set('the log', gateway.output)
      for (const [where, text] of shown)
        for (const [name, secret] of Object.entries(CANARIES))
          require(!text.includes(secret), `the ${name} is in ${where}`)
      return `${Object.keys(CANARIES).length} secrets, ${shown.size} places, none shown`
    },
  },
  {
    row: 'held',
    title: 'few descriptors and 200 idle connections',
    async run(world) {
      const outcomes: string[] = []
      for (const descriptors of [256, 400]) {
        const url = await startWithFew(world, descriptors)
        const opened: WebSocket[] = []
        for (let count = 0; count < 200; count++) {
          const socket = await open(url)
          if (socket !== undefined) opened.push(socket)
        }
        world.onClose(async () => {
          for (const socket of opened) socket.terminate()
        })
        const statuses: number[] = []
        for (let id = 0; id < 31; id++) statuses.push(await ask(url, id))
        const answered = statuses.filter((status) => status === 200).length
        require(answered === 31, `${answered} of 31 messages answered with ${descriptors} descriptors`)
        outcomes.push(`${descriptors}: ${opened.length} open, ${answered} answered`)
        for (const socket of opened) socket.terminate()
      }
      return outcomes.join('; ')
    },
  },
  {
    row: 'held',
    title: 'compression that a client offers is never agreed to',
    quick: true,
    async run(world) {
      const gateway = await world.start(await world.home())
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/ws`, { perMessageDeflate: true })
      world.onClose(async () => socket.terminate())
      await new Promise((resolve) => socket.once('open', resolve))
      require(socket.extensions === '', `the server agreed to ${socket.extensions}`)
      await requireServing(gateway, 'an offer of compression')
      return 'permessage-deflate offered, nothing agreed'
    },
  },
]
