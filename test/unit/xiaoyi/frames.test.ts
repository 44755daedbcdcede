import { expect, test } from 'vitest'
import {
  encodeArtifact,
  encodeCanceled,
  encodeCleared,
  encodeError,
  encodeHeartbeat,
  encodeInit,
  encodeStatus,
} from '../../../src/channel/xiaoyi/frames.ts'

const ADDRESS = { sessionId: 'session-id', taskId: 'task-id', requestId: 'message-id' }

/** The envelope, with its inner document parsed. */
function open(frame: string): unknown {
  const { msgDetail, ...outer } = JSON.parse(frame) as { msgDetail: string }
  return { ...outer, msgDetail: JSON.parse(msgDetail) as unknown }
}

const outer = (taskId = 'task-id') => ({
  msgType: 'agent_response',
  agentId: 'your-agent-id',
  sessionId: 'session-id',
  taskId,
})

test('1. the init message', () => {
  expect(JSON.parse(encodeInit('your-agent-id'))).toEqual({ msgType: 'clawd_bot_init', agentId: 'your-agent-id' })
})

test('2. the heartbeat, with the time of its own sending', () => {
  const frame = { msgType: 'heartbeat', agentId: 'your-agent-id', timestamp: 5 }
  expect(JSON.parse(encodeHeartbeat('your-agent-id', 5))).toEqual(frame)
})

test('4. the agent response: artifact update', () => {
  const update = { artifactId: 'artifact-id', append: false, lastChunk: true, final: true, part: { text: '响应内容' } }
  expect(open(encodeArtifact('your-agent-id', ADDRESS, update))).toEqual({
    ...outer(),
    msgDetail: {
      jsonrpc: '2.0',
      id: 'message-id',
      result: {
        taskId: 'task-id',
        kind: 'artifact-update',
        append: false,
        lastChunk: true,
        final: true,
        artifact: { artifactId: 'artifact-id', parts: [{ kind: 'text', text: '响应内容' }] },
      },
    },
  })
})

test('flags that are false are written too', () => {
  const update = { artifactId: 'a', append: false, lastChunk: false, final: false, part: { reasoningText: 'hm' } }
  expect(open(encodeArtifact('your-agent-id', ADDRESS, update))).toMatchObject({
    msgDetail: {
      result: {
        append: false,
        lastChunk: false,
        final: false,
        artifact: { parts: [{ kind: 'reasoningText', reasoningText: 'hm' }] },
      },
    },
  })
})

test.each(['submitted', 'working', 'input-required', 'completed', 'canceled', 'failed', 'unknown'] as const)(
  'the status update of a task that is %s',
  (state) => {
    expect(open(encodeStatus('your-agent-id', ADDRESS, { state, final: false }))).toEqual({
      ...outer(),
      msgDetail: {
        jsonrpc: '2.0',
        id: 'message-id',
        result: { taskId: 'task-id', kind: 'status-update', final: false, status: { state } },
      },
    })
  },
)

test('a status update with text, for those who configure it', () => {
  const frame = encodeStatus('your-agent-id', ADDRESS, { state: 'working', final: false, text: '正在处理...' })
  expect(open(frame)).toMatchObject({
    msgDetail: {
      result: {
        status: { state: 'working', message: { role: 'agent', parts: [{ kind: 'text', text: '正在处理...' }] } },
      },
    },
  })
})

test('the answer to clearContext, byte for byte as documented', () => {
  expect(encodeCleared('your-agent-id', { sessionId: 'session_abc', id: 'msg_1234567890' }, 'cleared')).toBe(
    JSON.stringify({
      msgType: 'agent_response',
      agentId: 'your-agent-id',
      sessionId: 'session_abc',
      taskId: 'msg_1234567890',
      msgDetail: '{"jsonrpc":"2.0","id":"msg_1234567890","result":{"status":{"state":"cleared"}}}',
    }),
  )
})

test('the answer to tasks/cancel', () => {
  const request = { sessionId: 'session-id', id: 'request-id', taskId: 'task-id' }
  expect(open(encodeCanceled('your-agent-id', request, 'canceled'))).toEqual({
    ...outer(),
    msgDetail: { jsonrpc: '2.0', id: 'request-id', result: { id: 'task-id', status: { state: 'canceled' } } },
  })
})

test('the error response', () => {
  expect(open(encodeError('your-agent-id', ADDRESS, { code: -32601, message: '错误描述' }))).toEqual({
    ...outer(),
    msgDetail: { jsonrpc: '2.0', id: 'message-id', error: { code: -32601, message: '错误描述' } },
  })
})
