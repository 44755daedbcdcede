import { describe, expect, it } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import type { MemoryGateway, TestClient } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const gateways = gatewaysOfThisFile()

interface TranscriptHome {
  readonly gateway: MemoryGateway
  readonly client: TestClient
  readonly lines: string[]
}

function recordingLog(lines: string[]): Log {
  const note = (message: string, facts: object = {}): void => void lines.push(`${message} ${JSON.stringify(facts)}`)
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log }
  return log
}

/** A message is accepted while no file can be opened; its conversation's file is not open. */
async function begin(): Promise<TranscriptHome> {
  const lines: string[] = []
  const gateway = await gateways.open({
    config: { limits: { warm_session_bytes: 0 } },
    ports: { log: recordingLog(lines) },
  })
  const client = await gateway.connect('?uid=u')
  await client.ask({ id: '1', content: 'hello', session: 's' })
  await gateway.clock.advance(3_600_000)
  const again = await gateway.connect('?uid=u')
  gateway.files.refuseOpening(true)
  await again.send({ id: '2', content: 'are you there', session: 's', ack: true })
  await gateway.clock.advance(5_000)
  return { gateway, client: again, lines }
}

const answersTo = (client: TestClient, id: string): unknown[] =>
  client.terminal().filter(({ messageId }) => messageId === id)

describe('a message that was accepted while no file can be opened', () => {
  it('stays open, the log says what to do, and it is answered once when files can be opened again', async () => {
    const { gateway, client, lines } = await begin()
    expect(client.frames.some(({ type, messageId }) => type === 'accepted' && messageId === '2')).toBe(true)
    expect(answersTo(client, '2')).toEqual([])
    expect(lines.filter((line) => line.includes('TOO_MANY_OPEN_FILES')).join('\n')).toContain('ulimit -n')
    gateway.files.refuseOpening(false)
    await gateway.clock.advance(60_000)
    expect(answersTo(client, '2')).toMatchObject([{ type: 'complete' }])
    expect(await client.ask({ id: '3', content: 'hello again', session: 's' })).toMatchObject({ type: 'complete' })
  })

  it('does not make a defect of who reads its conversation: the request may be sent again', async () => {
    const { gateway } = await begin()
    const { status, headers, text } = await gateway.request('/api/sessions/s')
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    expect(JSON.parse(text)).toMatchObject({ code: 'TOO_MANY_OPEN_FILES' })
    gateway.files.refuseOpening(false)
    await gateway.clock.advance(60_000)
    expect((await gateway.request('/api/sessions/s')).status).toBe(200)
  })

  it('is left for the next start when a shutdown comes first', async () => {
    const { gateway, client } = await begin()
    expect(answersTo(client, '2')).toEqual([])
    await gateway.stop()
    gateway.files.refuseOpening(false)
    const next = await gateways.restart(gateway, { kill: true })
    const back = await next.connect('?uid=u')
    await next.clock.advance(60_000)
    expect(answersTo(back, '2')).toMatchObject([{ type: 'complete' }])
  })
})
