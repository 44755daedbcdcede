import { expect, test } from 'vitest'
import { settle } from '../../../src/testing/manual-clock.ts'
import { ENDPOINTS, framesOf, inWorld } from '../../support/xiaoyi-world.ts'

test('a link that returns within 5 s gets its own tasks back; the screen has no gap', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('say a|b|c|d|e|f|g|h|i', { via: 0 })
    await clock.advance(1_500)
    simulator.connections.cut(0)
    await clock.advance(10_000)
    expect(task.frames.every(({ endpoint }) => endpoint === 0)).toBe(true)
    expect(
      framesOf(task)
        .filter((frame) => !frame.includes('append'))
        .slice(1, 3),
    ).toEqual(['artifact "a"', expect.stringMatching(/^artifact "abcd?e?"$/)])
    expect(task).toMatchObject({ text: 'abcdefghi', finals: 1 })
  }))

test('after 5 s the other link takes over, beginning with the whole text', () =>
  inWorld({}, async ({ simulator, network, clock }) => {
    const task = simulator.say('say a|b|c|d|e|f|g|h|i', { via: 0 })
    await clock.advance(1_500)
    network.takeDown(ENDPOINTS[0])
    simulator.connections.cut(0)
    await clock.advance(4_900)
    const held = task.frames.length
    await clock.advance(200)
    expect(task.frames.length).toBeGreaterThan(held)
    expect(task.frames[held]).toMatchObject({ endpoint: 1, append: false, text: 'abcdefg' })
    await clock.advance(10_000)
    expect(task).toMatchObject({ text: 'abcdefghi', finals: 1 })
  }))

test('an answer that ends while everything is down is delivered when a link is back, once', () =>
  inWorld({}, async ({ simulator, network, clock, gateway }) => {
    const task = simulator.say('say a|b|c')
    await clock.advance(500)
    for (const host of ENDPOINTS) network.takeDown(host)
    simulator.connections.cut()
    await clock.advance(10_000)
    expect(gateway.outbox).toHaveLength(1)
    for (const host of ENDPOINTS) network.bringUp(host)
    await clock.advance(25_000)
    expect(gateway.outbox).toHaveLength(0)
    expect(task).toMatchObject({ state: 'done', text: 'abc', finals: 1 })
  }))

test('an answer lost in a half-open link is noticed within ten seconds and sent over the other', () =>
  inWorld({}, async ({ simulator, clock }) => {
    await clock.advance(1_000)
    const task = simulator.say('work 1|kept', { via: 0 })
    await clock.advance(100)
    simulator.connections.silence(0)
    await clock.advance(2_000)
    expect(task.state).toBe('running')
    await clock.advance(16_000)
    expect(task).toMatchObject({ state: 'done', text: 'kept', finals: 1 })
  }))

test('a reordered service is no trouble: each message has its own task', () =>
  inWorld({ switches: { swapRequests: true } }, async ({ simulator, clock }) => {
    const [first, second] = [simulator.say('first'), simulator.say('second')]
    await clock.advance(1_000)
    expect([first.text, second.text]).toEqual(['first', 'second'])
  }))

test('a message delivered on both links is downloaded, run and answered once', () =>
  inWorld({ switches: { duplicateOnAllLinks: true } }, async ({ simulator, clock, gateway }) => {
    const task = simulator.say('hello')
    await clock.advance(1_000)
    expect(gateway.accepted).toHaveLength(1)
    expect(task.finals).toBe(1)
  }))

test('the answer to a command waits for a link, too', () =>
  inWorld({}, async ({ simulator, network, clock, gateway }) => {
    simulator.say('hello', { via: 0 })
    await clock.advance(1_000)
    let letThrough = (): void => {}
    const control = gateway.control.bind(gateway)
    gateway.control = async (command) => {
      await new Promise<void>((resolve) => (letThrough = resolve))
      return control(command)
    }
    const clear = simulator.clear('official', 0)
    await settle()
    network.takeDown(ENDPOINTS[0])
    simulator.connections.cut(0)
    await settle()
    letThrough()
    await clock.advance(4_000)
    expect(clear.answers).toEqual([])
    await clock.advance(2_000)
    expect(clear.answers).toMatchObject([{ state: 'cleared', endpoint: 1 }])
  }))

test('frames held for a link that never returns are bounded and counted', () =>
  inWorld(
    { endpoints: 1, config: { limits: { maxHeldFrames: 5 } } },
    async ({ simulator, network, clock, gateway, channel }) => {
      let letThrough = (): void => {}
      const gate = new Promise<void>((resolve) => (letThrough = resolve))
      gateway.control = async () => {
        await gate
        return { type: 'reset', key: 'k' as never }
      }
      for (let count = 0; count < 20; count++) simulator.clear()
      await settle()
      network.takeDown(ENDPOINTS[0])
      simulator.connections.cut()
      await settle()
      letThrough()
      await clock.advance(1_000)
      expect(channel.status()).toMatchObject({ heldFrames: 5, droppedFrames: 15 })
    },
  ))

test('a slow service does not make previews pile up', () =>
  inWorld({ config: { limits: { maxBufferedBytes: 2_000 } } }, async ({ simulator, network, clock }) => {
    const task = simulator.say(`say ${Array(60).fill('x'.repeat(1_000)).join('|')}`, { via: 0 })
    await clock.advance(500)
    const server = network.connections(ENDPOINTS[0])[0]?.server
    server?.pause()
    await clock.advance(50_000)
    const buffered = network.connections(ENDPOINTS[0])[0]?.client.bufferedBytes ?? 0
    expect(buffered).toBeLessThan(10_000)
    server?.resume()
    await clock.advance(20_000)
    expect(task).toMatchObject({ state: 'done', finals: 1 })
    expect(task.text).toHaveLength(60_000)
  }))
