import { createHmac } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { listenRaw, type RawFrame } from '../support/raw-xiaoyi.ts'
import { closeAll, openInside, openOutside } from '../support/xiaoyi-gateway.ts'
import { AGENT } from '../support/xiaoyi-world.ts'

/** Document 003, “A2A protocol”: its frames and tables, against a server that adds nothing. */
afterEach(closeAll)

async function open(xiaoyi: object = {}) {
  const outside = await openOutside()
  const server = await listenRaw(outside.network)
  const own = { wsUrl1: server.url, wsUrl2: undefined, agentId: 'your-agent-id', ...xiaoyi }
  const inside = await openInside(outside, undefined, own)
  const advance = (ms: number): Promise<void> => outside.clock.advance(ms)
  return { ...outside, ...inside, server, advance }
}

const request = (parts: readonly unknown[], ids: { readonly id?: string; readonly task?: string } = {}): RawFrame => ({
  jsonrpc: '2.0',
  id: ids.id ?? 'request-id',
  method: 'message/stream',
  agentId: 'your-agent-id',
  deviceId: 'device-id',
  conversationId: 'conversation-id',
  sessionId: 'session-id',
  params: {
    id: ids.task ?? 'task-id',
    sessionId: 'session-id',
    agentLoginSessionId: 'login-session-id',
    message: { kind: 'message-kind', messageId: 'message-id', role: 'user', parts },
  },
})

const resultsOf = (details: readonly RawFrame[], kind: string): RawFrame[] =>
  details.map(({ result }) => result as RawFrame).filter((result) => result['kind'] === kind)

describe('003: the link', () => {
  it('L18, L26: four headers, the signature over the timestamp', async () => {
    const { server } = await open()
    const [headers] = server.handshakes
    const stamp = headers?.get('x-ts') ?? ''
    expect(stamp).toMatch(/^\d{13}$/u)
    expect(headers?.get('x-sign')).toBe(createHmac('sha256', AGENT.sk).update(stamp).digest('base64'))
    expect(headers?.get('x-access-key')).toBe(AGENT.ak)
    expect(headers?.get('x-agent-id')).toBe('your-agent-id')
  })

  it('L39, L50: the init comes first and at once, a heartbeat every 20 seconds', async () => {
    const { server, advance } = await open()
    expect(server.frames).toMatchObject([{ msgType: 'clawd_bot_init', agentId: 'your-agent-id' }])
    await advance(60_000)
    // Each carries a timestamp beside the two fields of the document, as Huawei's own clients send it.
    expect(server.of('heartbeat')).toEqual(
      Array.from({ length: 3 }, () => ({
        msgType: 'heartbeat',
        agentId: 'your-agent-id',
        timestamp: expect.any(Number),
      })),
    )
  })

  it('L279: 2 s, doubled up to 60 s; each pause a fifth longer or shorter, so that agents do not return at once', async () => {
    const { server, network, advance } = await open()
    server.drop()
    network.takeDown('127.0.0.1:9100')
    const from = network.attempts.length
    await advance(400_000)
    const tries = network.attempts.slice(from).filter(({ url }) => url === server.url)
    const pauses = tries.slice(1).map(({ at }, index) => (at - (tries[index]?.at ?? 0)) / 1_000)
    expect(pauses.length).toBeGreaterThanOrEqual(6)
    for (const [index, pause] of pauses.slice(0, 6).entries()) {
      const nominal = Math.min(60, 2 * 2 ** (index + 1))
      expect(pause).toBeGreaterThanOrEqual(nominal * 0.8)
      expect(pause).toBeLessThanOrEqual(nominal * 1.2)
    }
  })
})

describe('003: a request', () => {
  it('L59 is answered with L89 around L191, streamed as L296 says', async () => {
    const { server, advance } = await open()
    await server.send(request([{ kind: 'text', text: 'say 用户|消息|内容' }]))
    await advance(10_000)
    expect(server.of('agent_response').length).toBeGreaterThan(1)
    for (const frame of server.of('agent_response')) {
      expect(frame).toMatchObject({ agentId: 'your-agent-id', sessionId: 'session-id', taskId: 'task-id' })
      expect(frame['msgDetail']).toEqual(expect.any(String))
    }
    const artifacts = resultsOf(server.details('task-id'), 'artifact-update')
    expect(artifacts[0]).toMatchObject({ taskId: 'task-id', append: false, final: false })
    for (const middle of artifacts.slice(1, -1)) expect(middle).toMatchObject({ append: true, final: false })
    expect(artifacts.at(-1)).toMatchObject({
      append: false,
      lastChunk: true,
      final: true,
      artifact: { artifactId: expect.any(String), parts: [{ kind: 'text', text: '用户消息内容' }] },
    })
    expect(server.details('task-id').every(({ id, jsonrpc }) => id === 'request-id' && jsonrpc === '2.0')).toBe(true)
  })

  it('L221: a status update while it works, with the text of the document when that is configured', async () => {
    const { server, advance } = await open({ keepAliveText: '正在处理...' })
    await server.send(request([{ kind: 'text', text: 'hang' }]))
    await advance(60_000)
    const working = resultsOf(server.details('task-id'), 'status-update').find(
      ({ status }) => (status as RawFrame)['message'] !== undefined,
    )
    expect(working).toEqual({
      taskId: 'task-id',
      kind: 'status-update',
      final: false,
      status: {
        message: { role: 'agent', parts: [{ kind: 'text', text: '正在处理...' }] },
        state: 'working',
      },
    })
  })

  it('L247: an error has code and message; that of a failed task comes with a readable text', async () => {
    const { server, advance } = await open({ language: 'en' })
    await server.send({ jsonrpc: '2.0', id: 'message-id', method: 'no/such', sessionId: 'session-id' })
    await advance(1_000)
    const error = { code: expect.any(Number), message: expect.any(String) }
    expect(server.details('message-id')).toEqual([{ jsonrpc: '2.0', id: 'message-id', error }])
    await server.send(request([{ kind: 'text', text: 'fail half' }]))
    await advance(600_000)
    expect(server.details('task-id').at(-1)).toMatchObject({
      jsonrpc: '2.0',
      id: 'request-id',
      result: { kind: 'artifact-update', final: true, artifact: { parts: [{ kind: 'text' }] } },
      error,
    })
  })
})

describe('003: controls', () => {
  it('L101 is answered with L113', async () => {
    const { server, advance } = await open()
    await server.send({
      jsonrpc: '2.0',
      id: 'request-id',
      method: 'clearContext',
      agentId: 'your-agent-id',
      sessionId: 'session-id',
    })
    await advance(1_000)
    expect(server.details('request-id')).toEqual([
      { jsonrpc: '2.0', id: 'request-id', result: { status: { state: 'cleared' } } },
    ])
  })

  it('L127 is answered with L140, and the task ends', async () => {
    const { server, advance, model } = await open()
    await server.send(request([{ kind: 'text', text: 'hang' }], { id: 'm1' }))
    await advance(3_000)
    expect(model.open()).toBe(1)
    await server.send({
      jsonrpc: '2.0',
      id: 'request-id',
      method: 'tasks/cancel',
      agentId: 'your-agent-id',
      sessionId: 'session-id',
      taskId: 'task-id',
    })
    await advance(1_000)
    expect(model.open()).toBe(0)
    const answers = server
      .of('agent_response')
      .map(({ msgDetail }) => JSON.parse(String(msgDetail)) as RawFrame)
      .filter(({ id }) => id === 'request-id')
    expect(answers).toMatchObject([
      { jsonrpc: '2.0', id: 'request-id', result: { id: 'task-id', status: { state: 'canceled' } } },
    ])
  })
})

describe('003: parts', () => {
  it('L157: a text reaches the model', async () => {
    const { server, advance, model } = await open()
    await server.send(request([{ kind: 'text', text: '消息文本内容' }]))
    await advance(5_000)
    expect(model.requests.at(-1)).toContain('消息文本内容')
  })

  it('L166: a file comes by its bytes, when both are given, and is kept under its name', async () => {
    const { server, advance, files } = await open()
    const bytes = Buffer.from('%PDF-1.4 a short document').toString('base64')
    const file = { name: 'filename.pdf', mimeType: 'application/pdf', bytes, uri: 'https://example.com/file.pdf' }
    await server.send(
      request([
        { kind: 'text', text: 'read it' },
        { kind: 'file', file },
      ]),
    )
    await advance(5_000)
    const folders = await files.list('/home/clew/media')
    const names = await Promise.all(folders.map((folder) => files.list(`/home/clew/media/${folder}`)))
    expect(names.flat()).toEqual(['filename.pdf'])
    expect(resultsOf(server.details('task-id'), 'artifact-update').at(-1)).toMatchObject({ final: true })
  })

  it('L180: data beside a text reaches the model, marked as data', async () => {
    const { server, advance, model } = await open()
    const data = { city: 'Shenzhen', temperature: 31 }
    await server.send(
      request([
        { kind: 'text', text: 'what now?' },
        { kind: 'data', data },
      ]),
    )
    await advance(5_000)
    expect(model.requests.at(-1)).toContain('Shenzhen')
  })
})
