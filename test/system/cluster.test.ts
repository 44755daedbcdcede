import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { BuiltGateway, build, newHome, removeHome, type Frame, type SystemClient } from '../support/built-gateway.ts'
import { databaseUrl, freshSchema, openDatabase } from '../support/test-database.ts'

const LEASE_MS = 1_000

/** A model that echoes the last words it was told, and hangs when they say so. */
class Model {
  readonly #server: Server
  readonly #asked: (() => void)[] = []
  readonly #hanging = new Set<ServerResponse>()
  requests = 0
  mayHang = true

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => this.#answer(Buffer.concat(chunks).toString(), response))
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

  #answer(body: string, response: ServerResponse): void {
    const { messages } = JSON.parse(body) as { messages: readonly { role: string; content: unknown }[] }
    const last = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
    this.requests++
    for (const wake of this.#asked.splice(0)) wake()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (this.mayHang && last.includes('hang')) return void this.#hanging.add(response)
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
): Promise<{ readonly nodes: readonly BuiltGateway[]; readonly schema: string }> {
  model = new Model()
  const baseUrl = await model.listen()
  const schema = freshSchema()
  const config = {
    model: 'test/m',
    providers: { test: { type: 'openai-compatible', baseUrl, apiKey: 'none' } },
    storage: { kind: 'postgres', url: await databaseUrl(), schema, lease_ms: LEASE_MS },
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
  } = await startNodes(2)
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
