import { describe, expect, it } from 'vitest'
import { documentedRoutes } from '../support/documented-routes.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { ModelWorld, say } from '../support/model-world.ts'

const { open: openGateway } = gatewaysOfThisFile()

const READS = documentedRoutes().filter(([method, path]) => method === 'GET' && path !== '/api/events')
const OF_A_CONVERSATION = documentedRoutes().filter(([, path]) => path.startsWith('/api/sessions/s'))

/** What a request needs besides its address to be understood. */
const QUERY: Readonly<Record<string, string>> = { '/api/search': '?q=12' }
const BODIES: Readonly<Record<string, object>> = {
  'PATCH /api/sessions/s': { title: 'A name' },
  'POST /api/sessions/s/model': { model: null },
  'POST /api/sessions/s/restore': { cleanup: 'nothing' },
}

async function ask(gateway: MemoryGateway, method: string, path: string, headers: Record<string, string> = {}) {
  const body = BODIES[`${method} ${path}`]
  const address = path + (QUERY[path] ?? '')
  return gateway.request(address, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
}

describe('a conversation that does not exist', () => {
  it.each(OF_A_CONVERSATION)('is not found by %s %s', async (method, path) => {
    const gateway = await openGateway()
    const { status, text } = await ask(gateway, method, path)
    expect(status, text).toBe(404)
    expect(JSON.parse(text)).toMatchObject({ code: 'SESSION_NOT_FOUND', error: expect.any(String) as string })
  })
})

describe('a method that an address does not have', () => {
  const DOCUMENTED = documentedRoutes().map(([, path]) => path)
  // The phone is there with `--simulate-xiaoyi` only.
  const ADDRESSES = new Set(['/healthz', '/metrics', ...DOCUMENTED.filter((path) => !path.startsWith('/api/phone'))])
  it.each([...ADDRESSES])('is refused at %s, with those it has', async (path) => {
    const gateway = await openGateway()
    const { status, text, headers } = await gateway.request(path, { method: 'PUT' })
    expect([status, (JSON.parse(text) as { code: string }).code]).toEqual([405, 'METHOD_NOT_ALLOWED'])
    expect(headers.get('allow')).toMatch(/^(?:GET|HEAD|POST|PATCH|DELETE)(?:, (?:GET|HEAD|POST|PATCH|DELETE))*$/u)
  })
})

const SECRETS = {
  listen: 'secret-of-listen-0123456789',
  named: 'secret-of-a-named-token-0123456789',
  provider: 'sk-secret-of-a-provider-0123456789',
  inUrl: 'secret-in-an-address-0123456789',
  ak: 'secret-ak-0123456789',
  sk: 'secret-sk-0123456789',
}

describe('no answer holds a secret of the configuration', () => {
  it.each(READS)('%s %s', async (method, path) => {
    const gateway = await openGateway({
      config: {
        listen: { token: SECRETS.listen, tokens: { ann: { token: SECRETS.named, sessions: 'own' } } },
        providers: {
          anthropic: { apiKey: SECRETS.provider },
          local: { type: 'openai-compatible', baseUrl: `http://me:${SECRETS.inUrl}@127.0.0.1:9/v1` },
        },
        channels: {
          xiaoyi: { enabled: true, ak: SECRETS.ak, sk: SECRETS.sk, agentId: 'agent', wsUrl1: 'wss://x.test/a' },
        },
      },
    })
    const bearer = { authorization: `Bearer ${SECRETS.listen}` }
    const client = await gateway.connect('?uid=me', bearer)
    await client.ask({ id: '1', content: 'What is 12 * 12?', session: 's' })
    const { status, text } = await ask(gateway, method, path, bearer)
    expect([200, 404], text).toContain(status)
    for (const secret of Object.values(SECRETS)) expect(text).not.toContain(secret)
  })
})

/** What another program, a torn write or a bad disk may leave in a transcript. */
const DAMAGE: readonly string[] = [
  '{"type":"message","id":"torn","parentId":"nowhere","timestamp":"2026-01-01T00:0',
  'null',
  '[1,2',
  '{"type":"message"}',
  '{"type":"message","id":"odd1","parentId":"odd1","timestamp":7,"message":{"role":"user","content":null}}',
  '{"type":"message","id":"odd2","parentId":"LAST","timestamp":"never","message":{"role":"assistant","content":[null,{"type":"toolCall"}],"usage":"much"}}',
  '{"type":"custom","id":"odd3","parentId":"odd2","timestamp":"2026-01-01T00:00:00.000Z","customType":"clew.request","data":{"n":"one","leaf":5,"report":{"v":9}}}',
  '{"type":"custom","id":"odd4","parentId":"odd3","timestamp":"2026-01-01T00:00:00.000Z","customType":"clew.setup","data":null}',
  '{"type":"compaction","id":"odd5","parentId":"odd4","timestamp":"2026-01-01T00:00:00.000Z","summary":5,"firstKeptEntryId":"nowhere"}',
  '\u0000\u0000\u0000',
]

describe('a damaged transcript', () => {
  it('is shown by every address, with what was said before the damage', async () => {
    const world = await ModelWorld.open()
    try {
      await say(await world.connect(), 'the first words')
      const lines = await world.transcript()
      const path = `/home/clew/sessions/${String(lines[0]?.['id'])}.jsonl`
      const whole = lines.map((line) => JSON.stringify(line))
      await world.stop()
      const damage = DAMAGE.map((line) => line.replace('LAST', String(lines.at(-1)?.['id'])))
      world.files.plant(path, `${[...whole, ...damage].join('\n')}\n`)
      await world.restart({ kill: true })
      const reads = READS.filter(([, address]) => address.startsWith('/api/sessions'))
      for (const [method, address] of reads) {
        const { status, text } = await ask(world.gateway, method, address)
        expect([200, 404], `${address}: ${text}`).toContain(status)
        if (status === 404) expect(text, address).toMatch(/ENTRY_NOT_FOUND|BLOB_NOT_FOUND/u)
      }
      for (const address of ['messages', 'export?format=md', 'export?format=html', 'export?format=jsonl'])
        expect((await world.gateway.request(`/api/sessions/s/${address}`)).text, address).toContain('the first words')
      expect((await world.gateway.request('/api/search?q=first%20words')).text).toContain('the first words')
      const after = await say(await world.connect(), 'and then?')
      expect(after).toMatchObject({ type: 'complete' })
      for (const [method, address] of reads)
        expect((await ask(world.gateway, method, address)).status, address).toBeLessThan(500)
    } finally {
      await world.stop()
    }
  })
})
