import { afterEach, describe, expect, it } from 'vitest'
import { listenRaw } from '../support/raw-xiaoyi.ts'
import { closeAll, openInside, openOutside } from '../support/xiaoyi-gateway.ts'
import type { HookModule } from '../../src/hook/hook.ts'

/** Document 000, “clearContext”: its frames, sent and expected literally by a server that adds nothing. */
afterEach(closeAll)

async function open(hooks: HookModule = {}) {
  const outside = await openOutside()
  const server = await listenRaw(outside.network)
  const xiaoyi = { wsUrl1: server.url, wsUrl2: undefined, agentId: 'your-agent-id' }
  const inside = await openInside(outside, undefined, xiaoyi, [hooks])
  const settle = (ms = 1_000): Promise<void> => outside.clock.advance(ms)
  return { server, settle, ...inside }
}

const CLEAR = { jsonrpc: '2.0', id: 'msg_1234567890', sessionId: 'session_abc', method: 'clearContext' }

const CLEARED = {
  msgType: 'agent_response',
  agentId: 'your-agent-id',
  sessionId: 'session_abc',
  taskId: 'msg_1234567890',
  msgDetail: '{"jsonrpc":"2.0","id":"msg_1234567890","result":{"status":{"state":"cleared"}}}',
}

describe('000: the request and its answer', () => {
  it('L10: any id and session come back in the answer', async () => {
    const { server, settle } = await open()
    await server.send({ jsonrpc: '2.0', id: '全局唯一消息序列号', sessionId: '会话唯一标识符', method: 'clearContext' })
    await settle()
    expect(server.of('agent_response')).toMatchObject([{ sessionId: '会话唯一标识符', taskId: '全局唯一消息序列号' }])
    expect(server.details('全局唯一消息序列号')).toMatchObject([{ id: '全局唯一消息序列号' }])
  })

  it.each(['L23', 'L190'])('%s: L179 is answered with exactly this frame, once', async () => {
    const { server, settle } = await open()
    await server.send(CLEAR)
    await settle()
    expect(server.of('agent_response')).toEqual([CLEARED])
  })

  it('L37, L143: msgDetail is the JSON-RPC answer', async () => {
    const { server, settle } = await open()
    for (const id of ['msg_1234567890', 'msg_123']) {
      await server.send({ ...CLEAR, id })
      await settle()
      expect(server.details(id)).toEqual([{ jsonrpc: '2.0', id, result: { status: { state: 'cleared' } } }])
    }
  })

  it('L214: the older form with action "clear" is answered too', async () => {
    const { server, settle } = await open()
    await server.send({ action: 'clear', id: 'old-1', sessionId: 'session_abc', agentId: 'your-agent-id' })
    await settle()
    expect(server.of('agent_response')).toMatchObject([{ sessionId: 'session_abc', taskId: 'old-1' }])
    expect(server.details('old-1')).toMatchObject([{ result: { status: { state: 'cleared' } } }])
  })
})

describe('000: around it', () => {
  it('L54, L63: the clear is an event with session and id, also for a session never used', async () => {
    const events: unknown[] = []
    const { server, settle } = await open({ session_cleared: (event) => void events.push(event) })
    await server.send(CLEAR)
    await settle()
    expect(events).toMatchObject([{ channel: 'xiaoyi', sessionId: 'session_abc', id: 'msg_1234567890' }])
  })

  it('L201: the log has a line with session and id, and nothing of the payload', async () => {
    const { server, settle, logs } = await open()
    await server.send(CLEAR)
    await settle()
    const lines = logs.filter((line) => line.includes('msg_1234567890'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('session_abc')
    expect(lines[0]).toContain('"level":"info"')
  })

  it('L156: an ordinary answer has the fields of an artifact-update', async () => {
    const { server, settle } = await open()
    await server.send({
      jsonrpc: '2.0',
      id: 'msg_456',
      method: 'message/stream',
      sessionId: 'session_abc',
      params: {
        id: 'task_456',
        sessionId: 'session_abc',
        message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'say hello' }] },
      },
    })
    await settle(10_000)
    const artifacts = server
      .details('task_456')
      .filter(({ result }) => (result as { kind?: string }).kind === 'artifact-update')
    expect(artifacts.at(-1)).toMatchObject({
      jsonrpc: '2.0',
      id: 'msg_456',
      result: {
        taskId: 'task_456',
        kind: 'artifact-update',
        append: false,
        lastChunk: true,
        final: true,
        artifact: { artifactId: expect.any(String), parts: [{ kind: 'text', text: 'hello' }] },
      },
    })
  })
})
