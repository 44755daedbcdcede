import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()
const PATH = '/home/clew/sessions.json'

type Rows = Record<string, Record<string, unknown>>

function rowsOf(gateway: MemoryGateway): Rows {
  return JSON.parse(gateway.files.text(PATH) ?? '{}') as Rows
}

async function begin(): Promise<{ gateway: MemoryGateway; say: (id: string) => Promise<unknown> }> {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann')
  const say = (id: string): Promise<unknown> => client.ask({ id, content: 'hello', session: id })
  await say('ours')
  await gateway.clock.advance(3_000)
  return { gateway, say }
}

describe('a row that another program writes into sessions.json while we run', () => {
  it('is adopted when it is new, and is there after the next export', async () => {
    const { gateway, say } = await begin()
    const updatedAt = gateway.clock.now() + 1
    const theirs = { sessionId: 'sess_theirs', updatedAt, color: 'blue' }
    gateway.files.plant(PATH, JSON.stringify({ ...rowsOf(gateway), theirs }))
    await say('later')
    await gateway.clock.advance(3_000)
    expect(rowsOf(gateway)).toMatchObject({ theirs: { sessionId: 'sess_theirs', color: 'blue' }, ours: {}, later: {} })
    expect(await gateway.api('/api/sessions')).toMatchObject({ total: 3 })
    expect((await gateway.files.list('/home/clew')).filter((name) => name.includes('foreign'))).toEqual([])
  })

  it('does not carry a time that is still to come into every row that changes later', async () => {
    const { gateway, say } = await begin()
    const theirs = { sessionId: 'sess_theirs', updatedAt: gateway.clock.now() * 1_000 }
    gateway.files.plant(PATH, JSON.stringify({ ...rowsOf(gateway), theirs }))
    await gateway.request('/api/sessions/ours/reset', { method: 'POST' })
    await gateway.clock.advance(3_000)
    await say('later')
    await gateway.clock.advance(3_000)
    const times = Object.values(rowsOf(gateway)).map((row) => Number(row['updatedAt']))
    expect(times).toHaveLength(3)
    expect(Math.max(...times)).toBeLessThanOrEqual(gateway.clock.now())
  })

  it('is kept aside when ours is newer, or when we have deleted it meanwhile', async () => {
    const { gateway, say } = await begin()
    const before = rowsOf(gateway)
    await gateway.request('/api/sessions/ours', { method: 'DELETE' })
    await gateway.clock.advance(3_000)
    await say('later')
    await gateway.clock.advance(3_000)
    expect(Object.keys(rowsOf(gateway))).toEqual(['later'])
    gateway.files.plant(PATH, JSON.stringify({ ...rowsOf(gateway), ...before }))
    await say('last')
    await gateway.clock.advance(3_000)
    expect(Object.keys(rowsOf(gateway)).sort()).toEqual(['last', 'later'])
    const [aside] = (await gateway.files.list('/home/clew')).filter((name) => name.includes('sessions.json.foreign-'))
    expect(JSON.parse(gateway.files.text(`/home/clew/${aside ?? ''}`) ?? '')).toMatchObject({ ours: before['ours'] })
  })

  it('our own export is never taken for theirs', async () => {
    const { gateway, say } = await begin()
    for (const id of ['a', 'b', 'c']) {
      await say(id)
      await gateway.clock.advance(3_000)
    }
    expect((await gateway.files.list('/home/clew')).filter((name) => name.includes('foreign'))).toEqual([])
  })
})
