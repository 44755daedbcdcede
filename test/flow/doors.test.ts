import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { SocketRefused } from '../../src/base/sockets.ts'
import { beginRpc, rpc, taskOf, textOf } from '../support/a2a-client.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { beginHttp, callHttp, eventsOf, type Answer, type Body } from '../support/http-client.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

interface Sent {
  readonly fields: Body
  readonly uid?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** One way in. An answer is the terminal frame, or the refusal with its code. */
interface Door {
  readonly name: string
  ask(gateway: MemoryGateway, sent: Sent): Promise<Body>
  /** Sends all at once, in this order; resolves when all are durable. The answers are left to themselves. */
  leave(gateway: MemoryGateway, sent: readonly Sent[]): Promise<void>
  /** What a client that comes back finds of a message it left. */
  fetch(gateway: MemoryGateway, sent: Sent): Promise<Body>
}

const queryOf = ({ uid }: Sent): string => (uid === undefined ? '' : `?uid=${uid}`)

const socket: Door = {
  name: 'the socket',
  async ask(gateway, sent) {
    try {
      return await (await gateway.connect(queryOf(sent), sent.headers ?? {})).ask(sent.fields)
    } catch (error) {
      if (error instanceof SocketRefused) return { status: error.status }
      throw error
    }
  },
  async leave(gateway, all) {
    const client = await gateway.connect(queryOf(all[0] ?? { fields: {} }))
    for (const { fields } of all) await client.send({ ...fields, ack: true })
    await gateway.clock.runUntil(() => client.frames.filter(({ type }) => type === 'accepted').length === all.length)
  },
  async fetch(gateway, sent) {
    const client = await gateway.connect(queryOf(sent))
    await gateway.clock.runUntil(() => client.terminal().some(({ messageId }) => messageId === sent.fields['id']))
    return client.terminal().find(({ messageId }) => messageId === sent.fields['id']) ?? {}
  },
}

const post = (sent: Sent, headers: Readonly<Record<string, string>> = {}) => ({
  body: sent.fields,
  headers: { ...sent.headers, ...headers },
})

const leaveOverHttp: Door['leave'] = async (gateway, all) => {
  const begun = all.map((sent) => {
    const path = `/api/messages${queryOf(sent)}${sent.uid === undefined ? '?' : '&'}wait=0`
    return beginHttp(gateway, path, post(sent))
  })
  await gateway.clock.runUntil(() => begun.every((one) => one.isDone()))
}

const http: Door = {
  name: 'HTTP',
  ask: async (gateway, sent) => {
    const { status, body } = await callHttp(gateway, `/api/messages${queryOf(sent)}`, post(sent))
    return { status, ...body }
  },
  leave: leaveOverHttp,
  fetch: (gateway, sent) => http.ask(gateway, sent),
}

const events: Door = {
  name: 'HTTP with events',
  ask: async (gateway, sent) => {
    const answer = await callHttp(gateway, `/api/messages${queryOf(sent)}`, post(sent, { accept: 'text/event-stream' }))
    return { status: answer.status, ...answer.body, ...eventsOf(answer.text).at(-1)?.data }
  },
  leave: leaveOverHttp,
  fetch: (gateway, sent) => events.ask(gateway, sent),
}

/** A client of OpenAI's API: the fields of a message in its terms, its answers and refusals in ours. */
const toOpenAi = ({ fields, headers }: Sent) => {
  const { id, content, session, type, peerId } = fields
  const messages = content === undefined ? [] : [{ role: 'user', content: peerId === undefined ? content : peerId }]
  // What is no letter cannot be in a header at all; a person's name comes in the body.
  const odd = [id, session].find((name) => typeof name === 'string' && /\p{Cc}/u.test(name))
  const named = (name: unknown): name is string => typeof name === 'string' && name !== odd
  return {
    body: type === undefined ? { model: 'clew', messages, ...(odd === undefined ? {} : { user: odd }) } : { type },
    isMessage: type === undefined,
    headers: {
      ...headers,
      ...(named(session) ? { 'x-clew-session': session } : {}),
      ...(named(id) ? { 'idempotency-key': id } : {}),
      'x-clew-detach': '1',
    },
  }
}

const openAiDoor = (name: string, path: string, read: (answer: Answer) => string): Door => ({
  name,
  async ask(gateway, sent) {
    const { fields } = sent
    const answer = await callHttp(gateway, `${path}${queryOf(sent)}`, requestFor(path, sent))
    const { error } = answer.body as { error?: { code: string; param: string | null } }
    if (error !== undefined && error !== null) return { status: answer.status, code: CODE_OF[error.code] ?? error.code }
    return {
      type: 'complete',
      status: answer.status,
      content: read(answer),
      session: answer.headers.get('x-clew-session'),
      messageId: fields['id'],
      runId: answer.body['id'],
      ...(answer.headers.get('x-clew-redelivered') === '1' ? { redelivered: true } : {}),
    }
  },
  async leave(gateway, all) {
    const open = (): number => gateway.app.sessions.activity().queued + gateway.app.sessions.activity().running
    const durable = open() + all.length
    const begun = all.map((sent) => beginHttp(gateway, `${path}${queryOf(sent)}`, requestFor(path, sent)))
    await gateway.clock.runUntil(() => open() === durable)
    for (const one of begun) one.drop()
  },
  fetch: (gateway, sent) => openAiDoor(name, path, read).ask(gateway, sent),
})

const requestFor = (path: string, sent: Sent) => {
  const { isMessage, ...request } = toOpenAi(sent)
  // A request is no frame with a type: one without any message in it is not understood either.
  if (!isMessage) return { ...request, headers: { ...request.headers, 'content-type': 'application/json' }, body: '[]' }
  if (path === '/v1/chat/completions') return request
  const { messages, ...rest } = request.body as Body
  return { ...request, body: { ...rest, input: messages } }
}

const CODE_OF: Readonly<Record<string, string>> = { invalid_api_key: 'UNAUTHORIZED' }

const completions = openAiDoor('Chat Completions', '/v1/chat/completions', ({ body }) =>
  String((body['choices'] as { message: Body }[])[0]?.message['content']),
)

const responses = openAiDoor('Responses', '/v1/responses', ({ body }) =>
  String((body['output'] as { content: Body[] }[])[0]?.content[0]?.['text']),
)

/** The codes of ours that an error of the protocol stands for. */
const CODES: Readonly<Record<number, string>> = { [-32_602]: 'FIELD_INVALID', [-32_601]: 'FRAME_MALFORMED' }

const a2aRequest = ({ fields }: Sent, returnImmediately: boolean): Body => {
  const { id = randomUUID(), content, session, type, peerId } = fields
  const parts = content === undefined ? [] : [{ text: content }]
  const message = { messageId: id, role: 'ROLE_USER', parts, contextId: session ?? peerId }
  return { method: type ?? 'SendMessage', params: { message, configuration: { returnImmediately } } }
}

const askA2a = async (gateway: MemoryGateway, sent: Sent, returnImmediately = false): Promise<Body> => {
  const { method, params } = a2aRequest(sent, returnImmediately)
  const { status, error, result } = await rpc(gateway, String(method), params as Body, {
    query: queryOf(sent),
    ...(sent.headers === undefined ? {} : { headers: sent.headers }),
  })
  if (error !== undefined) {
    const ours = error.data?.find(({ domain }) => domain === 'clew')
    return { status, code: ours?.['reason'] ?? CODES[error.code] }
  }
  const task = taskOf({ result, error } as never)
  const { session, redelivered } = task.metadata
  return {
    status,
    type: 'complete',
    session,
    runId: task.id,
    messageId: sent.fields['id'],
    content: textOf(task),
    ...(redelivered === true ? { redelivered } : {}),
  }
}

const a2a: Door = {
  name: 'A2A',
  ask: askA2a,
  leave: async (gateway, all) => {
    const begun = all.map((sent) => {
      const { method, params } = a2aRequest(sent, true)
      return beginRpc(gateway, String(method), params as Body, { query: queryOf(sent) })
    })
    await gateway.clock.runUntil(() => begun.every((one) => one.isDone()))
  },
  fetch: askA2a,
}

/** Every door passes these: what is promised does not depend on the way in. */
describe.each([socket, http, events, completions, responses, a2a])('$name', (door) => {
  it('answers in the session that was named, and goes on in it', async () => {
    const gateway = await openGateway()
    const say = (id: string, content: string) =>
      door.ask(gateway, { uid: 'ann', fields: { id, content, session: 'S' } })
    expect(await say('1', 'I like green tea')).toMatchObject({ type: 'complete', session: 's', messageId: '1' })
    expect((await say('2', 'What did I say?'))['content']).toContain('green tea')
  })

  it('answers everything it took before a crash, once and in order', async () => {
    const gateway = await openGateway()
    const sent = ['I like tea.', 'I like coffee.', 'What did I say?'].map((content, index): Sent => ({
      uid: 'ann',
      fields: { id: String(index), content, session: 's' },
    }))
    await door.leave(gateway, sent)
    const again = await restart(gateway)
    const last = sent.at(-1) as Sent
    expect((await door.fetch(again, last))['content']).toContain('coffee')
    const { messages } = await again.api('/api/sessions/s')
    const asked = (messages as { role: string; text: string }[]).filter(({ role }) => role === 'user')
    expect(asked.map(({ text }) => text)).toEqual(sent.map(({ fields }) => fields['content']))
  })

  it('recognises a message that comes again, by its owner', async () => {
    const gateway = await openGateway()
    const say = (uid: string) => door.ask(gateway, { uid, fields: { id: '1', content: 'Hello' } })
    const first = await say('ann')
    expect(await say('ann')).toMatchObject({ runId: first['runId'], redelivered: true })
    const other = await say('bob')
    expect(other).not.toHaveProperty('redelivered')
    expect(other['session']).not.toBe(first['session'])
  })

  it('keeps strangers, foreign pages and other tokens out', async () => {
    const config = {
      listen: {
        tokens: {
          ann: { token: 'token-of-ann-0123456789', sessions: 'own' },
          bob: { token: 'token-of-bob-0123456789', sessions: 'own' },
        },
      },
    }
    const gateway = await openGateway({ config })
    const fields = { id: '1', content: 'Hello', session: 'mine' }
    const as = (name: string) => ({ authorization: `Bearer token-of-${name}-0123456789` })
    expect(await door.ask(gateway, { fields })).toMatchObject({ status: 401 })
    const foreign = { ...as('ann'), origin: 'https://evil.example' }
    expect(await door.ask(gateway, { fields, headers: foreign })).toMatchObject({ status: 403 })
    expect(await door.ask(gateway, { fields, headers: as('ann') })).toMatchObject({ type: 'complete' })
    expect(await door.ask(gateway, { fields, headers: as('bob') })).toMatchObject({ code: 'SESSION_NOT_FOUND' })
  })

  it.each([
    ['an empty text', { content: ' ' }, 'FIELD_INVALID'],
    ['no text', { id: '1' }, 'FIELD_INVALID'],
    ['a control character in its id', { id: 'a\u0000', content: 'x' }, 'FIELD_INVALID'],
    ['a control character in its session', { content: 'x', session: 'a\u009f' }, 'FIELD_INVALID'],
    ['a field of the wrong type', { content: 'x', peerId: {} }, 'FIELD_INVALID'],
    ['a type that does not exist', { type: 'nonsense', content: 'x' }, 'FRAME_MALFORMED'],
  ])('refuses %s and stores nothing', async (_, fields, code) => {
    const gateway = await openGateway()
    expect(await door.ask(gateway, { uid: 'ann', fields })).toMatchObject({ code })
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 0 })
  })

  it('refuses more than a session may hold', async () => {
    const gateway = await openGateway({ config: { limits: { queued_per_session: 1 } } })
    const slow = (id: string): Sent => ({ uid: 'ann', fields: { id, content: 'count to 100', session: 's' } })
    await door.leave(gateway, [slow('1')])
    await door.leave(gateway, [slow('2')])
    expect(await door.ask(gateway, slow('3'))).toMatchObject({ code: 'QUEUE_FULL' })
  })
})

describe.each([socket, http, events])('files over $name', (door) => {
  it('are sent before, named by the message, and belong to their sender', async () => {
    const gateway = await openGateway()
    const upload = { method: 'POST', body: 'The password is swordfish', headers: { 'content-type': 'text/plain' } }
    const { body, status } = await callHttp(gateway, '/api/files?uid=ann', upload)
    expect([status, Object.keys(body)]).toEqual([201, ['id', 'name', 'mimeType', 'bytes', 'sha256']])
    const fields = { id: '1', content: 'Read this', session: 's', files: [{ id: body['id'] }] }
    expect(await door.ask(gateway, { uid: 'bob', fields })).toMatchObject({ code: 'FILE_NOT_FOUND' })
    expect(await door.ask(gateway, { uid: 'ann', fields })).toMatchObject({ type: 'complete' })
    expect(JSON.stringify(await gateway.api('/api/sessions/s'))).toContain('swordfish')
    const many = { ...fields, id: '2', files: Array.from({ length: 200 }, () => ({ id: body['id'] })) }
    expect(await door.ask(gateway, { uid: 'ann', fields: many })).toMatchObject({ code: 'FIELD_INVALID' })
  })
})
