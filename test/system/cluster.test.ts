import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import {
  BuiltGateway,
  build,
  configure,
  newHome,
  removeHome,
  type Frame,
  type SystemClient,
} from '../support/built-gateway.ts'
import type { ClusterStatus } from '../../src/storage/storage.ts'
import { runClew } from '../support/run-clew.ts'
import { databaseUrl, freshSchema, openDatabase } from '../support/test-database.ts'

/** For tests that wait until the lease of a node that is gone has ended. */
const SHORT_LEASE_MS = 1_000

/** So long that nothing a test waits for can be a lease that has ended, and no slow machine lets one end. */
const LONG_LEASE_MS = 600_000

/** A model that echoes the last words it was told, and hangs when they say so. */
class Model {
  readonly #server: Server
  readonly #asked: (() => void)[] = []
  readonly #hanging = new Set<ServerResponse>()
  requests = 0
  lastBody = ''
  /** Lets an answer that is given slowly end. */
  goOn: () => void = () => undefined
  mayHang = true

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => void this.#answer(Buffer.concat(chunks).toString(), response))
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`
  }

  async asked(times: number): Promise<void> {
    while (this.requests < times) await new Promise<void>((resolve) => this.#asked.push(resolve))
  }

  close(): void {
    for (const response of this.#hanging) response.destroy()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #answer(body: string, response: ServerResponse): Promise<void> {
    const { messages } = JSON.parse(body) as { messages: readonly { role: string; content: unknown }[] }
    const last = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
    this.requests++
    this.lastBody = body
    for (const wake of this.#asked.splice(0)) wake()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (this.mayHang && last.includes('hang')) return void this.#hanging.add(response)
    if (last.includes('ask me') && messages.at(-1)?.role !== 'tool') {
      const call = { index: 0, id: 'c1', type: 'function', function: { name: 'time', arguments: '{}' } }
      const asks = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { tool_calls: [call] } }] }
      const ends = { ...asks, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
      return void response.end(`data: ${JSON.stringify(asks)}\n\ndata: ${JSON.stringify(ends)}\n\ndata: [DONE]\n\n`)
    }
    if (last.includes('slowly')) {
      const first = { index: 0, delta: { content: 'slow ' } }
      response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [first] })}\n\n`)
      await new Promise<void>((resolve) => (this.goOn = resolve))
    }
    const users = messages.filter(({ role }) => role === 'user').length
    const text = `answer ${users} to ${/say (\w+)/.exec(last)?.[1] ?? 'nothing'}`
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
    response.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content: text } }] })}\n\n`)
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response.write(
      `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })}\n\n`,
    )
    response.end('data: [DONE]\n\n')
  }
}

const homes: string[] = []
const nodes: BuiltGateway[] = []
let model: Model

beforeAll(build)
afterEach(async () => {
  for (const node of nodes.splice(0)) {
    node.child.kill('SIGCONT')
    await node.kill()
  }
  model.close()
})
afterAll(async () => {
  for (const home of homes) await removeHome(home)
})

async function startNodes(
  count: number,
  { leaseMs = LONG_LEASE_MS, ...more }: { readonly leaseMs?: number; readonly [key: string]: unknown } = {},
): Promise<{ readonly nodes: readonly BuiltGateway[]; readonly schema: string }> {
  model = new Model()
  const baseUrl = await model.listen()
  const schema = freshSchema()
  const config = {
    model: 'test/m',
    providers: { test: { type: 'openai-compatible', baseUrl, apiKey: 'none' } },
    storage: { kind: 'postgres', url: await databaseUrl(), schema, lease_ms: leaseMs },
    ...more,
  }
  for (let n = 0; n < count; n++) {
    const home = await newHome(config)
    homes.push(home)
    nodes.push(await BuiltGateway.start(home))
  }
  return { nodes, schema }
}

async function frameWhere(client: SystemClient, holds: (frame: Frame) => boolean): Promise<Frame> {
  await client.until(() => client.frames.some(holds))
  const found = client.frames.find(holds)
  if (found === undefined) throw new Error(`the connection ended; it had ${JSON.stringify(client.frames)}`)
  return found
}

const isAnswerTo =
  (id: string) =>
  ({ type, messageId }: Frame): boolean =>
    messageId === id && (type === 'complete' || type === 'error')

function say(client: SystemClient, id: string, text: string): void {
  client.send({ id, content: text, session: 'shared', ack: true })
}

it('continues a conversation on whichever node the client talks to', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say one')
  expect((await frameWhere(a, isAnswerTo('m1')))['content']).toBe('answer 1 to one')
  await a.close()
  const b = await second!.connect('?uid=ann')
  say(b, 'm2', 'say two')
  const answer = await frameWhere(b, isAnswerTo('m2'))
  expect(answer['content']).toBe('answer 2 to two')
  await b.close()
})

it('answers on another node what a killed node had accepted, once', async () => {
  const {
    nodes: [first, second],
    schema,
  } = await startNodes(2, { leaseMs: SHORT_LEASE_MS })
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say hang')
  await model.asked(1)
  model.mayHang = false
  await first!.kill()
  const b = await second!.connect('?uid=ann')
  expect((await frameWhere(b, isAnswerTo('m1')))['content']).toBe('answer 1 to hang')
  const database = await openDatabase(schema)
  const stored = await database.query({ name: '', text: 'select state <> $1 as answered from messages' }, ['open'])
  expect(stored).toEqual([{ answered: true }])
  await database.close()
})

it('resets on one node what hangs, stopped, on another; the next message starts at once', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say hang')
  await model.asked(1)
  first!.child.kill('SIGSTOP')
  const b = await second!.connect('?uid=ann')
  b.send({ type: 'session.reset', key: 'shared' })
  const confirmed = await frameWhere(b, ({ type }) => type === 'session.reset')
  expect(confirmed).toMatchObject({ data: { success: true } })
  model.mayHang = false
  say(b, 'm2', 'say fresh')
  expect((await frameWhere(b, isAnswerTo('m2')))['content']).toBe('answer 1 to fresh')
})

it('hands over what a node that stops in order was working on', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say one')
  await frameWhere(a, isAnswerTo('m1'))
  expect(await first!.stop()).toBe(0)
  const b = await second!.connect('?uid=ann')
  say(b, 'm2', 'say two')
  expect((await frameWhere(b, isAnswerTo('m2')))['content']).toBe('answer 2 to two')
})

it.each(['session.reset', 'session.delete', 'session.cancel'])(
  '%s on one node answers what another one had accepted before it was killed, and the next message starts at once',
  async (type) => {
    const {
      nodes: [first, second],
    } = await startNodes(2)
    const a = await first!.connect('?uid=ann')
    say(a, 'm1', 'say hang')
    await model.asked(1)
    say(a, 'm2', 'say behind')
    await frameWhere(a, (frame) => frame['type'] === 'accepted' && frame['messageId'] === 'm2')
    await first!.kill()
    const b = await second!.connect('?uid=ann')
    b.send({ type, key: 'shared' })
    expect(await frameWhere(b, (frame) => frame.type === type)).toMatchObject({ data: { success: true } })
    model.mayHang = false
    say(b, 'm3', 'say fresh')
    for (const id of ['m1', 'm2']) expect(await frameWhere(b, isAnswerTo(id))).toMatchObject({ code: 'TURN_CANCELLED' })
    const answer = await frameWhere(b, isAnswerTo('m3'))
    expect(answer).toMatchObject(type === 'session.cancel' ? { type: 'complete' } : { content: 'answer 1 to fresh' })
  },
)

it('leaves a session to a node with room when all turns of its own run', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { leaseMs: SHORT_LEASE_MS, limits: { concurrent_turns: 1 } })
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say hang')
  await model.asked(1)
  a.send({ id: 'm2', content: 'say two', session: 'other' })
  expect((await frameWhere(a, isAnswerTo('m2')))['content']).toBe('answer 1 to two')
  // Nodes say how many turns they run with their heartbeat, so the other one learns it a moment later.
  const turns = async (): Promise<readonly number[]> =>
    ((await (await fetch(`${second!.url}/api/cluster`)).json()) as ClusterStatus).nodes.map((node) => node.turns)
  await expect.poll(turns, { timeout: 30_000 }).toEqual([1, 0])
})

it('clew cluster status names the nodes, one that is lost, and how the database answers', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { leaseMs: SHORT_LEASE_MS })
  await talkAtFirst(first!)
  await second!.kill()
  const read = async (): Promise<ClusterStatus> => (await fetch(`${first!.url}/api/cluster`)).json() as never
  await expect.poll(async () => (await read()).lost.length, { timeout: 30_000 }).toBe(1)
  const { code, stdout } = await runClew(['cluster', 'status', '--json', '--home', first!.home])
  expect(code).toBe(0)
  const numbers = { startedAt: expect.any(Number), heartbeatAgeMs: expect.any(Number) }
  const names = { id: expect.stringMatching(/^node-[0-9a-f]{12}$/u), address: expect.stringMatching(/^127\.0\.0\.1:/u) }
  const about = { ...names, version: expect.any(String), turns: 0, ...numbers }
  expect(JSON.parse(stdout)).toEqual({
    nodes: [{ ...about, sessions: 1, state: 'live' }],
    lost: [{ ...about, sessions: 0, state: 'live' }],
    database: {
      version: expect.stringMatching(/^\d+/u),
      ok: true,
      latencyMs: expect.any(Number),
      connections: expect.any(Number),
    },
  })
  const shown = await runClew(['cluster', 'status', '--home', first!.home])
  expect(shown.stdout).toMatch(/NODE +ADDRESS[^]+ live [^]+ lost [^]+PostgreSQL \S+ [^]*answers in/u)
})

it('begins what it left to others when none of them took it and a turn of its own has ended', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { limits: { concurrent_turns: 1 } })
  const a = await first!.connect('?uid=ann')
  const b = await second!.connect('?uid=bob')
  say(a, 'm1', 'say hang')
  b.send({ id: 'n1', content: 'say hang', session: 'of-bob' })
  await model.asked(2)
  a.send({ id: 'm2', content: 'say two', session: 'other', ack: true })
  await frameWhere(a, (frame) => frame['type'] === 'accepted' && frame['messageId'] === 'm2')
  model.mayHang = false
  b.send({ type: 'session.cancel', key: 'of-bob' })
  expect((await frameWhere(a, isAnswerTo('m2')))['content']).toBe('answer 1 to two')
})

/** Its session is held by the first node from here on. */
async function talkAtFirst(first: BuiltGateway): Promise<void> {
  const a = await first.connect('?uid=ann')
  say(a, 'm1', 'say one')
  await frameWhere(a, isAnswerTo('m1'))
  await a.close()
}

it('answers a request at one node whose session another node holds, at every door', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  await talkAtFirst(first!)
  const post = async (path: string, body: object, headers: Record<string, string> = {}): Promise<string> => {
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    }
    return (await fetch(`${second!.url}${path}`, init)).text()
  }
  expect(await post('/api/messages', { content: 'say two', session: 'shared' })).toContain('answer 2 to two')
  const chat = { model: 'test/m', messages: [{ role: 'user', content: 'say three' }] }
  const session = { 'x-clew-session': 'shared' }
  expect(await post('/v1/chat/completions', chat, session)).toContain('answer 3 to three')
  expect(await post('/v1/chat/completions', { ...chat, stream: true }, session)).toContain('[DONE]')
  const message = { messageId: 'x1', contextId: 'shared', role: 'ROLE_USER', parts: [{ text: 'say four' }] }
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  expect(await post('/a2a', call, { 'a2a-version': '1.0' })).toContain('answer 5 to four')
})

it('shows what happens in a turn of one node to a client that is connected to another', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  await talkAtFirst(first!)
  const b = await second!.connect('?uid=ann&stream=1')
  say(b, 'm2', 'say slowly')
  expect(await frameWhere(b, ({ type }) => type === 'progress')).toMatchObject({ content: 'slow ', messageId: 'm2' })
  model.goOn()
  await frameWhere(b, isAnswerTo('m2'))
  const types = b.frames.filter(({ messageId }) => messageId === 'm2').map(({ type, event }) => event ?? type)
  expect(types).toEqual(expect.arrayContaining(['accepted', 'turn_start', 'progress', 'step_completed', 'complete']))
  expect(types.at(-1)).toBe('complete')
  const numbers = b.frames.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []))
  expect(new Set(numbers).size).toBe(numbers.length)
})

interface Approvals {
  readonly approvals: readonly { readonly id: string; readonly tool: string; readonly session: string }[]
}

async function approvalsAt(node: BuiltGateway): Promise<Approvals['approvals']> {
  return ((await (await fetch(`${node.url}/api/approvals`)).json()) as Approvals).approvals
}

const ASKS_FIRST = { agent: { tools: ['time'], approve: ['time'] } }

const isQuestion = ({ event }: Frame): boolean => event === 'approval_requested'

it('asks and is answered at any node when a tool needs approval', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, ASKS_FIRST)
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'ask me')
  const { id } = (await frameWhere(a, isQuestion))['data'] as { readonly id: string }
  expect(await approvalsAt(second!)).toMatchObject([{ id, tool: 'time', session: 'shared' }])
  // The reader comes back at the other node.
  await a.close()
  const b = await second!.connect('?uid=ann')
  expect((await frameWhere(b, isQuestion))['data']).toMatchObject({ id, tool: 'time' })
  say(b, 'c1', '/approve')
  expect(await frameWhere(b, isAnswerTo('c1'))).toMatchObject({ content: 'Approved: time.' })
  expect(await frameWhere(b, isAnswerTo('m1'))).toMatchObject({ type: 'complete' })
  expect(await approvalsAt(second!)).toEqual([])
  const c = await first!.connect('?uid=ann')
  say(c, 'm2', 'ask me again')
  await frameWhere(c, isQuestion)
  const [waiting] = await approvalsAt(second!)
  const decide = (): Promise<Response> =>
    fetch(`${second!.url}/api/approvals/${waiting?.id}`, {
      method: 'POST',
      body: JSON.stringify({ approve: false }),
      headers: { 'content-type': 'application/json' },
    })
  expect(await (await decide()).json()).toMatchObject({ success: true, session: 'shared', approved: false })
  expect(await frameWhere(c, isAnswerTo('m2'))).toMatchObject({ type: 'complete' })
  expect(model.lastBody).toContain('did not allow')
  expect((await decide()).status).toBe(404)
})

it('keeps what was decided at another node when the node that asked is killed', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { ...ASKS_FIRST, leaseMs: SHORT_LEASE_MS })
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'ask me')
  await frameWhere(a, isQuestion)
  first!.child.kill('SIGSTOP')
  const b = await second!.connect('?uid=ann')
  say(b, 'c1', '/approve')
  expect(await frameWhere(b, isAnswerTo('c1'))).toMatchObject({ content: 'Approved: time.' })
  first!.child.kill('SIGKILL')
  expect(await frameWhere(b, isAnswerTo('m1'))).toMatchObject({ type: 'complete' })
})

it('gives idle sessions back at SIGTERM, while a turn of another one still has its time', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { shutdown: { drain_ms: 60_000 } })
  await talkAtFirst(first!)
  const a = await first!.connect('?uid=ann')
  a.send({ id: 'm2', content: 'say hang', session: 'busy' })
  await model.asked(2)
  first!.child.kill('SIGTERM')
  const b = await second!.connect('?uid=bob')
  b.send({ id: 'n1', content: 'say two', session: 'shared' })
  expect((await frameWhere(b, isAnswerTo('n1')))['content']).toBe('answer 2 to two')
  a.send({ id: 'm3', content: 'say late', session: 'another' })
  expect((await frameWhere(a, isAnswerTo('m3')))['content']).toBe('answer 1 to late')
  expect(first!.child.exitCode).toBeNull()
})

it('hands a turn over that its time at SIGTERM was too short for', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2, { shutdown: { drain_ms: 100 } })
  const a = await first!.connect('?uid=ann')
  say(a, 'm1', 'say hang')
  await model.asked(1)
  model.mayHang = false
  const b = await second!.connect('?uid=ann')
  expect(await first!.stop()).toBe(0)
  expect((await frameWhere(b, isAnswerTo('m1')))['content']).toBe('answer 1 to hang')
})

it('reads at any node a file that came to another one', async () => {
  const {
    nodes: [first, second],
  } = await startNodes(2)
  const put = await fetch(`${first!.url}/api/files?uid=ann`, {
    method: 'POST',
    body: 'the colour is teal',
    headers: { 'x-filename': 'note.txt', 'content-type': 'text/plain' },
  })
  const { id } = (await put.json()) as { id: string }
  expect(await (await fetch(`${second!.url}/api/files/${id}?uid=ann`)).text()).toBe('the colour is teal')
  const b = await second!.connect('?uid=ann')
  b.send({ id: 'm1', content: 'say one', session: 'shared', files: [{ id }] })
  expect((await frameWhere(b, isAnswerTo('m1')))['content']).toBe('answer 1 to one')
  expect(model.lastBody).toContain('the colour is teal')
})

it('reads conversations and notes of the database with no gateway running, and says when it is away', async () => {
  const {
    nodes: [first],
  } = await startNodes(1)
  await talkAtFirst(first!)
  expect(await first!.stop()).toBe(0)
  const clew = (...args: string[]): ReturnType<typeof runClew> => runClew([...args, '--home', first!.home])
  expect((await clew('sessions', 'list')).stdout).toContain('shared')
  expect((await clew('sessions', 'show', 'shared')).stdout).toContain('answer 1 to one')
  expect((await clew('sessions', 'search', 'answer 1')).stdout).toContain('shared')
  expect((await clew('sessions', 'export', 'shared')).stdout).toContain('"type":"session"')
  expect(JSON.parse((await clew('usage', '--json')).stdout)).toBeTypeOf('object')
  expect(await clew('memory', 'list')).toMatchObject({ code: 0, stdout: 'no notes\n' })
  const away = { kind: 'postgres', url: 'postgres://postgres@127.0.0.1:1/postgres', schema: 'clew' }
  await configure(first!.home, { storage: away })
  // Each of them waits for the database for some seconds.
  const said = await Promise.all([clew('sessions', 'list'), clew('memory', 'list')])
  for (const one of said) expect(one).toMatchObject({ code: 1, stderr: expect.stringContaining('STORAGE_UNAVAILABLE') })
})
