import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { receiveCallbacks } from '../support/callback-receiver.ts'
import { callHttp } from '../support/http-client.ts'
import {
  answerOf,
  ask,
  begin,
  beginRpc,
  eventsOf,
  rest,
  rpc,
  taskOf,
  textOf,
  userMessage,
} from '../support/a2a-client.ts'

const { open, restart } = gatewaysOfThisFile()

const GONE = 'run_00000000000000000000'
const slow = 'count to 5000'

/** The requirements of the official compatibility kit (a2a-tck), by their ids, as far as they are a server's. */
describe('SendMessage', () => {
  it('CORE-SEND-001 CORE-MULTI-003 DM-TASK-001 DM-ART-001 answers with a task that has an id of its own', async () => {
    const gateway = await open()
    const [first, second] = [await ask(gateway, 'Hello'), await ask(gateway, 'Hello')]
    expect(first).toMatchObject({ id: expect.stringMatching(/^run_/u), status: { state: 'TASK_STATE_COMPLETED' } })
    expect(first.artifacts).toEqual([{ artifactId: 'answer', name: 'answer', parts: [expect.anything()] }])
    expect(second.id).not.toBe(first.id)
  })

  it('CORE-SEND-002 refuses a message to a task that has ended', async () => {
    const gateway = await open()
    const { id } = await ask(gateway, 'Hello')
    const { error } = await rpc(gateway, 'SendMessage', { message: userMessage('More', { taskId: id }) })
    expect(error).toMatchObject({ code: -32_004, data: [{ reason: 'UNSUPPORTED_OPERATION' }] })
  })

  it('CORE-SEND-003 refuses content it cannot take', async () => {
    const gateway = await open()
    const parts = [{ text: 'Look' }, { url: 'http://169.254.169.254/latest', mediaType: 'image/png' }]
    const { error } = await rpc(gateway, 'SendMessage', { message: userMessage('', { parts }) })
    expect(error).toMatchObject({ code: -32_005, data: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] })
  })

  it('CORE-EXECUTION-MODE-001 CORE-EXECUTION-MODE-002 waits for the end, or not at all', async () => {
    const gateway = await open()
    expect((await begin(gateway, slow)).status.state).toMatch(/SUBMITTED|WORKING/u)
    expect((await ask(gateway, slow)).status.state).toBe('TASK_STATE_COMPLETED')
  })

  it('CORE-MULTI-001a CORE-MULTI-002 names the context it made, and keeps the one it was given', async () => {
    const gateway = await open()
    const made = await ask(gateway, 'I like green tea')
    expect(made.contextId).not.toBe('')
    const again = await ask(gateway, 'What did I say?', { message: { contextId: made.contextId } })
    expect([again.contextId, textOf(again)]).toEqual([made.contextId, expect.stringContaining('green tea')])
    const given = await ask(gateway, 'Hello', { message: { contextId: 'My-Context' } })
    expect([given.contextId, given.metadata['session']]).toEqual(['My-Context', 'my-context'])
  })

  it('CORE-MULTI-004 CORE-MULTI-006 refuses a task that is not there, or of another context', async () => {
    const gateway = await open()
    const unknown = await rpc(gateway, 'SendMessage', { message: userMessage('Hi', { taskId: GONE }) })
    expect(unknown.error?.code).toBe(-32_001)
    const { id } = await begin(gateway, slow)
    const other = await rpc(gateway, 'SendMessage', { message: userMessage('Hi', { taskId: id, contextId: 'x' }) })
    expect(other.error?.code).toBe(-32_602)
  })

  it('CORE-MULTI-005 takes the answer to what a task asks, knowing its context', async () => {
    const gateway = await open({ config: { agent: { tools: ['calculator'], approve: ['calculator'] } } })
    const asking = await ask(gateway, 'What is 6 * 7?')
    expect(asking.status).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT' } })
    const wrong = await rpc(gateway, 'SendMessage', { message: userMessage('perhaps', { taskId: asking.id }) })
    expect(wrong.error?.code).toBe(-32_602)
    const done = await ask(gateway, 'approve', { message: { taskId: asking.id } })
    expect(done).toMatchObject({
      id: asking.id,
      contextId: asking.contextId,
      status: { state: 'TASK_STATE_COMPLETED' },
    })
    expect(textOf(done)).toContain('42')
    expect((await rpc(gateway, 'ListTasks', {})).result['totalSize']).toBe(1)
  })

  it('CORE-HIST-003 CORE-HIST-005 CORE-HIST-006 gives the history that was asked for, as it was said', async () => {
    const gateway = await open()
    const none = { message: userMessage('Hello'), configuration: { historyLength: 0 } }
    expect(taskOf(await rpc(gateway, 'SendMessage', none)).history).toBeUndefined()
    const { history } = await ask(gateway, 'Hello')
    expect(history).toMatchObject([{ role: 'ROLE_USER', parts: [{ text: 'Hello' }] }])
  })

  it('recognises a message that comes again', async () => {
    const gateway = await open()
    const again = { message: { messageId: 'same' }, query: '?uid=ann' }
    const first = await ask(gateway, 'Hello', again)
    expect(await ask(gateway, 'Hello', again)).toMatchObject({ id: first.id, metadata: { redelivered: true } })
  })

  it('takes files and data', async () => {
    const gateway = await open()
    const raw = Buffer.from('The password is swordfish').toString('base64')
    const parts = [{ text: 'Read this' }, { raw, filename: 'note.txt', mediaType: 'text/plain' }, { data: { a: 1 } }]
    const task = await ask(gateway, '', { message: { parts } })
    const { messages } = await gateway.api(`/api/sessions/${encodeURIComponent(String(task.metadata['session']))}`)
    expect(JSON.stringify(messages)).toContain('swordfish')
    expect(JSON.stringify(messages)).toContain(String.raw`{\"a\":1}`)
  })
})

describe('SendStreamingMessage and SubscribeToTask', () => {
  it('CORE-STREAM-001 CORE-STREAM-003 STREAM-ORDER-001 JSONRPC-SSE-001 begins with the task and ends with its end', async () => {
    const gateway = await open()
    const { events, headers } = await rpc(gateway, 'SendStreamingMessage', { message: userMessage('count to 200') })
    expect(headers.get('content-type')).toContain('text/event-stream')
    expect(Object.keys(events[0] ?? {})).toEqual(['task'])
    expect(events.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
    const id = (events[0] as { task: { id: string } }).task.id
    const { result } = await rpc(gateway, 'GetTask', { id })
    expect(shownText(events)).toBe(textOf(taskOf({ result, error: undefined } as never)))
    expect(events.filter((event) => 'artifactUpdate' in event).length).toBeGreaterThan(1)
  })

  it('STREAM-SUB-001 STREAM-SUB-002 STREAM-ORDER-002 STREAM-ORDER-003 STREAM-ORDER-004 many can follow, and leave', async () => {
    const gateway = await open()
    const { id } = await begin(gateway, slow)
    const followers = [1, 2, 3].map(() => beginRpc(gateway, 'SubscribeToTask', { id }))
    const [leaving, ...staying] = followers
    await gateway.clock.runUntil(() => followers.every((one) => eventsOf(one.received()).length > 1))
    leaving?.drop()
    await leaving?.answer.catch(() => undefined)
    await gateway.clock.runUntil(() => staying.every((one) => one.isDone()))
    const answers = await Promise.all(staying.map(answerOf))
    for (const { events } of answers) {
      expect(events[0]).toMatchObject({ task: { id } })
      expect(events.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
    }
    expect(new Set(answers.map(({ events }) => shownText(events))).size).toBe(1)
  })

  it('STREAM-SUB-003 STREAM-SUB-004 refuses to follow what has ended or never was', async () => {
    const gateway = await open()
    const { id } = await ask(gateway, 'Hello')
    expect((await rpc(gateway, 'SubscribeToTask', { id })).error?.code).toBe(-32_004)
    expect((await rpc(gateway, 'SubscribeToTask', { id: GONE })).error?.code).toBe(-32_001)
  })
})

describe('GetTask, ListTasks and CancelTask', () => {
  it('CORE-GET-001 CORE-GET-002 CORE-HIST-001 CORE-HIST-002 shows a task', async () => {
    const gateway = await open()
    const task = await ask(gateway, 'Hello')
    expect(taskOf(await rpc(gateway, 'GetTask', { id: task.id }))).toEqual(task)
    expect((await rpc(gateway, 'GetTask', { id: task.id, historyLength: 0 })).result).not.toHaveProperty('history')
    expect((await rpc(gateway, 'GetTask', { id: task.id, historyLength: 1 })).result['history']).toHaveLength(1)
    expect((await rpc(gateway, 'GetTask', { id: GONE })).error?.code).toBe(-32_001)
  })

  it('CORE-LIST-001 lists what the caller may see', async () => {
    const tokens = { ann: { token: 'ann-0123456789abcdef', sessions: 'own' }, bob: { token: 'bob-0123456789abcdef' } }
    const gateway = await open({ config: { listen: { tokens } } })
    const as = (name: string) => ({ headers: { authorization: `Bearer ${name}-0123456789abcdef` } })
    const task = await ask(gateway, 'Hello', as('ann'))
    expect((await rpc(gateway, 'ListTasks', {}, as('ann'))).result).toMatchObject({ tasks: [{ id: task.id }] })
    expect((await rpc(gateway, 'ListTasks', {}, as('bob'))).result).toMatchObject({ totalSize: 0 })
    expect((await rpc(gateway, 'GetTask', { id: task.id }, as('bob'))).error?.code).toBe(-32_001)
    expect((await rpc(gateway, 'CancelTask', { id: task.id }, as('bob'))).error?.code).toBe(-32_001)
  })

  it('CORE-LIST-002 CORE-LIST-003 CORE-LIST-004 CORE-LIST-005 in pages, the latest first', async () => {
    const gateway = await open()
    const ids: string[] = []
    for (let index = 0; index < 5; index++) ids.unshift((await ask(gateway, `Hello ${index}`)).id)
    const seen: string[] = []
    let pageToken = ''
    do {
      const { result } = await rpc(gateway, 'ListTasks', { pageSize: 2, pageToken })
      expect(result).toMatchObject({ totalSize: 5, pageSize: 2, nextPageToken: expect.any(String) })
      const tasks = result['tasks'] as { id: string; artifacts?: unknown }[]
      expect(tasks.every((task) => !('artifacts' in task))).toBe(true)
      seen.push(...tasks.map(({ id }) => id))
      pageToken = String(result['nextPageToken'])
    } while (pageToken !== '')
    expect(seen).toEqual(ids)
    const whole = await rpc(gateway, 'ListTasks', { includeArtifacts: true, status: 'TASK_STATE_COMPLETED' })
    expect(whole.result).toMatchObject({
      pageSize: 50,
      tasks: [{ artifacts: [{ artifactId: 'answer' }] }, {}, {}, {}, {}],
    })
    expect((await rpc(gateway, 'ListTasks', { status: 'TASK_STATE_FAILED' })).result['totalSize']).toBe(0)
  })

  it.each([
    ['pageSize', 0],
    ['pageSize', -1],
    ['pageSize', 101],
    ['pageToken', 'no-token'],
    ['historyLength', -1],
    ['status', 'TASK_STATE_NONSENSE'],
    ['statusTimestampAfter', 'yesterday'],
  ])('CORE-ERR-002 refuses a list by %s %s', async (field, value) => {
    const gateway = await open()
    expect((await rpc(gateway, 'ListTasks', { [field]: value })).error?.code).toBe(-32_602)
  })

  it('CORE-CANCEL-001 CORE-CANCEL-002 CORE-CANCEL-003 cancels before it answers', async () => {
    const gateway = await open()
    const { id } = await begin(gateway, slow)
    const cancelled = taskOf(await rpc(gateway, 'CancelTask', { id }))
    expect(cancelled.status.state).toBe('TASK_STATE_CANCELED')
    expect(await gateway.api('/api/status')).toMatchObject({ activity: { running: 0, queued: 0 } })
    expect((await rpc(gateway, 'CancelTask', { id })).error?.code).toBe(-32_002)
    expect((await rpc(gateway, 'CancelTask', { id: GONE })).error?.code).toBe(-32_001)
  })

  it('forgets what it showed once a task has ended', async () => {
    const gateway = await open()
    await ask(gateway, 'What is 6 * 7?')
    const message = userMessage('Hello', { messageId: 'again' })
    for (let times = 0; times < 2; times++) {
      const { events } = await rpc(gateway, 'SendStreamingMessage', { message }, { query: '?uid=ann' })
      expect(JSON.stringify(events.at(-1))).toContain('TASK_STATE_COMPLETED')
    }
    await gateway.clock.advance(60_000)
    expect(await gateway.api('/api/status')).toMatchObject({ channels: { a2a: { openTasks: 0 } } })
  })

  it('keeps tasks over a crash', async () => {
    const gateway = await open()
    const { id } = await begin(gateway, slow)
    const again = await restart(gateway)
    const { events, error } = await rpc(again, 'SubscribeToTask', { id })
    if (error === undefined) expect(events.at(-1)).toMatchObject({ statusUpdate: { taskId: id } })
    expect(taskOf(await rpc(again, 'GetTask', { id })).status.state).toBe('TASK_STATE_COMPLETED')
  })
})

describe('JSON-RPC', () => {
  it.each([
    ['JSONRPC-ERR-001 broken JSON', '{"jsonrpc": "2.0", "method":', -32_700, 400],
    ['JSONRPC-ERR-001 nothing', '', -32_700, 400],
    ['JSONRPC-FMT-001 another version of it', '{"jsonrpc":"aaa","id":1,"method":"SendMessage"}', -32_600, 200],
    ['JSONRPC-FMT-001 no method', '{"jsonrpc":"2.0","id":1}', -32_600, 200],
    ['JSONRPC-FMT-001 an id that cannot be one', '{"jsonrpc":"2.0","id":{},"method":"GetTask"}', -32_600, 200],
    ['JSONRPC-FMT-001 a batch', '[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', -32_600, 200],
    ['JSONRPC-SVC-001 an unknown method', '{"jsonrpc":"2.0","id":1,"method":"Nonsense","params":{}}', -32_601, 200],
    ['CORE-ERR-002 parameters of no use', '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"":1}}', -32_602, 200],
    ['CORE-ERR-002 parameters in a list', '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32_602, 200],
    [
      'CORE-ERR-002 an id that is no text',
      '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":{}}}',
      -32_602,
      200,
    ],
  ])('%s', async (_, body, code, status) => {
    const gateway = await open()
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
    const answer = await callHttp(gateway, '/a2a', { method: 'POST', body, headers })
    expect(answer).toMatchObject({ status, body: { jsonrpc: '2.0', error: { code, message: expect.any(String) } } })
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 0 })
  })

  it.each([
    ['no message', {}],
    ['no id', { message: { role: 'ROLE_USER', parts: [{ text: 'x' }] } }],
    ['no parts', { message: { messageId: '1', role: 'ROLE_USER', parts: [] } }],
    ['a part without content', { message: { messageId: '1', role: 'ROLE_USER', parts: [{}] } }],
    ['a part that is nothing', { message: { messageId: '1', role: 'ROLE_USER', parts: [null] } }],
    ['the role of the agent', { message: { messageId: '1', role: 'ROLE_AGENT', parts: [{ text: 'x' }] } }],
    ['a control character', { message: userMessage('x', { contextId: 'a\u009f' }) }],
  ])('CORE-ERR-002 DM-MSG-001 DM-PART-001 DM-SERIAL-004 refuses %s', async (_, params) => {
    const gateway = await open()
    expect((await rpc(gateway, 'SendMessage', params)).error?.code).toBe(-32_602)
  })

  it('JSONRPC-FMT-002 answers with JSON, and takes nothing else', async () => {
    const gateway = await open()
    const { headers } = await rpc(gateway, 'ListTasks', {})
    expect(headers.get('content-type')).toBe('application/json')
    const xml = { method: 'POST', body: '<x/>', headers: { 'content-type': 'text/xml' } }
    expect(await callHttp(gateway, '/a2a', xml)).toMatchObject({ status: 415, body: { error: { code: -32_005 } } })
    expect((await callHttp(gateway, '/a2a')).status).toBe(405)
  })

  it('JSONRPC-ERR-002 JSONRPC-ERR-003 JSONRPC-SSE-002 tells why in the protocol’s words', async () => {
    const gateway = await open()
    const { error } = await rpc(gateway, 'GetTask', { id: GONE })
    expect(error?.data).toContainEqual(
      expect.objectContaining({ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }),
    )
  })

  it('DM-SERIAL-001 DM-SERIAL-002 DM-SERIAL-003 DM-SERIAL-005 DM-TASK-002 DM-STATUS-001 DM-MSG-002 writes and reads as it should', async () => {
    const gateway = await open()
    const task = await ask(gateway, 'Hello', { message: { nonsense: { from: 'the future' } } })
    expect(task.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u)
    expect(task.status.state).toMatch(/^TASK_STATE_/u)
    expect(JSON.stringify(task)).not.toMatch(/"[a-z]+_[a-z_]+":/u)
  })

  it('VER-SERVER-001 VER-SERVER-002 VER-SERVER-003 JSONRPC-SVC-002 speaks 1.0 and 0.3, and 0.3 when it is not told', async () => {
    const gateway = await open()
    const unknown = await rpc(gateway, 'ListTasks', {}, { headers: { 'a2a-version': '9.9' } })
    expect(unknown.error).toMatchObject({ code: -32_009, data: [{ reason: 'VERSION_NOT_SUPPORTED' }] })
    const message = { kind: 'message', messageId: 'old', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] }
    for (const version of ['', '0.3']) {
      const { result } = await rpc(gateway, 'message/send', { message }, { headers: { 'a2a-version': version } })
      expect(result).toMatchObject({ kind: 'task', status: { state: 'completed' } })
    }
    expect((await rpc(gateway, 'message/send', { message })).error?.code).toBe(-32_601)
  })

  it('refuses a message that is too large, and one too many', async () => {
    const gateway = await open({ config: { limits: { body_bytes: 2_000, frames_burst: 3, frames_per_second: 1 } } })
    const large = await rpc(gateway, 'SendMessage', { message: userMessage('x'.repeat(3_000)) })
    expect(large.status).toBe(413)
    const burst = Array.from({ length: 5 }, () => beginRpc(gateway, 'ListTasks', {}))
    await gateway.clock.runUntil(() => burst.every((one) => one.isDone()))
    const last = await answerOf(burst.at(-1) as never)
    expect(last).toMatchObject({ status: 429, error: { code: -32_000, data: [{ reason: 'RATE_LIMITED' }] } })
    expect(last.headers.get('retry-after')).toBe('1')
  })
})

describe('HTTP+JSON', () => {
  it('HTTP_JSON-URL-001 HTTP_JSON-URL-002 HTTP_JSON-SSE-001 HTTP_JSON-QP-001 BIND-EQUIV-001 BIND-EQUIV-002 does the same', async () => {
    const gateway = await open()
    const sent = await rest(gateway, '/message:send', { body: { message: userMessage('Hello') } })
    const task = sent.body['task'] as { id: string }
    expect(taskOf(await rpc(gateway, 'GetTask', { id: task.id }))).toEqual(task)
    expect((await rest(gateway, `/tasks/${task.id}?historyLength=0`)).body).not.toHaveProperty('history')
    expect((await rest(gateway, '/tasks?pageSize=1&includeArtifacts=true')).body).toMatchObject({
      pageSize: 1,
      totalSize: 1,
    })
    const { text } = await rest(gateway, '/message:stream', { body: { message: userMessage('count to 20') } })
    expect(text.split('\n\n')[0]).toMatch(/^data: \{"task":/u)
    const { id } = await begin(gateway, slow)
    expect((await rest(gateway, `/tasks/${id}:cancel`, { method: 'POST' })).body).toMatchObject({ id })
    expect((await rest(gateway, '/extendedAgentCard')).body).toMatchObject({ name: 'Clew' })
  })

  it('HTTP_JSON-ERR-001 HTTP_JSON-ERR-002 HTTP_JSON-STATUS-001 BIND-EQUIV-003 refuses with the right status', async () => {
    const gateway = await open()
    const { status, body } = await rest(gateway, `/tasks/${GONE}`)
    expect([status, body]).toMatchObject([
      404,
      {
        error: { code: 404, status: 'NOT_FOUND', details: [{ reason: 'TASK_NOT_FOUND' }, { reason: 'RUN_NOT_FOUND' }] },
      },
    ])
    const { id } = await ask(gateway, 'Hello')
    expect((await rest(gateway, `/tasks/${id}:cancel`, { method: 'POST' })).status).toBe(400)
    expect((await rest(gateway, '/message:send', { method: 'POST', body: {} })).status).toBe(400)
    expect((await rest(gateway, '/tasks?pageSize=many')).status).toBe(400)
    expect((await rest(gateway, '/tasks/%E0%A4%A', {})).status).toBe(400)
    expect((await rest(gateway, '/nowhere')).status).toBe(404)
    const wrong = await rest(gateway, '/message:send')
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
    expect((await rest(gateway, '/tasks', { headers: { 'a2a-version': '' } })).status).toBe(400)
  })
})

describe('the agent card', () => {
  it('CARD-DISC-001 CARD-PROTO-001 CARD-PROTO-002 CARD-STRUCT-001 CARD-CACHE-001 CARD-CACHE-002 BIND-FIELD-001 is where it belongs', async () => {
    const gateway = await open({ config: { a2a: { name: 'Ann', public_url: 'https://ann.example/' } } })
    const { status, headers, body } = await callHttp(gateway, '/.well-known/agent-card.json')
    expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=60'])
    expect(headers.get('etag')).toMatch(/^".+"$/u)
    expect(body).toMatchObject({
      name: 'Ann',
      supportedInterfaces: [
        { url: 'https://ann.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: 'https://ann.example/a2a/v1', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { url: 'https://ann.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      ],
      capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
      skills: [{ id: 'chat' }],
    })
  })

  it('AUTH-SERVER-002 CARD-EXT-001 BIND-EQUIV-004 is public; everything else needs the token', async () => {
    const skills = [{ id: 'secret', name: 'Secret', description: 'For friends.' }]
    const config = { listen: { token: 'token-0123456789abcdef' }, a2a: { extended_skills: skills } }
    const gateway = await open({ config })
    const card = await callHttp(gateway, '/.well-known/agent-card.json')
    const wrong = await callHttp(gateway, '/.well-known/agent-card.json', { body: {} })
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(wrong.body).toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
    expect(card.text).toContain('Bearer')
    expect(card.text).not.toContain('secret')
    const refused = await rpc(gateway, 'GetExtendedAgentCard', {})
    expect(refused).toMatchObject({ status: 401, error: { data: [{ reason: 'UNAUTHORIZED' }] } })
    expect(refused.headers.get('www-authenticate')).toBe('Bearer')
    expect((await rest(gateway, '/tasks')).body).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } })
    const headers = { authorization: 'Bearer token-0123456789abcdef' }
    expect((await rpc(gateway, 'GetExtendedAgentCard', {}, { headers })).result['skills']).toHaveLength(2)
    expect(
      (await rpc(gateway, 'ListTasks', {}, { headers: { ...headers, origin: 'https://evil.example' } })).status,
    ).toBe(403)
  })

  it('is not there when it is switched off', async () => {
    const gateway = await open({ config: { a2a: { enabled: false } } })
    expect((await callHttp(gateway, '/.well-known/agent-card.json')).status).toBe(404)
    expect((await rpc(gateway, 'ListTasks', {})).status).toBe(404)
  })
})

describe('push notifications', () => {
  const url = 'https://hook.example/a2a'
  const config = { url, token: 'tok', authentication: { scheme: 'Bearer', credentials: 'secret' } }

  it('PUSH-CREATE-001 PUSH-GET-001 PUSH-GET-002 PUSH-LIST-001 PUSH-DEL-001 PUSH-DEL-002 PUSH-CREATE-002 are kept, also over a crash', async () => {
    const gateway = await open()
    const { id: taskId } = await begin(gateway, slow)
    const made = (await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, ...config })).result
    expect(made).toMatchObject({ taskId, ...config, id: expect.any(String) })
    const again = await restart(gateway)
    expect((await rpc(again, 'GetTaskPushNotificationConfig', { taskId, id: made['id'] })).result).toEqual(made)
    expect((await rpc(again, 'ListTaskPushNotificationConfigs', { taskId })).result['configs']).toEqual([made])
    expect((await rpc(again, 'GetTaskPushNotificationConfig', { taskId, id: 'other' })).error?.code).toBe(-32_001)
    for (let times = 0; times < 2; times++) {
      const gone = await rpc(again, 'DeleteTaskPushNotificationConfig', { taskId, id: made['id'] })
      expect(gone.error).toBeUndefined()
    }
    expect((await rpc(again, 'GetTaskPushNotificationConfig', { taskId, id: made['id'] })).error?.code).toBe(-32_001)
    expect((await rpc(again, 'CreateTaskPushNotificationConfig', { taskId: GONE, ...config })).error?.code).toBe(
      -32_001,
    )
  })

  it.each([
    'http://127.0.0.1/x',
    'http://[::1]/x',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/',
    'http://2130706433/',
    'file:///etc/passwd',
    'https://user:secret@hook.example/',
    'nonsense',
    '',
  ])('never go to %s', async (bad) => {
    const gateway = await open()
    const { id: taskId } = await ask(gateway, 'Hello')
    const late = await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, url: bad })
    expect(late.error?.code).toBe(-32_602)
    const configuration = { taskPushNotificationConfig: { url: bad } }
    const early = await rpc(gateway, 'SendMessage', { message: userMessage('Hello'), configuration })
    expect(early.error?.code).toBe(-32_602)
  })

  const hooks = { config: { limits: { callback_hosts: ['hooks.internal'] } } }
  const hook = { ...config, url: 'http://hooks.internal:9000/hook' }

  it('PUSH-DELIVER-001 PUSH-DELIVER-002 PUSH-DELIVER-003 tell every change, the end last', async () => {
    const gateway = await open(hooks)
    const received = await receiveCallbacks(gateway)
    const configuration = { taskPushNotificationConfig: hook }
    const { id } = taskOf(await rpc(gateway, 'SendMessage', { message: userMessage(slow), configuration }))
    const bodies = (): Record<string, unknown>[] => received.map(({ body }) => JSON.parse(body) as never)
    await gateway.clock.runUntil(() => bodies().some((body) => 'task' in body))
    expect(bodies()[0]).toMatchObject({ statusUpdate: { taskId: id, status: { state: 'TASK_STATE_WORKING' } } })
    expect(bodies().at(-1)).toMatchObject({ task: { id, status: { state: 'TASK_STATE_COMPLETED' } } })
    const { headers } = received.at(-1) ?? { headers: new Headers() }
    expect(headers.get('authorization')).toBe('Bearer secret')
    expect(headers.get('x-a2a-notification-token')).toBe('tok')
    expect(headers.get('content-type')).toBe('application/a2a+json')
  })

  it('are tried again over a restart until they are taken, in the shape of version 0.3 for its clients', async () => {
    const gateway = await open(hooks)
    const refused = await receiveCallbacks(
      gateway,
      Array.from({ length: 100 }, () => 500),
    )
    const message = { kind: 'message', messageId: 'old', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] }
    const configuration = { blocking: true, pushNotificationConfig: { id: 'one', ...hook, authentication: undefined } }
    const options = { headers: { 'a2a-version': '0.3' } }
    const { result } = await rpc(gateway, 'message/send', { message, configuration }, options)
    await gateway.clock.runUntil(() => refused.length > 2)
    const again = await restart(gateway)
    const received = await receiveCallbacks(again)
    await again.clock.runUntil(() => received.length > 0)
    // A database is told of a delivery a moment later; a power cut before that would repeat it, marked or not.
    await again.clock.advance(1_000)
    expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({
      kind: 'task',
      id: result['id'],
      status: { state: 'completed' },
    })
    const third = await restart(again)
    const later = await receiveCallbacks(third)
    await third.clock.advance(3_600_000)
    expect(later).toEqual([])
  })

  it('have headers that cannot be split, and are not too many', async () => {
    const gateway = await open()
    const { id: taskId } = await ask(gateway, 'Hello')
    const split = await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, url, token: 'a\r\nx: y' })
    expect(split.error?.code).toBe(-32_602)
    for (let index = 0; index < 10; index++)
      expect((await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, url })).error).toBeUndefined()
    expect((await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, url })).error?.code).toBe(-32_602)
  })
})

function shownText(events: readonly Record<string, unknown>[]): string {
  let text = ''
  for (const event of events) {
    const task = event['task'] as { artifacts?: { parts: { text: string }[] }[] } | undefined
    if (task !== undefined) text = task.artifacts?.[0]?.parts[0]?.text ?? ''
    const update = event['artifactUpdate'] as { append?: boolean; artifact: { parts: { text?: string }[] } } | undefined
    if (update === undefined) continue
    const piece = update.artifact.parts[0]?.text ?? ''
    text = update.append === true ? text + piece : piece
  }
  return text
}
