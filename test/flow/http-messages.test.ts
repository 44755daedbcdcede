import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import type { Frame } from '../support/gateway.ts'
import { beginHttp, callHttp, eventsOf, type Body } from '../support/http-client.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

const SLOW = 'count to 100'

describe('POST /api/messages', () => {
  it('answers with the complete frame, its model and usage', async () => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, '/api/messages', { body: { id: 'a1', content: 'Hello' } })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      type: 'complete',
      content: expect.stringMatching(/./u),
      session: 'webhook:a1',
      messageId: 'a1',
      runId: expect.stringMatching(/^run_/u),
      seq: expect.any(Number),
      model: 'demo/demo',
      usage: { input: expect.any(Number), output: expect.any(Number), cacheRead: 0, cacheWrite: 0, usd: 0 },
    })
    expect(answer.body).not.toHaveProperty('redelivered')
  })

  it.each([
    ['what curl -d sends', 'application/x-www-form-urlencoded', '{"content":"Hello","session":"s"}'],
    ['JSON with a charset', 'application/json; charset=utf-8', '{"content":"Hello","session":"s"}'],
    ['text alone', 'text/plain', 'Hello'],
  ])('takes %s', async (_, type, body) => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, '/api/messages', { body, headers: { 'content-type': type } })
    expect(answer).toMatchObject({ status: 200, body: { type: 'complete' } })
  })

  it.each([
    ['an empty body', 'application/json', '', 400, 'FRAME_MALFORMED', undefined],
    ['no JSON', 'application/json', '{', 400, 'FRAME_MALFORMED', undefined],
    ['no object', 'application/json', '[1]', 400, 'FRAME_MALFORMED', undefined],
    ['a control frame', 'application/json', '{"type":"session.list"}', 400, 'FRAME_MALFORMED', undefined],
    ['no content', 'application/json', '{}', 400, 'FIELD_INVALID', 'content'],
    ['a wrong id', 'application/json', '{"content":"x","id":{}}', 400, 'FIELD_INVALID', 'id'],
    [
      'control characters',
      'application/json',
      '{"content":"x","session":"a\\u0007b"}',
      400,
      'FIELD_INVALID',
      'session',
    ],
    ['another type', 'application/xml', '<x/>', 415, 'CONTENT_TYPE_UNSUPPORTED', 'Content-Type'],
    ['too much', 'application/json', `{"content":"${'x'.repeat(2_000)}"}`, 413, 'FRAME_TOO_LARGE', undefined],
  ])('refuses %s', async (_, type, body, status, code, field) => {
    const gateway = await openGateway({ config: { limits: { body_bytes: 1_024 } } })
    const answer = await callHttp(gateway, '/api/messages', {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    })
    expect({ status: answer.status, code: answer.body['code'], field: answer.body['field'] }).toEqual({
      status,
      code,
      field,
    })
  })

  it('tells a request without a body from one without a type', async () => {
    const gateway = await openGateway()
    expect(await callHttp(gateway, '/api/messages', { method: 'POST' })).toMatchObject({
      status: 400,
      body: { code: 'FRAME_MALFORMED' },
    })
    const untyped = { method: 'POST', body: Buffer.from('{"content":"x"}') }
    expect(await callHttp(gateway, '/api/messages', untyped)).toMatchObject({
      status: 415,
      body: { code: 'CONTENT_TYPE_UNSUPPORTED' },
    })
  })

  it('names the methods that there are', async () => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, '/api/messages')
    expect(answer).toMatchObject({ status: 405, body: { code: 'METHOD_NOT_ALLOWED' } })
    expect(answer.headers.get('allow')).toBe('POST')
    expect(await callHttp(gateway, '/api/messages?wait=2', { body: { content: 'x' } })).toMatchObject({
      status: 400,
      body: { code: 'FIELD_INVALID', field: 'wait' },
    })
    expect(await callHttp(gateway, '/api/messages?uid=a%07', { body: { content: 'x' } })).toMatchObject({
      status: 400,
      body: { code: 'FIELD_INVALID', field: 'uid' },
    })
  })

  it('keeps the order of one session, whichever way messages come', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    await client.ask({ id: '1', content: 'I like green tea', session: 'tea' })
    const answer = await callHttp(gateway, '/api/messages?uid=ann', {
      body: { id: '2', content: 'What did I say?', session: 'tea' },
    })
    expect(answer.body['content']).toContain('green tea')
  })

  it('tells a failed turn by its status', async () => {
    const config = {
      model: 'gone/m',
      providers: { gone: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1' } },
    }
    const gateway = await openGateway({ config })
    const answer = await callHttp(gateway, '/api/messages', { body: { id: '1', content: 'Hello' } })
    expect(answer).toMatchObject({
      status: 503,
      body: { type: 'error', code: 'MODEL_NETWORK', session: 'webhook:1', messageId: '1', runId: expect.any(String) },
    })
    expect(answer.headers.get('retry-after')).not.toBeNull()
    const run = await callHttp(gateway, `/api/runs/${String(answer.body['runId'])}`)
    expect(run.body).toMatchObject({ state: 'error', code: 'MODEL_NETWORK' })
  })

  it('refuses more than the rate allows, by account, and more than the queue holds', async () => {
    const gateway = await openGateway({
      config: { limits: { frames_burst: 2, frames_per_second: 1, queued_per_session: 1 } },
    })
    const post = (uid: string): Promise<{ status: number; headers: Headers; body: Body }> =>
      callHttp(gateway, `/api/messages?wait=0&uid=${uid}`, { body: { content: SLOW, session: 's' } })
    expect([(await post('ann')).status, (await post('ann')).status]).toEqual([202, 202])
    const limited = await post('ann')
    expect(limited).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } })
    expect(limited.headers.get('retry-after')).toBe('1')
    const full = await post('bob')
    expect(full).toMatchObject({ status: 503, body: { code: 'QUEUE_FULL' } })
    expect(full.headers.get('retry-after')).toBe('1')
  })
})

describe('a client that comes again', () => {
  it('with the same key and body gets the same answer, with another body a conflict', async () => {
    const gateway = await openGateway()
    const send = (content: string, uid = 'ann', in_ = gateway) =>
      callHttp(in_, `/api/messages?uid=${uid}`, { body: { content }, headers: { 'idempotency-key': 'K1' } })
    const first = await send('Hello')
    expect(first.body).toMatchObject({ messageId: 'K1', session: 'webhook:k1' })
    expect((await send('Hello')).body).toEqual({ ...first.body, redelivered: true })
    expect(await send('Other')).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } })
    expect((await send('Hello', 'bob')).body).not.toHaveProperty('redelivered')
    const again = await restart(gateway)
    expect((await send('Hello', 'ann', again)).body).toEqual({ ...first.body, redelivered: true })
    expect(await send('Other', 'ann', again)).toMatchObject({ status: 409 })
  })

  it('without any identity is new every time, and never continues an automatic key', async () => {
    const gateway = await openGateway()
    const send = () =>
      callHttp(gateway, '/api/messages', { body: { id: '1', content: 'Hello' }, headers: { 'idempotency-key': 'K' } })
    const [first, second] = [await send(), await send()]
    expect(second.body).not.toHaveProperty('redelivered')
    expect(second.body['runId']).not.toBe(first.body['runId'])
    expect(second.body['session']).toMatch(/^webhook:k~[0-9a-f]{6}$/u)
  })

  it('with the same id and other content sends a new message', async () => {
    const gateway = await openGateway()
    const send = (content: string) => callHttp(gateway, '/api/messages?uid=ann', { body: { id: '1', content } })
    const first = await send('Hello')
    expect((await send('Hello')).body).toEqual({ ...first.body, redelivered: true })
    const other = await send('Hello again')
    expect(other.body).toMatchObject({ session: first.body['session'] })
    expect(other.body['runId']).not.toBe(first.body['runId'])
  })

  it('while its message is worked on waits for the same answer', async () => {
    const gateway = await openGateway()
    const begin = () => beginHttp(gateway, '/api/messages?uid=ann', { body: { id: '1', content: SLOW } })
    const both = [begin(), begin()]
    await gateway.clock.runUntil(() => both.every((one) => one.isDone()))
    const [first, second] = await Promise.all(both.map(({ answer }) => answer))
    expect(first?.body['runId']).toBe(second?.body['runId'])
  })
})

describe('a run', () => {
  it('is queued, running and complete, and answered although nobody waits', async () => {
    const gateway = await openGateway()
    const post = (content: string) => callHttp(gateway, '/api/messages?wait=0', { body: { content, session: 's' } })
    const [first, second] = [await post(SLOW), await post('What did I say?')]
    expect(first).toMatchObject({ status: 202, body: { session: 's', messageId: expect.any(String) } })
    const show = async (runId: unknown): Promise<Body> => (await callHttp(gateway, `/api/runs/${String(runId)}`)).body
    expect(await show(first.body['runId'])).toMatchObject({ state: 'running', acceptedAt: expect.any(Number) })
    expect(await show(second.body['runId'])).toMatchObject({ state: 'queued' })
    const events = await callHttp(gateway, `/api/runs/${String(second.body['runId'])}/events`)
    expect(eventsOf(events.text).at(-1)).toMatchObject({ event: 'complete' })
    expect(await show(second.body['runId'])).toMatchObject({
      state: 'complete',
      content: expect.stringContaining('count to 100'),
      endedAt: expect.any(Number),
    })
    expect(await callHttp(gateway, '/api/runs/run_unknown')).toMatchObject({
      status: 404,
      body: { code: 'RUN_NOT_FOUND' },
    })
  })

  it('that came over a socket is shown too, with what is known of the arrival of its answer', async () => {
    const tokens = {
      boss: { token: 'b', admin: true },
      ann: { token: 'a', sessions: 'own' },
      eve: { token: 'e', sessions: 'own' },
    }
    const gateway = await openGateway({ config: { listen: { tokens } } })
    const client = await gateway.connect('?token=a')
    // From here on this client confirms what it has.
    await client.send({ type: 'ack', seq: 0 })
    const answer = await client.ask({ id: 7, content: 'Hello', session: 's' })
    const path = `/api/runs/${String(answer['runId'])}`
    const as = (token: string, method = 'GET') =>
      callHttp(gateway, path, { method, headers: { authorization: `Bearer ${token}` } })
    const shown = {
      runId: answer['runId'],
      session: 's',
      messageId: 7,
      state: 'complete',
      content: answer['content'],
      acceptedAt: expect.any(Number),
      endedAt: expect.any(Number),
    }
    await expect.poll(() => as('a')).toMatchObject({ status: 200, body: { ...shown, delivery: 'unknown' } })
    expect(await as('b')).toMatchObject({ status: 200, body: { ...shown, delivery: 'unknown' } })
    expect(await as('e')).toMatchObject({ status: 404, body: { code: 'RUN_NOT_FOUND' } })
    await client.send({ type: 'ack', seq: answer['seq'] })
    // What a confirmation changes is stored with the next commit.
    await client.send({ id: 8, content: SLOW, session: 's', ack: true })
    const accepted = (): Frame | undefined => client.frames.find(({ type }) => type === 'accepted')
    await gateway.clock.runUntil(() => accepted() !== undefined)
    await expect.poll(() => as('a')).toMatchObject({ body: { ...shown, delivery: 'delivered' } })
    const running = `/api/runs/${String(accepted()?.['runId'])}`
    const own = { headers: { authorization: 'Bearer a' } }
    expect(await callHttp(gateway, running, own)).toMatchObject({ body: { messageId: 8, state: 'running' } })
    expect(await callHttp(gateway, `${running}/events`, own), 'its events go to its socket').toMatchObject({
      status: 404,
    })
    expect(await callHttp(gateway, running, { ...own, method: 'DELETE' })).toMatchObject({
      body: { state: 'cancelled', code: 'TURN_CANCELLED' },
    })
  })

  it('is cancelled before that is confirmed, and whoever waits is told', async () => {
    const gateway = await openGateway()
    const waiting = beginHttp(gateway, '/api/messages?uid=ann', { body: { id: '1', content: SLOW } })
    const { runId } = (await callHttp(gateway, '/api/messages?uid=ann&wait=0', { body: { id: '1', content: SLOW } }))
      .body
    const cancelled = await callHttp(gateway, `/api/runs/${String(runId)}`, { method: 'DELETE' })
    expect(cancelled).toMatchObject({ status: 200, body: { state: 'cancelled', code: 'TURN_CANCELLED' } })
    await gateway.clock.runUntil(() => waiting.isDone())
    expect(await waiting.answer).toMatchObject({ status: 409, body: { type: 'error', code: 'TURN_CANCELLED', runId } })
    const again = await callHttp(gateway, `/api/runs/${String(runId)}`, { method: 'DELETE' })
    expect(again).toMatchObject({ status: 200, body: { state: 'cancelled' } })
  })

  it.each([{ kill: true }, { kill: false }])('that was accepted is answered after a crash (%o)', async (how) => {
    const gateway = await openGateway()
    const { runId } = (await callHttp(gateway, '/api/messages?wait=0', { body: { content: SLOW } })).body
    const again = await restart(gateway, how)
    const events = await callHttp(again, `/api/runs/${String(runId)}/events`)
    expect(eventsOf(events.text).at(-1)?.event).toBe('complete')
    const run = await callHttp(again, `/api/runs/${String(runId)}`)
    expect(run.body).toMatchObject({ runId, state: 'complete', content: expect.stringMatching(/./u) })
    const third = await restart(again, how)
    expect((await callHttp(third, `/api/runs/${String(runId)}`)).body).toMatchObject({ state: 'complete' })
  })
})

describe('the event stream', () => {
  const streaming = { accept: 'text/event-stream' }

  it('shows the frames of the socket, numbered, and ends after the terminal one', async () => {
    const gateway = await openGateway()
    const answer = await callHttp(gateway, '/api/messages', { body: { id: '1', content: SLOW }, headers: streaming })
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    const events = eventsOf(answer.text)
    const types = events.map(({ event }) => event)
    expect(types[0]).toBe('accepted')
    expect(types.at(-1)).toBe('complete')
    expect(new Set(types)).toEqual(new Set(['accepted', 'event', 'progress', 'complete']))
    const numbers = events.map(({ id }) => id)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
    for (const { event, id, data } of events) expect(data).toMatchObject({ type: event, seq: id, messageId: '1' })
  })

  it('continues after a drop behind Last-Event-ID, also over a crash, and is empty behind the end', async () => {
    const gateway = await openGateway()
    const begun = beginHttp(gateway, '/api/messages?uid=ann', { body: { content: SLOW }, headers: streaming })
    await gateway.clock.runUntil(() => begun.received().includes('event: progress'))
    const seen = eventsOf(begun.received()).at(-1)
    begun.drop()
    const path = `/api/runs/${String(seen?.data['runId'])}/events`
    const rest = eventsOf((await callHttp(gateway, path, { headers: { 'last-event-id': String(seen?.id) } })).text)
    expect(rest.every(({ id }) => id > (seen?.id ?? 0))).toBe(true)
    const last = rest.at(-1)
    expect(last).toMatchObject({ event: 'complete' })
    const again = await restart(gateway)
    const replayed = eventsOf((await callHttp(again, path, { headers: { 'last-event-id': '0' } })).text)
    expect(replayed).toEqual([last])
    const nothing = await callHttp(again, path, { headers: { 'last-event-id': String(last?.id) } })
    expect(nothing).toMatchObject({ status: 200, text: '' })
    expect(await callHttp(again, path, { headers: { 'last-event-id': 'x' } })).toMatchObject({ status: 400 })
  })
})

describe('access', () => {
  const config = {
    listen: {
      tokens: {
        ann: { token: 'token-of-ann-0123456789', sessions: 'own' },
        bob: { token: 'token-of-bob-0123456789', sessions: 'own' },
      },
    },
  }
  const as = (name: string): Record<string, string> => ({ authorization: `Bearer token-of-${name}-0123456789` })

  it('needs the token, refuses foreign pages, and decides both before the body is looked at', async () => {
    const gateway = await openGateway({ config })
    const body = '{'
    expect(await callHttp(gateway, '/api/messages', { body })).toMatchObject({
      status: 401,
      body: { code: 'UNAUTHORIZED' },
    })
    expect(await callHttp(gateway, '/api/messages?token=token-of-ann-0123456789', { body })).toMatchObject({
      status: 401,
    })
    const foreign = { ...as('ann'), origin: 'https://evil.example' }
    expect(await callHttp(gateway, '/api/messages', { body, headers: foreign })).toMatchObject({ status: 403 })
  })

  it('keeps runs and conversations of other tokens out of sight', async () => {
    const gateway = await openGateway({ config })
    const begun = await callHttp(gateway, '/api/messages?wait=0', {
      body: { id: '1', content: 'Hello', session: 'mine' },
      headers: as('ann'),
    })
    const run = `/api/runs/${String(begun.body['runId'])}`
    expect(await callHttp(gateway, run, { headers: as('ann') })).toMatchObject({ status: 200 })
    for (const [method, path] of [
      ['GET', run],
      ['DELETE', run],
      ['GET', `${run}/events`],
      ['POST', '/api/sessions/mine/cleanup'],
    ] as const)
      expect(await callHttp(gateway, path, { method, headers: as('bob') })).toMatchObject({ status: 404 })
    const joining = { body: { content: 'x', session: 'mine' }, headers: as('bob') }
    expect(await callHttp(gateway, '/api/messages', joining)).toMatchObject({
      status: 404,
      body: { code: 'SESSION_NOT_FOUND' },
    })
    const same = { body: { id: '1', content: 'Hello' }, headers: as('bob') }
    expect((await callHttp(gateway, '/api/messages', same)).body).not.toHaveProperty('redelivered')
  })
})

describe('a conversation is tidied in its turn', () => {
  it('and the figures add up', async () => {
    const gateway = await openGateway({ config: { task: { auto_cleanup_enabled: false } } })
    await callHttp(gateway, '/api/messages', {
      body: { content: 'What is 17 * 23? Then what time is it?', session: 's' },
    })
    for (const verb of ['cleanup', 'compact']) {
      const { status, body } = await callHttp(gateway, `/api/sessions/s/${verb}`, { method: 'POST' })
      expect(status).toBe(200)
      const { tokensBefore, tokensAfter, saved, estimated } = body
      expect(Number(tokensBefore) - Number(tokensAfter)).toBe(saved)
      expect(typeof estimated).toBe('boolean')
    }
    const unknown = await callHttp(gateway, '/api/sessions/none/cleanup', { method: 'POST' })
    expect(unknown).toMatchObject({ status: 404, body: { code: 'SESSION_NOT_FOUND' } })
  })
})

describe('a stop', () => {
  it('tells those who wait that their message is stored', async () => {
    const gateway = await openGateway()
    const waiting = beginHttp(gateway, '/api/messages?uid=ann', { body: { id: '1', content: SLOW } })
    await gateway.clock.runUntil(() => gateway.app.sessions.activity().running === 1)
    await gateway.stop()
    expect(await waiting.answer).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN', messageId: '1' } })
  })
})
