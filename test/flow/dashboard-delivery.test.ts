import { describe, expect, it } from 'vitest'
import { openSimulatedPhone } from '../../src/app/simulated-phone.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()

type Json = Record<string, unknown>

const PAGE = '?client=dashboard&uid=dashboard-1'

async function rowOf(gateway: MemoryGateway, key: string): Promise<Json> {
  const { sessions } = (await gateway.api('/api/sessions')) as unknown as { sessions: Json[] }
  return sessions.find((row) => row['key'] === key) ?? {}
}

/** Where a conversation's answers go. */
async function addressOf(gateway: MemoryGateway, key: string): Promise<Json> {
  const { deliveryContext, lastChannel, lastTo, lastAccountId, chat } = await rowOf(gateway, key)
  return { deliveryContext, lastChannel, lastTo, lastAccountId, chat }
}

async function instructionsOf(gateway: MemoryGateway, key: string): Promise<readonly Json[]> {
  const path = `/api/sessions/${encodeURIComponent(key)}/messages`
  const { messages } = (await gateway.api(path)) as unknown as { messages: Json[] }
  return messages.filter(({ role }) => role === 'user')
}

describe('a message from the page into a conversation of another client', () => {
  it('is answered on the page alone, marked as written there, and moves no delivery', async () => {
    const gateway = await openGateway()
    const ann = await gateway.connect('?uid=ann')
    await ann.ask({ id: '1', content: 'Hello', session: 's' })
    const before = await addressOf(gateway, 's')
    expect(before['deliveryContext']).toEqual({ channel: 'webhook', to: '1', accountId: 'ann' })
    const heard = ann.frames.length
    const page = await gateway.connect(PAGE)
    const answer = await page.ask({ id: '2', content: 'What is 2 + 2?', session: 's' })
    await gateway.clock.advance(60_000)
    expect(answer).toMatchObject({ type: 'complete', session: 's', content: expect.stringContaining('4') as string })
    expect(ann.frames).toHaveLength(heard)
    expect(await addressOf(gateway, 's')).toEqual(before)
    const [first, second] = await instructionsOf(gateway, 's')
    expect(first).not.toHaveProperty('from')
    expect(second).toMatchObject({ text: 'What is 2 + 2?', from: 'dashboard' })
  })

  it('leaves the conversation of a phone on the phone, whose screen shows nothing of it', async () => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const phone = await openSimulatedPhone({ clock, ids: new SeededIds(7), servers: network })
    const gateway = await openGateway({ clock, network, phone })
    const bubbles = (): readonly Json[] => phone.screen.view()['bubbles'] as unknown as Json[]
    await clock.runUntil(() => phone.screen.view()['connected'] === true)
    phone.screen.say('What is 3 + 3?', [])
    await clock.runUntil(() => bubbles().at(-1)?.['state'] === 'done')
    const { sessions } = (await gateway.api('/api/sessions')) as unknown as { sessions: Json[] }
    const key = String(sessions[0]?.['key'])
    const before = await addressOf(gateway, key)
    expect(before['lastChannel']).toBe('xiaoyi')
    const shown = bubbles()
    const page = await gateway.connect(PAGE)
    await page.ask({ id: '2', content: 'What is 2 + 2?', session: key })
    await clock.advance(60_000)
    expect(bubbles()).toEqual(shown)
    expect(await addressOf(gateway, key)).toEqual(before)
    expect((await instructionsOf(gateway, key)).map(({ from }) => from)).toEqual([undefined, 'dashboard'])
  })

  it('gives a conversation that the page began to the channel that speaks in it next', async () => {
    const gateway = await openGateway()
    const page = await gateway.connect(PAGE)
    await page.ask({ id: '1', content: 'Hello', session: 's' })
    expect((await addressOf(gateway, 's'))['deliveryContext']).toMatchObject({ accountId: 'dashboard-1' })
    const ann = await gateway.connect('?uid=ann')
    await ann.ask({ id: '2', content: 'Hello', session: 's' })
    expect((await addressOf(gateway, 's'))['deliveryContext']).toMatchObject({ accountId: 'ann' })
  })
})
