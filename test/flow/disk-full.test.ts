import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import type { Frame, MemoryGateway, TestClient } from '../support/gateway.ts'

const gateways = gatewaysOfThisFile()
const PLENTY = 10_000_000

function transcriptsOf(gateway: MemoryGateway): Promise<string> {
  return gateway.files
    .list('/home/clew/sessions')
    .then((names) => names.map((name) => gateway.files.text(`/home/clew/sessions/${name}`) ?? '').join(''))
}

async function fill(free: number): Promise<{ gateway: MemoryGateway; client: TestClient; wasAccepted: boolean }> {
  const gateway = await gateways.open()
  const client = await gateway.connect('?uid=u')
  await client.ask({ id: '1', content: 'hello', session: 's' })
  gateway.files.limitSpace(free)
  await client.send({ id: '2', content: `remember ${'x'.repeat(1_000)}`, session: 's', stream: true })
  await gateway.clock.advance(5_000)
  const wasAccepted = client.frames.some(({ type, messageId }) => type === 'accepted' && messageId === '2')
  return { gateway, client, wasAccepted }
}

describe('a message that was accepted before the disk was full', () => {
  it('is answered once when space returns, wherever its turn was, and never ended with STORAGE_FULL', async () => {
    let accepted = 0
    let waited = 0
    for (let free = 500; free < 9_000; free += 250) {
      const { gateway, client, wasAccepted } = await fill(free)
      if (!wasAccepted) continue
      accepted++
      const before = client.terminal().filter(({ messageId }) => messageId === '2')
      if (before.length === 0) waited++
      gateway.files.limitSpace(PLENTY)
      await gateway.clock.advance(60_000)
      const answers = client.terminal().filter(({ messageId }) => messageId === '2')
      expect(answers, `${free} bytes free`).toMatchObject([{ type: 'complete' }])
      const text = await transcriptsOf(gateway)
      expect(text.split('remember xxx').length - 1, `${free} bytes free`).toBeGreaterThanOrEqual(1)
      expect(text.split('"role":"user"').length - 1, `${free} bytes free`).toBe(2)
      expect(await client.ask({ id: '3', content: 'hello again', session: 's' })).toMatchObject({ type: 'complete' })
    }
    expect(accepted).toBeGreaterThan(5)
    expect(waited).toBeGreaterThan(3)
  })

  it('is left for the next start when a shutdown comes before space', async () => {
    const { gateway, client, wasAccepted } = await fill(3_000)
    expect(wasAccepted).toBe(true)
    expect(client.terminal().filter(({ messageId }) => messageId === '2')).toEqual([])
    await gateway.stop()
    gateway.files.limitSpace(PLENTY)
    const again = await gateways.restart(gateway, { kill: true })
    const back = await again.connect('?uid=u')
    await again.clock.advance(60_000)
    expect(back.terminal().filter(({ messageId }) => messageId === '2')).toMatchObject([{ type: 'complete' }])
  })

  it('costs what its one request cost, however often its answer could not be stored', async () => {
    const inputOf = (frames: readonly Frame[]): number =>
      frames.reduce((sum, { usage }) => sum + ((usage as { input: number } | undefined)?.input ?? 0), 0)
    for (let free = 3_000; free < 9_000; free += 500) {
      const { gateway, client } = await fill(free)
      await gateway.clock.advance(60_000)
      gateway.files.limitSpace(PLENTY)
      await gateway.clock.advance(60_000)
      const input = inputOf(client.terminal())
      const { usage } = await gateway.api('/api/usage')
      expect(usage, `${free} bytes free`).toMatchObject([{ requests: 2, input }])
    }
  })
})

describe('a message that finds the disk full', () => {
  it('is refused with its reason, also where no number can be stored for the refusal', async () => {
    const gateway = await gateways.open()
    const known = await gateway.connect('?uid=known')
    await known.ask({ id: '1', content: 'hello' })
    gateway.files.limitSpace(0)
    for (const query of ['?uid=known', '?uid=new', '']) {
      const client = await gateway.connect(query)
      await client.send({ id: '2', content: 'hello' })
      await client.send({ type: 'session.reset', key: 'webhook:1', requestId: 'r' })
      await client.send('{"id":"3"}')
      await gateway.clock.advance(1_000)
      const codeOf = ({ code, data }: Frame): string => String(code ?? (data as { code: string }).code)
      const refused = client.terminal().map((frame) => `${String(frame['type'])} ${codeOf(frame)}`)
      expect(refused.toSorted(), query).toEqual([
        'error FIELD_INVALID',
        'error STORAGE_FULL',
        'session.reset STORAGE_FULL',
      ])
    }
  })
})
