import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const gateways = gatewaysOfThisFile()

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const FRAMES = 900

describe.each([
  ['back by ten minutes', -10 * MINUTE_MS],
  ['back by an hour', -HOUR_MS],
  ['forth by an hour', HOUR_MS],
  ['forth by a day', 25 * HOUR_MS],
])('a wall clock that is set %s', (_name, byMs) => {
  it('refuses no frame and closes no connection', async () => {
    const gateway = await gateways.open({ config: { limits: { frames_per_second: 100, frames_burst: 10 } } })
    const client = await gateway.connect()
    for (let sent = 0; sent < FRAMES; sent++) {
      if (sent === FRAMES / 3) gateway.clock.stepWallTime(byMs)
      await client.send({ type: 'session.get', key: 'none', requestId: `r${sent}` })
      // Ten milliseconds are the time in which one frame becomes due.
      await gateway.clock.advance(10)
    }
    expect(client.frames).toHaveLength(FRAMES)
    expect(client.frames.filter(({ data }) => JSON.stringify(data).includes('RATE_LIMITED'))).toEqual([])
    expect(client.closed).toBeUndefined()
  })

  it('answers messages, and a flood is still refused', async () => {
    const gateway = await gateways.open({ config: { limits: { frames_per_second: 1, frames_burst: 3 } } })
    const client = await gateway.connect()
    expect(await client.ask({ id: '1', content: '/help' })).toMatchObject({ type: 'complete' })
    gateway.clock.stepWallTime(byMs)
    for (const id of ['2', '3', '4']) await client.send({ id, content: '/help' })
    const frames = await client.waitFor(4)
    expect(frames.filter(({ code }) => code === 'RATE_LIMITED').map(({ messageId }) => messageId)).toEqual(['4'])
  })
})
