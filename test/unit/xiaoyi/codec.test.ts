import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeRequest, pushIdOf } from '../../../src/channel/xiaoyi/codec.ts'
import { GatewayError } from '../../../src/core/errors.ts'

const LIMITS = { maxFrameBytes: 100_000, maxParts: 10 }
const decode = (frame: unknown) =>
  decodeRequest(typeof frame === 'string' ? frame : JSON.stringify(frame), 'your-agent-id', LIMITS)

describe('frames of the protocol summary', () => {
  test('3. A2A request: message/stream', () => {
    const frame = {
      jsonrpc: '2.0',
      id: 'request-id',
      method: 'message/stream',
      agentId: 'your-agent-id',
      deviceId: 'device-id',
      conversationId: 'conversation-id',
      sessionId: 'session-id',
      params: {
        id: 'task-id',
        sessionId: 'session-id',
        agentLoginSessionId: 'login-session-id',
        message: {
          kind: 'message-kind',
          messageId: 'message-id',
          role: 'user',
          parts: [{ kind: 'text', text: '用户消息内容' }],
        },
      },
    }
    expect(decode(frame)).toEqual({
      kind: 'message',
      id: 'request-id',
      sessionId: 'session-id',
      topSessionId: 'session-id',
      taskId: 'task-id',
      messageId: 'message-id',
      deviceId: 'device-id',
      parts: [{ kind: 'text', text: '用户消息内容' }],
    })
  })

  test('5. clearContext', () => {
    const frame = {
      jsonrpc: '2.0',
      id: 'request-id',
      method: 'clearContext',
      agentId: 'your-agent-id',
      sessionId: 'session-id',
    }
    expect(decode(frame)).toEqual({ kind: 'clear', id: 'request-id', sessionId: 'session-id' })
  })

  test('6. tasks/cancel', () => {
    const frame = {
      jsonrpc: '2.0',
      id: 'request-id',
      method: 'tasks/cancel',
      agentId: 'your-agent-id',
      sessionId: 'session-id',
      taskId: 'task-id',
    }
    expect(decode(frame)).toEqual({ kind: 'cancel', id: 'request-id', sessionId: 'session-id', taskId: 'task-id' })
  })

  test('parts: text, file with bytes or uri, data', () => {
    const file = { name: 'filename.pdf', mimeType: 'application/pdf' }
    const parts = [
      { kind: 'text', text: '消息文本内容' },
      { kind: 'file', file: { ...file, bytes: 'aGk=', uri: 'https://example.com/file.pdf' } },
      { kind: 'file', file: { ...file, uri: 'https://example.com/file.pdf' } },
      { kind: 'file', file: { name: '' } },
      { kind: 'data', data: { any: 1 } },
    ]
    expect(decode(message({ parts }))).toMatchObject({
      parts: [
        { kind: 'text', text: '消息文本内容' },
        { kind: 'file', ...file, source: { kind: 'bytes', base64: 'aGk=' } },
        { kind: 'file', ...file, source: { kind: 'uri', uri: 'https://example.com/file.pdf' } },
        { kind: 'file', name: 'file', mimeType: '', source: { kind: 'none' } },
        { kind: 'data', data: { any: 1 } },
      ],
    })
  })

  test('the clearContext request of the second document, which has neither params nor agent', () => {
    const frame = { jsonrpc: '2.0', id: 'msg_1234567890', sessionId: 'session_abc', method: 'clearContext' }
    expect(decode(frame)).toEqual({ kind: 'clear', id: 'msg_1234567890', sessionId: 'session_abc' })
  })

  test('the old format action: "clear"', () => {
    const frame = { agentId: 'your-agent-id', sessionId: 's', id: 'i', action: 'clear', timestamp: 1 }
    expect(decode(frame)).toEqual({ kind: 'clear', id: 'i', sessionId: 's' })
  })
})

function message(content: object, more: object = {}): object {
  return {
    jsonrpc: '2.0',
    id: 'r',
    method: 'message/stream',
    params: { id: 't', sessionId: 's', message: content },
    ...more,
  }
}

describe('what real services send beside it', () => {
  test('params.sessionId is the conversation, the top-level id only an alias', () => {
    expect(decode(message({ parts: [{ kind: 'text', text: 'x' }] }, { sessionId: 'launch-7' }))).toMatchObject({
      sessionId: 's',
      topSessionId: 'launch-7',
    })
  })

  test('numbers are ids too', () => {
    const params = { id: 7, sessionId: 8, message: { messageId: 9, parts: [{ kind: 'text', text: 'x' }] } }
    expect(decode({ id: 6, method: 'message/stream', params })).toMatchObject({ id: '6', taskId: '7', sessionId: '8' })
  })

  test('only data parts make an event; an unknown part beside them does not', () => {
    expect(decode(message({ parts: [{ kind: 'data', data: {} }] })).kind).toBe('event')
    expect(decode(message({ parts: [{ kind: 'data', data: {} }, { kind: 'hologram' }] })).kind).toBe('message')
    expect(decode(message({ parts: [] })).kind).toBe('message')
    expect(decode({ events: [], session: { sessionId: 's' } }).kind).toBe('event')
  })

  test('wrapped requests, whatever is inside', () => {
    const wrap = (msgType: string, inner: object) =>
      decode({ msgType, sessionId: 's', msgDetail: JSON.stringify(inner) })
    expect(wrap('message', message({ parts: [{ kind: 'text', text: 'x' }] })).kind).toBe('message')
    expect(wrap('clearContext', { id: 'c' })).toEqual({ kind: 'clear', id: 'c', sessionId: 's' })
    expect(decode({ msgType: 'heartbeat' }).kind).toBe('heartbeat')
  })

  test('anything that carries a message is one', () => {
    expect(decode({ ...message({ parts: [{ kind: 'text', text: 'x' }] }), method: 'tasks/send' }).kind).toBe('message')
  })

  test('an error of the service is not a request', () => {
    expect(decode({ sessionId: 's', error: { code: 99911113 } })).toEqual({ kind: 'peer-error', code: '99911113' })
  })

  test('frames for other agents are recognised at the top level and in params', () => {
    expect(decode({ agentId: 'other', sessionId: 's', method: 'clearContext' }).kind).toBe('foreign')
    expect(decode({ sessionId: 's', method: 'clearContext', params: { agentId: 'other' } }).kind).toBe('foreign')
  })

  test('an unknown method and broken params are rejected with their code', () => {
    expect(decode({ id: 'i', sessionId: 's', method: 'fly' })).toMatchObject({ kind: 'rejected', code: -32601 })
    expect(decode(message({}))).toMatchObject({ kind: 'rejected', code: -32602, taskId: 't' })
    expect(decode(message({ parts: Array.from({ length: 11 }, () => ({ kind: 'text', text: 'x' })) }))).toMatchObject({
      code: -32602,
    })
  })

  test('push_id is found in the object form and in both list forms', () => {
    const ids = [{ push_id: 'p' }, [{ push_id: 'p' }], [{ name: 'push_id', value: 'p' }]].map((systemVariables) =>
      pushIdOf([{ kind: 'data', data: { variables: { systemVariables } } }]),
    )
    expect(ids).toEqual(['p', 'p', 'p'])
    expect(pushIdOf([{ kind: 'text', text: 'push_id' }])).toBeUndefined()
  })
})

describe('hostile frames', () => {
  test('a frame over the limit is refused before it is parsed', () => {
    expect(() => decode('x'.repeat(100_001))).toThrow(expect.objectContaining({ code: 'FRAME_TOO_LARGE' }))
  })

  test('any JSON whatever gives a request or a GatewayError (seed 20260215)', () => {
    const keys = [
      'jsonrpc',
      'id',
      'method',
      'action',
      'params',
      'sessionId',
      'message',
      'parts',
      'kind',
      'msgType',
      'msgDetail',
      'error',
      'agentId',
    ]
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        fc.jsonValue({ maxDepth: 1 }),
        fc.constantFrom('message/stream', 'clearContext', 'tasks/cancel', 'clear', 'text', 'file', 'data', 'message'),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...keys), tie('node'), { maxKeys: 8 }),
      ),
    })).node
    const decodesOrRefuses = (frame: unknown): boolean => {
      try {
        return typeof decode(JSON.stringify(frame)).kind === 'string'
      } catch (error) {
        return error instanceof GatewayError
      }
    }
    fc.assert(fc.property(value, decodesOrRefuses), { seed: 20_260_215, numRuns: 2_000 })
  })
})
