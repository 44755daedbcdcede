import { describe, expect, it } from 'vitest'
import { settle } from '../../src/testing/manual-clock.ts'
import { MemoryGateway } from '../support/gateway.ts'

const LOCK = '/home/clew/gateway.lock'
const OTHER = `${JSON.stringify({ pid: 99, startedAt: '5', host: 'elsewhere', token: 'other' })}\n`

async function reasonOf(gateway: MemoryGateway): Promise<unknown> {
  let reason: unknown = 'runs'
  gateway.app.failed.catch((error: unknown) => (reason = error))
  await settle()
  return reason
}

describe('a gateway whose home another process took over', () => {
  it('accepts nothing more and fails with HOME_LOCK_LOST at the next message', async () => {
    const gateway = await MemoryGateway.open()
    const client = await gateway.connect('?uid=u')
    expect(await client.ask({ id: '1', content: '/help' })).toMatchObject({ type: 'complete' })
    gateway.files.plant(LOCK, OTHER)
    await client.send({ id: '2', content: 'hello' })
    await client.settle()
    expect(client.frames.filter(({ messageId }) => messageId === '2')).toMatchObject([{ type: 'error' }])
    expect(await reasonOf(gateway)).toMatchObject({ code: 'HOME_LOCK_LOST' })
    await gateway.stop().catch(() => undefined)
    expect(gateway.files.text(LOCK)).toBe(OTHER)
  })

  it('notices within fifteen seconds when it is idle', async () => {
    const gateway = await MemoryGateway.open()
    await gateway.files.remove(LOCK)
    expect(await reasonOf(gateway)).toBe('runs')
    await gateway.clock.advance(15_000)
    expect(await reasonOf(gateway)).toMatchObject({ code: 'HOME_LOCK_LOST' })
    await gateway.stop().catch(() => undefined)
    expect(gateway.clock.pending).toBe(0)
  })

  it('leaves the contact file of the new owner where it is', async () => {
    const gateway = await MemoryGateway.open()
    gateway.files.plant(LOCK, OTHER)
    const contact = { process: { pid: 99, startedAt: '5', host: 'elsewhere' }, host: '::1', port: 1, protocol: 1 }
    gateway.files.plant('/home/clew/gateway.json', JSON.stringify(contact))
    await gateway.stop().catch(() => undefined)
    expect(gateway.files.text('/home/clew/gateway.json')).toBe(JSON.stringify(contact))
  })
})
