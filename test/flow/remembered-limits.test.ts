import { describe, expect, it } from 'vitest'
import { savingsOf } from '../../src/session/spending.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { NOTHING_SPENT } from '../../src/core/spent.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()
const KIB = 1_024

async function held(gateway: MemoryGateway): Promise<Record<string, number>> {
  const { text } = await gateway.request('/metrics')
  const rows = [...text.matchAll(/^clew_held_bytes\{kind="(\w+)"\} (\d+)$/gmu)]
  return Object.fromEntries(rows.map(([, kind = '', bytes]) => [kind, Number(bytes)]))
}

async function rememberedMessages(gateway: MemoryGateway): Promise<number> {
  const replies = (await gateway.api('/api/status'))['replies'] as Record<string, number>
  return Object.values(replies).reduce((sum, count) => sum + count, 0)
}

async function converse(gateway: MemoryGateway, messages: number): Promise<void> {
  const client = await gateway.connect('?uid=ann')
  for (let at = 0; at < messages; at++) await client.ask({ id: `m${at}`, content: `hello ${at}`, session: 's' })
}

describe('a flood of things to remember stays below its ceiling', () => {
  it('messages and their answers, by number', async () => {
    const gateway = await openGateway({ config: { limits: { remembered_messages: 20 } } })
    await converse(gateway, 60)
    expect(await rememberedMessages(gateway)).toBeLessThanOrEqual(21)
  })

  it('messages and their answers, by size', async () => {
    const gateway = await openGateway({ config: { limits: { remembered_bytes: 16 * KIB } } })
    await converse(gateway, 60)
    const { remembered } = await held(gateway)
    expect(remembered).toBeGreaterThan(8 * KIB)
    expect(remembered).toBeLessThanOrEqual(16 * KIB + 2 * KIB)
  })

  it('idempotency keys of HTTP requests', async () => {
    const gateway = await openGateway({ config: { limits: { remembered_messages: 20 } } })
    for (let at = 0; at < 60; at++) {
      const headers = { 'idempotency-key': `key-${at}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ content: 'hello', session: 'http' })
      expect((await gateway.request('/api/messages?wait=0&uid=ann', { method: 'POST', headers, body })).status).toBe(
        202,
      )
      await gateway.clock.advance(2_000)
    }
    expect(await rememberedMessages(gateway)).toBeLessThanOrEqual(21)
  })

  it('frame numbers of clients', async () => {
    const gateway = await openGateway({ config: { limits: { remembered_accounts: 10 } } })
    for (let at = 0; at < 30; at++) {
      const client = await gateway.connect(`?uid=client-${at}`)
      await client.ask({ id: '1', content: 'hello', session: 's' })
    }
    expect((await held(gateway))['accounts']).toBeLessThanOrEqual(10 * 256)
  })

  it('rows of the session index', async () => {
    const gateway = await openGateway({ config: { limits: { sessions: 10 } } })
    const client = await gateway.connect('?uid=ann')
    for (let at = 0; at < 30; at++) await client.ask({ id: `m${at}`, content: 'hello', session: `s${at}` })
    const { sessions } = await held(gateway)
    expect(sessions).toBeGreaterThan(0)
    expect(sessions).toBeLessThanOrEqual(10 * 4 * KIB)
  })

  it('costs and savings', async () => {
    const gateway = await openGateway({ config: { limits: { usage_sessions: 10, usage_hours: 10, usage_days: 5 } } })
    const { storage } = gateway.app
    for (let at = 0; at < 100; at++) {
      const sessionId = `sess_${at}` as SessionId
      const spent = { ...NOTHING_SPENT, tokens: 1, requests: 1 }
      const saved = savingsOf(sessionId).measured({ tokens: 1, measured: true })
      await storage.transact([{ kind: 'spend', sessionId, model: `p/m${at}`, channel: 'webhook', spent }, ...saved])
    }
    expect((await held(gateway))['usage']).toBeLessThanOrEqual((10 + 5 + 10 + 10) * 320 + 10 * 256)
  })

  it('learned windows', async () => {
    const gateway = await openGateway({ config: { limits: { remembered_windows: 10 } } })
    const { windows, storage } = gateway.app.home
    for (let at = 0; at < 100; at++) {
      const model = `p/m${at}`
      const value = { model, contextWindow: 1_000, by: 'told', instead: 2_000, at: gateway.clock.now() }
      await storage.transact([{ kind: 'set-state', section: 'windows', key: model, value }])
    }
    expect(windows.list().length).toBe(10)
    expect((await held(gateway))['windows']).toBeLessThanOrEqual(10 * 256)
  })

  it('what the XiaoYi channel knows', async () => {
    const gateway = await openGateway({ config: { channels: { xiaoyi: { limits: { maxRemembered: 10 } } } } })
    const { xiaoyi } = gateway.app.home
    for (let at = 0; at < 100; at++)
      for (const section of ['aliases', 'pushIds', 'closedRuns'] as const)
        await xiaoyi.set(section, `key-${at}`, 'v'.repeat(100))
    expect((await held(gateway))['xiaoyi']).toBeLessThanOrEqual(3 * 10 * (128 + 2 * 110))
  })

  it('transcripts in memory', async () => {
    const gateway = await openGateway({ config: { limits: { warm_session_bytes: 64 * KIB } } })
    const client = await gateway.connect('?uid=ann')
    for (let at = 0; at < 30; at++) await client.ask({ id: `m${at}`, content: 'x'.repeat(20 * KIB), session: `s${at}` })
    expect((await held(gateway))['transcripts']).toBeLessThanOrEqual(64 * KIB)
  })

  it('earlier conversations of one key', async () => {
    const gateway = await openGateway({ config: { limits: { archived_per_session: 3 } } })
    const client = await gateway.connect('?uid=ann')
    for (let at = 0; at < 8; at++) {
      await client.ask({ id: `m${at}`, content: 'hello', session: 's' })
      await client.ask({ id: `n${at}`, content: '/new', session: 's' })
    }
    const { sessions } = await gateway.api('/api/sessions')
    expect((sessions as { archived: unknown[] }[])[0]?.archived.length).toBe(3)
  })
})
