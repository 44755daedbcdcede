import { describe, expect, it } from 'vitest'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const { open: openGateway } = gatewaysOfThisFile()
const openWorld = worldsOfThisFile()

type Json = Record<string, unknown>

async function post(gateway: MemoryGateway, path: string, body: object = {}): Promise<Json> {
  const { status, text } = await gateway.request(path, { method: 'POST', body: JSON.stringify(body) })
  return { status, ...(JSON.parse(text) as Json) }
}

async function rows(gateway: MemoryGateway, path: string, name: string): Promise<readonly Json[]> {
  return (await gateway.api(path))[name] as Json[]
}

async function conversation(gateway: MemoryGateway): Promise<void> {
  const client = await gateway.connect('?uid=ann')
  await client.ask({ id: '1', content: 'What is 12 * (3 + 4)? And what time is it?', session: 's' })
  await client.ask({ id: '2', content: 'Thank you', session: 's' })
}

/** Every field of the design is there; one more than these would be a promise nobody wrote down. */
function expectFields(value: Json | undefined, fields: string, optional = ''): void {
  const found = Object.keys(value ?? {})
  const [needed, allowed] = [fields, optional].map((text) => text.split(' ').filter((field) => field !== ''))
  expect(found).toEqual(expect.arrayContaining(needed ?? []))
  expect(found.filter((field) => ![...(needed ?? []), ...(allowed ?? [])].includes(field))).toEqual([])
}

describe('what the page reads has the fields of the design', () => {
  it('in a row of the list', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const [row] = await rows(gateway, '/api/sessions', 'sessions')
    for (const field of ['title', 'preview', 'messages', 'state', 'queued', 'model', 'contextTokens', 'usd'])
      expect(row).toHaveProperty(field)
    const title = 'What is 12 * (3 + 4)? And what time is it?'
    expect(row).toMatchObject({ title, state: 'idle', queued: 0, model: 'demo/demo' })
    expect(String(row?.['preview']).length).toBeLessThanOrEqual(120)
  })

  it('in messages of each role', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const messages = await rows(gateway, '/api/sessions/s/messages', 'messages')
    const of = (role: string): Json | undefined => messages.find((message) => message['role'] === role)
    const shared = 'id at stepId tokens role'
    expectFields(of('user'), `${shared} text`, 'round')
    expectFields(of('assistant'), `${shared} round blocks model usage stopReason`, 'hidden')
    expectFields(of('toolResult'), `${shared} round callId tool failed text durationMs`, 'hidden')
    const [call] = (((of('assistant') ?? {})['blocks'] ?? []) as Json[]).filter(({ type }) => type === 'call')
    expectFields(call, 'type id tool arguments')
    expect(messages.some(({ hidden }) => hidden === true)).toBe(true)
    const [cleanup] = await rows(gateway, '/api/sessions/s/messages', 'cleanups')
    expectFields(cleanup, 'id stepId at hidden tokensBefore tokensAfter estimated')
  })

  it('in requests, and in one of them', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    const requests = await rows(gateway, '/api/sessions/s/requests', 'requests')
    const row =
      'n at model stepId round estimate fixed window reserved messages leftOut usage startedAt firstByteMs durationMs'
    for (const request of requests) expectFields(request, row)
    const detail = await gateway.api(`/api/sessions/s/requests/${requests.length}?body=1`)
    const whole = `${row} hash hashMatches bytes system systemState tools toolsState same notSent body`
    expectFields(detail, whole, 'systemTokens toolTokens')
    for (const message of detail['messages'] as Json[])
      expectFields(message, 'role kind entries tokens text state changes', 'tool continues')
    const notSent = detail['notSent'] as Json[]
    expect(notSent.length).toBeGreaterThan(0)
    for (const left of notSent) expectFields(left, 'entry role tokens by reason', 'tool cleanup before')
  })

  it('in models, tokens, hits, lines and whose page it is', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    expectFields((await rows(gateway, '/api/models', 'models'))[0], 'ref contextWindow price images reasoning')
    const [usage] = await rows(gateway, '/api/usage?by=session&bucket=hour', 'usage')
    expectFields(usage, 'at group requests input output cacheRead cacheWrite usd saved', 'unpriced')
    expect(usage).toMatchObject({ group: 's' })
    expectFields((await rows(gateway, '/api/search?q=thank', 'hits'))[0], 'key entry at role snippet marks')
    expectFields((await rows(gateway, '/api/logs', 'lines'))[0], 'at level message facts', 'session')
    expectFields(await gateway.api('/api/me'), 'account admin expiresAt')
  })

  it('in a cleanup, a summary, and the problems of a file', async () => {
    const gateway = await openGateway()
    await conversation(gateway)
    for (const verb of ['cleanup', 'compact'])
      expectFields(
        await post(gateway, `/api/sessions/s/${verb}`),
        'tokensBefore tokensAfter saved estimated status',
        'cleanup compaction session message',
      )
    const { problems } = await post(gateway, '/api/config/check', { text: '{\n  "listn": {},\n  "model": 5\n}' })
    const [unknown] = problems as Json[]
    expectFields(unknown, 'line column key message nearest', 'severity')
    expect(unknown).toMatchObject({ line: 2, column: expect.any(Number) as number, key: 'listn', nearest: 'listen' })
  })
})

describe('a provider that is tried', () => {
  const entry = (baseUrl: string): object => ({ type: 'openai-compatible', baseUrl, apiKey: 'sk-tried-once' })

  it('says how soon it answers and what, or why it does not, and its entry is forgotten', async () => {
    const world = await openWorld({ models: ['openai'] })
    const { gateway } = world
    world.enqueue({ blocks: [{ type: 'text', text: 'Hello there.' }] })
    const { values } = (await gateway.api('/api/config')) as unknown as { values: Json[] }
    const baseUrl = String(values.find(({ key }) => key === 'providers.openai.baseUrl')?.['value'])
    const own = { type: 'openai-responses', baseUrl, apiKey: 'a-key' }
    const works = await post(gateway, '/api/providers/test', { name: 'tried', entry: own, model: 'gpt-5' })
    expect(works).toEqual({ status: 200, ok: true, firstByteMs: expect.any(Number) as number, text: 'Hello there.' })
    const fails = await post(gateway, '/api/providers/test', {
      name: 'tried',
      entry: entry('http://127.0.0.1:9/v1'),
      model: 'any',
    })
    expectFields(fails, 'status ok code error')
    expect(fails).toMatchObject({ status: 200, ok: false })
    expect((await gateway.request('/api/models')).text).not.toContain('tried')
    expect((await gateway.request('/api/config')).text).not.toContain('sk-tried-once')
    expect(await post(gateway, '/api/providers/test', { name: 'tried' })).toMatchObject({ status: 400 })
  })
})

describe('a list of conversations', () => {
  it('opens no transcript, whatever it is asked', async () => {
    const disk = new MemoryFiles()
    const opened: string[] = []
    const files = new Proxy(disk, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...given: unknown[]): unknown => {
          if (name === 'open') opened.push(String(given[0]))
          return Reflect.apply(value, target, given)
        }
      },
    })
    const gateway = await openGateway({ files: disk, ports: { files } })
    await conversation(gateway)
    // What a turn keeps open for a while would hide that a list opens it.
    await gateway.clock.advance(3_600_000)
    const isTranscript = (path: string): boolean => path.includes('/sessions/')
    expect(opened.some(isTranscript)).toBe(true)
    opened.length = 0
    for (const query of ['', '?q=12', '?state=idle', '?channel=webhook', '?archived=1', '?limit=1', '?prefix=s'])
      expect((await gateway.request(`/api/sessions${query}`)).status).toBe(200)
    expect(opened.filter(isTranscript)).toEqual([])
    await gateway.request('/api/sessions/s/messages')
    expect(opened.filter(isTranscript)).not.toEqual([])
  })
})
