import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { documentedRoutes } from '../support/documented-routes.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()

type Json = Record<string, unknown>

async function ask(gateway: MemoryGateway, method: string, path: string, body?: unknown): Promise<Json> {
  const { status, text } = await gateway.request(path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status, ...(JSON.parse(text) as Json) }
}

/** A conversation of three steps; the first two use tools, so that rounds are cleaned up. */
async function conversation(gateway: MemoryGateway): Promise<void> {
  const client = await gateway.connect()
  await client.ask({ id: '1', content: 'What is 12 * (3 + 4)? And what time is it?', session: 's' })
  await client.ask({ id: '2', content: 'What is 17 * 23? And what time is it?', session: 's' })
  await client.ask({ id: '3', content: 'Thank you', session: 's' })
}

interface Sent {
  readonly entries: readonly string[]
  readonly tokens: number
  readonly state: string
}

describe('a list of conversations', () => {
  it('shows title, preview, count, state and model without opening a transcript', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const { sessions } = (await ask(gateway, 'GET', '/api/sessions')) as { sessions: Json[] }
    expect(sessions).toHaveLength(1)
    expect(sessions[0]).toMatchObject({
      key: 's',
      title: 'What is 12 * (3 + 4)? And what time is it?',
      state: 'idle',
      queued: 0,
    })
    expect(sessions[0]?.['messages']).toBeGreaterThan(6)
    expect(sessions[0]?.['contextTokens']).toBeGreaterThan(0)
    expect(String(sessions[0]?.['preview'])).not.toBe('')
  })

  it('can be filtered by text, channel and state, and shows archived conversations on their own', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const count = async (query: string): Promise<unknown> =>
      (await ask(gateway, 'GET', `/api/sessions?${query}`))['count']
    expect(await count('q=12%20*')).toBe(1)
    expect(await count('q=nothing')).toBe(0)
    expect(await count('channel=webhook')).toBe(1)
    expect(await count('channel=xiaoyi')).toBe(0)
    expect(await count('state=running')).toBe(0)
    expect(await count('archived=1')).toBe(0)
    const [before] = ((await ask(gateway, 'GET', '/api/sessions')) as { sessions: Json[] }).sessions
    await ask(gateway, 'POST', '/api/sessions/s/reset')
    const archived = (await ask(gateway, 'GET', '/api/sessions?archived=1')) as { sessions: Json[] }
    expect(archived.sessions).toMatchObject([
      { of: 's', archived: true, title: 'What is 12 * (3 + 4)? And what time is it?', preview: before?.['preview'] },
    ])
    expect(await count('archived=1&q=12%20*')).toBe(1)
    expect(await count('archived=1&q=nothing')).toBe(0)
    const earlier = `/api/sessions/${encodeURIComponent(String(archived.sessions[0]?.['key']))}`
    const { messages } = (await ask(gateway, 'GET', `${earlier}/messages`)) as { messages: Json[] }
    expect(messages[0]).toMatchObject({ text: 'What is 12 * (3 + 4)? And what time is it?' })
    expect(
      ((await ask(gateway, 'GET', `${earlier}/requests`)) as { requests: Json[] }).requests.length,
    ).toBeGreaterThan(4)
    expect(await ask(gateway, 'GET', '/api/sessions/s%23sess_0/messages')).toMatchObject({ status: 404 })
    const [present] = ((await ask(gateway, 'GET', '/api/sessions')) as { sessions: Json[] }).sessions
    expect(present).not.toHaveProperty('title')
    await ask(gateway, 'POST', '/api/sessions/s/restore', { archive: archived.sessions[0]?.['sessionId'] })
    const [restored] = ((await ask(gateway, 'GET', '/api/sessions')) as { sessions: Json[] }).sessions
    const shown = ['title', 'preview', 'messages', 'contextTokens'].map((name) => [name, before?.[name]])
    expect(shown.every(([, value]) => value !== undefined)).toBe(true)
    expect(restored).toMatchObject(Object.fromEntries(shown) as Json)
  })

  it('takes a name, keeps it over a restart and writes it into the transcript', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    expect(await ask(gateway, 'PATCH', '/api/sessions/s', { title: '  Sums ' })).toMatchObject({ title: 'Sums' })
    expect(await ask(gateway, 'PATCH', '/api/sessions/s', { title: '' })).toMatchObject({ status: 400 })
    const again = await gateway.restart()
    const { sessions } = (await ask(again, 'GET', '/api/sessions')) as { sessions: Json[] }
    expect(sessions[0]).toMatchObject({ title: 'Sums' })
    const { text } = await again.request('/api/sessions/s/export?format=jsonl')
    expect(text).toContain('"session_info"')
  })
})

describe('messages', () => {
  it('say of an answer that its recipient may not have it, until it is confirmed', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    // From here on this client confirms what it has.
    await client.send({ type: 'ack', seq: 0 })
    const first = await client.ask({ id: '1', content: 'Hello', session: 's' })
    await client.send({ type: 'ack', seq: first['seq'] })
    const second = await client.ask({ id: '2', content: 'Thank you', session: 's' })
    const undelivered = async (): Promise<unknown> =>
      (await ask(gateway, 'GET', '/api/sessions/s/messages'))['undelivered']
    const missed = {
      stepId: second['runId'],
      channel: 'webhook',
      state: 'unknown',
      ageMs: expect.any(Number) as number,
    }
    await expect.poll(undelivered).toEqual([missed])
    expect(
      (await ask(gateway, 'GET', '/api/sessions/s/messages?limit=1'))['undelivered'],
      'whatever page is asked for',
    ).toEqual([missed])
    await client.send({ type: 'ack', seq: second['seq'] })
    // What a confirmation changes is stored with the next commit.
    await client.ask({ id: '3', content: 'Hello', session: 't' })
    await expect.poll(undelivered).toEqual([])
  })

  it('come oldest first in pages that can be followed both ways', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const all = (await ask(gateway, 'GET', '/api/sessions/s/messages?limit=500')) as { messages: { id: string }[] }
    expect(all).not.toHaveProperty('before')
    const last = (await ask(gateway, 'GET', '/api/sessions/s/messages?limit=3')) as {
      messages: { id: string }[]
      before: string
    }
    expect(last.messages).toEqual(all.messages.slice(-3))
    const earlier = (await ask(gateway, 'GET', `/api/sessions/s/messages?limit=2&before=${last.before}`)) as typeof last
    expect(earlier.messages).toEqual(all.messages.slice(-5, -3))
    const after = (await ask(
      gateway,
      'GET',
      `/api/sessions/s/messages?after=${earlier.messages[0]?.id ?? ''}`,
    )) as typeof last
    expect(after.messages).toEqual(all.messages.slice(-4))
    expect(await ask(gateway, 'GET', '/api/sessions/s/messages?before=nothing')).toMatchObject({
      status: 404,
      code: 'ENTRY_NOT_FOUND',
    })
    expect(await ask(gateway, 'GET', '/api/sessions/s/messages?limit=x')).toMatchObject({ status: 400 })
    expect(await ask(gateway, 'GET', '/api/sessions/s/messages?limit=0')).toMatchObject({ status: 400 })
    const summary = await ask(gateway, 'GET', '/api/sessions/s?limit=0')
    expect(Object.keys(summary)).toEqual(expect.arrayContaining(['session', 'requests', 'usage', 'cleanup']))
    expect(summary).not.toHaveProperty('messages')
    expect(summary).not.toHaveProperty('steps')
    // The first picture has the number 0: a message without one has none, which is no wrong number.
    expect(await ask(gateway, 'GET', `/api/sessions/s/entries/${last.before}/images?n=0`)).toMatchObject({
      status: 404,
      code: 'ENTRY_NOT_FOUND',
    })
  })

  it('cut long texts and have them whole by entry', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const text = 'word '.repeat(10_000)
    await client.ask({ id: '1', content: text, session: 's' })
    const { messages } = (await ask(gateway, 'GET', '/api/sessions/s/messages')) as { messages: Json[] }
    expect(messages[0]).toMatchObject({ role: 'user', cut: true })
    expect(String(messages[0]?.['text'])).toHaveLength(20_000)
    const whole = await ask(gateway, 'GET', `/api/sessions/s/entries/${String(messages[0]?.['id'])}`)
    expect(String(whole['text']).trim()).toBe(text.trim())
  })
})

describe('delivery', () => {
  it('stays where it was when a conversation is cleaned up or summarised from the page', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const read = async (): Promise<unknown> => {
      const { sessions } = (await ask(gateway, 'GET', '/api/sessions')) as { sessions: Json[] }
      return [sessions[0]?.['deliveryContext'], sessions[0]?.['lastChannel'], sessions[0]?.['lastTo']]
    }
    const before = await read()
    for (const verb of ['cleanup', 'compact'])
      expect(await ask(gateway, 'POST', `/api/sessions/s/${verb}`)).toMatchObject({ status: 200 })
    expect(await read()).toEqual(before)
  })
})

describe('the X-ray', () => {
  it('names every message exactly once, adds up, and proves its bytes', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const { requests } = (await ask(gateway, 'GET', '/api/sessions/s/requests')) as { requests: Json[] }
    expect(requests.length).toBeGreaterThan(4)
    expect(requests.map(({ n }) => n)).toEqual(requests.map((_, at) => at + 1))
    for (const row of requests) {
      const detail = (await ask(gateway, 'GET', `/api/sessions/s/requests/${String(row['n'])}?body=1`)) as Json & {
        messages: Sent[]
        notSent: { entry: string; tokens: number }[]
        body: string
      }
      expect(detail['estimate']).toBe(
        Number(detail['fixed']) + detail.messages.reduce((sum, one) => sum + one.tokens, 0),
      )
      expect(row['leftOut']).toEqual({
        messages: detail.notSent.length,
        tokens: detail.notSent.reduce((sum, one) => sum + one.tokens, 0),
      })
      const named = [...detail.messages.flatMap((one) => one.entries), ...detail.notSent.map((one) => one.entry)]
      expect(new Set(named).size).toBe(named.length)
      expect(createHash('sha256').update(detail.body).digest('hex')).toBe(detail['hash'])
      expect(detail['hashMatches']).toBe(true)
      expect(detail['bytes']).toBe(Buffer.byteLength(detail.body))
      expect(detail.messages.slice(0, Number(detail['same'])).every((one) => one.state === 'same')).toBe(true)
      const isFirst = row['n'] === 1
      expect([detail['systemState'], detail['toolsState']]).toEqual(isFirst ? ['new', 'new'] : ['same', 'same'])
      expect(row['startedAt']).toBeTypeOf('number')
    }
    expect(await ask(gateway, 'GET', '/api/sessions/s/requests/99')).toMatchObject({ status: 404 })
  })

  it('brings back a cleanup that a summary stands for, and its rounds are sent when the summary is undone', async () => {
    const gateway = await openGateway({ config: { compaction: { keepRecentTokens: 50 } } })
    await conversation(gateway)
    const hides = async (): Promise<{ cleanups: { id: string }[]; compactions: unknown[] }> =>
      (await ask(gateway, 'GET', '/api/sessions/s/messages')) as { cleanups: { id: string }[]; compactions: unknown[] }
    const [first] = (await hides()).cleanups
    const client = await gateway.connect()
    await client.ask({ id: 'c', content: '/compact', session: 's' })
    expect((await hides()).compactions).toHaveLength(1)
    const restore = (body: object): Promise<unknown> => ask(gateway, 'POST', '/api/sessions/s/restore', body)
    expect(await restore({ cleanup: first?.id })).toMatchObject({ success: true })
    expect(await restore({ cleanup: first?.id })).toMatchObject({ status: 409 })
    expect((await hides()).cleanups).not.toContainEqual(first)
    expect(await restore({ compaction: true })).toMatchObject({ success: true })
    await client.ask({ id: '4', content: 'Once more', session: 's' })
    const { requests } = (await ask(gateway, 'GET', '/api/sessions/s/requests')) as { requests: { n: number }[] }
    const detail = (await ask(gateway, 'GET', `/api/sessions/s/requests/${String(requests.at(-1)?.n)}`)) as {
      messages: { role: string }[]
      notSent: { cleanup?: string }[]
    }
    expect(detail.messages.some(({ role }) => role === 'toolResult')).toBe(true)
    expect(detail.notSent.map(({ cleanup }) => cleanup)).not.toContain(first?.id)
  })

  it('brings back any cleanup, once, and the next request holds it again', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const page = (await ask(gateway, 'GET', '/api/sessions/s/messages')) as {
      cleanups: { id: string; hidden: string[] }[]
    }
    const [first] = page.cleanups
    expect(page.cleanups.length).toBeGreaterThanOrEqual(2)
    expect(await ask(gateway, 'POST', '/api/sessions/s/restore', { cleanup: first?.id })).toMatchObject({
      success: true,
    })
    expect(await ask(gateway, 'POST', '/api/sessions/s/restore', { cleanup: first?.id })).toMatchObject({
      status: 409,
      code: 'ALREADY_RESTORED',
    })
    expect(await ask(gateway, 'POST', '/api/sessions/s/restore', { cleanup: 'nothing' })).toMatchObject({ status: 404 })
    const client = await gateway.connect()
    await client.ask({ id: '4', content: 'Once more', session: 's' })
    const { requests } = (await ask(gateway, 'GET', '/api/sessions/s/requests')) as { requests: { n: number }[] }
    const detail = (await ask(gateway, 'GET', `/api/sessions/s/requests/${String(requests.at(-1)?.n)}`)) as {
      messages: Sent[]
    }
    const sent = new Set(detail.messages.flatMap((one) => one.entries))
    for (const entry of first?.hidden ?? ['missing']) expect(sent).toContain(entry)
  })
})

describe('lists', () => {
  it.each(['sessions', 'usage', 'models', 'logs', 'search?q=a', 'sessions/s/requests', 'sessions/s/messages'])(
    'refuse a limit that is no number: %s',
    async (path) => {
      const gateway = await openGateway()
      await conversation(gateway)
      const address = `/api/${path}${path.includes('?') ? '&' : '?'}`
      for (const wrong of ['limit=x', 'limit=-1', 'limit=0'])
        expect(await ask(gateway, 'GET', address + wrong), wrong).toMatchObject({ status: 400, code: 'FIELD_INVALID' })
    },
  )

  it('come in pages that together are the whole list, each row once', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const client = await gateway.connect()
    for (const session of ['t', 'u', 'v']) await client.ask({ id: session, content: 'Hello', session })
    for (const [path, name] of [
      ['sessions', 'sessions'],
      ['usage?by=session&bucket=hour', 'usage'],
      ['sessions/s/requests', 'requests'],
      ['search?q=hello', 'hits'],
    ] as const) {
      const address = `/api/${path}${path.includes('?') ? '&' : '?'}`
      const whole = (await ask(gateway, 'GET', `${address}limit=500`))[name] as Json[]
      expect(whole.length, path).toBeGreaterThan(2)
      expect(await pagesOf(gateway, `${address}limit=2`, name), path).toEqual(whole)
    }
  })

  it('of log lines begin with the newest page and go on with what is older', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const client = await gateway.connect()
    await client.ask({ id: '4', content: 'What is 5 * 5?', session: 's' })
    const whole = (await ask(gateway, 'GET', '/api/logs?level=debug'))['lines'] as Json[]
    expect(whole.length).toBeGreaterThan(2)
    const newest = (await ask(gateway, 'GET', '/api/logs?level=debug&limit=2')) as { lines: Json[]; nextCursor: string }
    expect(newest.lines).toEqual(whole.slice(-2))
    const pages = await pagesOf(gateway, '/api/logs?level=debug&limit=2', 'lines', (before, page) => [
      ...page,
      ...before,
    ])
    expect(pages).toEqual(whole)
  })

  it('of conversations know no other states than running, queued and idle', async () => {
    const gateway = await openGateway()
    expect(await ask(gateway, 'GET', '/api/sessions?state=busy')).toMatchObject({ status: 400, code: 'FIELD_INVALID' })
  })
})

async function pagesOf(
  gateway: MemoryGateway,
  address: string,
  name: string,
  join = (before: Json[], page: Json[]): Json[] => [...before, ...page],
): Promise<Json[]> {
  let rows: Json[] = []
  let cursor: string | undefined
  do {
    const next: Json = await ask(
      gateway,
      'GET',
      cursor === undefined ? address : `${address}&cursor=${encodeURIComponent(cursor)}`,
    )
    rows = join(rows, next[name] as Json[])
    cursor = next['nextCursor'] as string | undefined
  } while (cursor !== undefined)
  return rows
}

describe('search and exports', () => {
  it('finds text in every conversation, whatever the letters, and says where', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const { hits } = (await ask(gateway, 'GET', '/api/search?q=THANK')) as {
      hits: { snippet: string; marks: number[][]; key: string }[]
    }
    expect(hits.length).toBeGreaterThan(0)
    for (const { snippet, marks, key } of hits) {
      expect(key).toBe('s')
      expect(snippet.slice(marks[0]?.[0], marks[0]?.[1]).toLowerCase()).toBe('thank')
    }
    expect(await ask(gateway, 'GET', '/api/search?q=')).toMatchObject({ status: 400 })
    expect(await ask(gateway, 'GET', '/api/search?q=no-such-word')).toMatchObject({ hits: [] })
  })

  it('exports a page that holds no markup of the conversation', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: '<script>alert(1)</script> ``` fence', session: 's' })
    const html = await gateway.request('/api/sessions/s/export?format=html')
    expect(html.text).not.toContain('<script>')
    expect(html.text).toContain('&lt;script&gt;')
    const md = await gateway.request('/api/sessions/s/export?format=md')
    expect(md.text).toContain('## User')
    expect(await ask(gateway, 'GET', '/api/sessions/s/export?format=pdf')).toMatchObject({ status: 400 })
  })
})

describe('settings', () => {
  it('name every key with its origin, and never a secret', async () => {
    const secret = 'sk-very-secret-0123456789'
    const config = { providers: { anthropic: { apiKey: secret } }, task: { max_rounds: 5 } }
    const gateway = await openGateway({ config })
    const { status, text } = await gateway.request('/api/config')
    expect(status).toBe(200)
    expect(text).not.toContain(secret)
    const { values } = JSON.parse(text) as { values: { key: string; origin: string; value: unknown }[] }
    expect(values).toContainEqual(
      expect.objectContaining({ key: 'task.max_rounds', value: 5, origin: 'file', default: 16 }),
    )
    expect(values).toContainEqual(expect.objectContaining({ key: 'providers.anthropic.apiKey', value: 'set' }))
  })

  it('of a provider that no file sets are its defaults, or come from the environment', async () => {
    const config = { providers: { local: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1' } } }
    const gateway = await openGateway({ config, env: { ANTHROPIC_API_KEY: 'sk-very-secret-0123456789' } })
    const { values } = (await gateway.api('/api/config')) as { values: { key: string; origin: string }[] }
    const originOf = (key: string): unknown => values.find((one) => one.key === key)?.origin
    expect(originOf('providers.local.baseUrl')).toBe('file')
    expect(originOf('providers.local.connectTimeoutMs')).toBe('default')
    expect(originOf('providers.anthropic.apiKey')).toBe('environment')
    expect(values.filter(({ key, origin }) => key.startsWith('providers.') && origin === 'flag')).toEqual([])
  })

  it('check a text that is in no file yet', async () => {
    const gateway = await openGateway()
    const checked = await ask(gateway, 'POST', '/api/config/check', { text: '{\n  "listn": {}\n}' })
    expect(checked).toMatchObject({ problems: [{ line: 2, key: 'listn', nearest: 'listen' }] })
  })
})

describe('access', () => {
  it('sells a cookie for a token, needs our own page for what changes something, and forgets it at sign-out', async () => {
    const token = 'a-token-of-some-length'
    const gateway = await openGateway({ config: { listen: { token } } })
    const login = await gateway.request('/api/login', { method: 'POST', body: JSON.stringify({ token }) })
    expect(login.status).toBe(200)
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect(login.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Strict/u)
    const as = (headers: Record<string, string>) => ({ headers: { cookie, ...headers } })
    expect((await gateway.request('/api/me', as({}))).status).toBe(200)
    const cancel = { method: 'POST' }
    expect((await gateway.request('/api/sessions/s/cancel', { ...cancel, ...as({}) })).status).toBe(403)
    const own = as({ 'sec-fetch-site': 'same-origin' })
    expect((await gateway.request('/api/sessions/s/cancel', { ...cancel, ...own })).status).toBe(404)
    const foreign = as({ 'sec-fetch-site': 'same-origin', origin: 'https://elsewhere.example' })
    expect((await gateway.request('/api/sessions/s/cancel', { ...cancel, ...foreign })).status).toBe(403)
    await gateway.request('/api/logout', { method: 'POST', ...own })
    expect((await gateway.request('/api/me', own)).status).toBe(401)
  })

  it('marks the cookie as secure for a page that came by https, through whatever proxy', async () => {
    const token = 'a-token-of-some-length'
    const gateway = await openGateway({ config: { listen: { token } } })
    const { host } = new URL(gateway.url)
    const cookieFor = async (origin: string): Promise<string> => {
      const headers = { host, origin }
      const login = await gateway.request('/api/login', { method: 'POST', body: JSON.stringify({ token }), headers })
      expect(login.status).toBe(200)
      return login.headers.get('set-cookie') ?? ''
    }
    expect(await cookieFor(`https://${host}`)).toMatch(/; Secure$/u)
    expect(await cookieFor(`http://${host}`)).not.toContain('Secure')
  })

  it('refuses a wrong token, a foreign page, and a code that was used', async () => {
    const gateway = await openGateway({ config: { listen: { token: 'a-token-of-some-length' } } })
    const login = (body: unknown, headers: Record<string, string> = {}) =>
      gateway.request('/api/login', { method: 'POST', body: JSON.stringify(body), headers })
    expect((await login({ token: 'wrong' })).status).toBe(401)
    expect((await login({ code: 'wrong' })).status).toBe(401)
    const code = gateway.serving.signInUrl?.split('#code=')[1] ?? ''
    expect((await login({ code }, { origin: 'https://elsewhere.example' })).status).toBe(403)
    expect((await login({ code })).status).toBe(200)
    expect((await login({ code })).status).toBe(401)
  })

  it.each(documentedRoutes().filter(([, path]) => path !== '/api/login'))(
    'keeps %s %s from a page of others and from one without a cookie',
    async (method, path) => {
      const token = 'a-token-of-some-length'
      const gateway = await openGateway({ config: { listen: { token } } })
      const login = await gateway.request('/api/login', { method: 'POST', body: JSON.stringify({ token }) })
      const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
      const statusOf = async (headers: Record<string, string>) =>
        (await gateway.request(path, { method, headers })).status
      expect(await statusOf({})).toBe(401)
      expect(await statusOf({ cookie: 'clew=made-up' })).toBe(401)
      const needsOwnPage = method !== 'GET' || path === '/api/events'
      expect(await statusOf({ cookie, origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' })).toBe(403)
      if (needsOwnPage) expect(await statusOf({ cookie })).toBe(403)
    },
  )
})
