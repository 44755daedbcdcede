import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/core/errors.ts'
import type { FetchMedia } from '../../../src/channel/xiaoyi/media.ts'
import { settle } from '../../../src/testing/manual-clock.ts'
import type { World } from '../../support/xiaoyi-world.ts'
import { framesOf, inWorld } from '../../support/xiaoyi-world.ts'

/** A download that ends only when it is aborted. */
const neverEnding: FetchMedia = (_url, _options, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

const FILE = { kind: 'file', file: { name: 'a.txt', mimeType: 'text/plain', uri: 'https://files.example/a.txt' } }

test('clearing empties the conversation, emits the event and is answered "cleared"', () =>
  inWorld({}, async ({ simulator, clock, gateway, cleared }) => {
    simulator.say('secret')
    await clock.advance(100)
    const { sessionId } = simulator
    expect(gateway.historyOf(sessionId)).toEqual(['secret'])
    const clear = simulator.clear()
    await settle()
    expect(gateway.historyOf(sessionId)).toEqual([])
    expect(clear.answers).toMatchObject([{ state: 'cleared' }])
    expect(cleared).toMatchObject([{ sessionId, id: clear.id, key: expect.stringContaining(':xiaoyi:dm:') }])
  }))

test('a clear that fails is answered "failed", the task goes on, and no event is emitted', () =>
  inWorld({}, async ({ simulator, clock, gateway, cleared, logs }) => {
    const task = simulator.say('say a|b|c')
    await clock.advance(100)
    gateway.failControl = new GatewayError('STORAGE_FAILED', 'the disk is gone')
    const clear = simulator.clear()
    await settle()
    expect(clear.answers).toMatchObject([{ state: 'failed' }])
    expect(cleared).toEqual([])
    await clock.advance(5_000)
    expect(task).toMatchObject({ text: 'abc', finals: 1 })
    expect(logs.some((line) => line.includes('STORAGE_FAILED'))).toBe(true)
  }))

test('a request that failed is tried again when it is repeated', () =>
  inWorld({}, async ({ simulator, clock, gateway, cleared }) => {
    simulator.say('hello')
    await clock.advance(100)
    const { sessionId } = simulator
    gateway.failControl = new GatewayError('STORAGE_FULL', 'the disk is full')
    const clear = simulator.clear()
    await settle()
    gateway.failControl = undefined
    simulator.sendRaw(JSON.stringify({ jsonrpc: '2.0', id: clear.id, sessionId, method: 'clearContext' }))
    await settle()
    expect(clear.answers.map(({ state }) => state)).toEqual(['failed', 'cleared'])
    expect(cleared).toHaveLength(1)
    expect(gateway.historyOf(sessionId)).toEqual([])
  }))

test('from the moment of a cancel nothing more of the task appears, and its turn is stopped', () =>
  inWorld({}, async ({ simulator, clock, gateway }) => {
    const task = simulator.say('hang')
    await clock.advance(3_500)
    const cancel = simulator.cancel()
    await settle()
    expect(gateway.running).toBe(0)
    expect(framesOf(task).at(-1)).toBe('status "canceled" final')
    expect(cancel.answers).toMatchObject([{ state: 'canceled', resultId: cancel.id }])
    await clock.advance(60_000)
    expect(task.finals).toBe(1)
  }))

test('the answer of a cancel with a task id names the task', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const task = simulator.say('hang')
    await clock.advance(1_000)
    const cancel = simulator.cancel('seed', task)
    await settle()
    expect(cancel.answers).toMatchObject([{ state: 'canceled', resultId: task.taskId }])
  }))

test('a cancel for a task that is over stops nothing else', () =>
  inWorld({}, async ({ simulator, clock }) => {
    const over = simulator.say('hello')
    await clock.advance(100)
    const running = simulator.say('work 5|done')
    await clock.advance(100)
    const cancel = simulator.cancel('seed', over)
    await settle()
    expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
    await clock.advance(6_000)
    expect(running).toMatchObject({ text: 'done' })
  }))

test('a message that is still downloading is cancelled too: the download ends and its task is closed', () =>
  inWorld({ fetchMedia: neverEnding }, async ({ simulator, clock, gateway }) => {
    const task = simulator.sayParts([FILE])
    await clock.advance(5_000)
    expect(task.frames).toEqual([])
    const cancel = simulator.cancel()
    await settle()
    expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
    expect(framesOf(task)).toEqual(['status "canceled" final'])
    expect(gateway.accepted).toEqual([])
  }))

test('a download in one session delays neither commands nor messages of another', () =>
  inWorld({ fetchMedia: neverEnding }, async ({ simulator, clock }) => {
    simulator.sayParts([FILE])
    const other = simulator.newConversation()
    const task = simulator.say('hello', { sessionId: other })
    await clock.advance(100)
    expect(task.text).toBe('hello')
    simulator.clear()
    await settle()
    expect(simulator.phone.controls[0]?.answers).toMatchObject([{ state: 'cleared' }])
  }))

test('a cancel that meets a message on its way to the disk waits for it, then stops it', () =>
  inWorld({}, async ({ simulator, clock, gateway }) => {
    let letThrough = (): void => {}
    gateway.acceptGate = new Promise((resolve) => (letThrough = resolve))
    const task = simulator.say('hang')
    await clock.advance(100)
    const cancel = simulator.cancel()
    await settle()
    expect(cancel.answers).toEqual([])
    letThrough()
    await clock.advance(100)
    expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
    expect(task).toMatchObject({ state: 'done', lastState: 'canceled', finals: 1 })
  }))

test('a command delivered twice is carried out once and answered on each link', () =>
  inWorld({ switches: { duplicateOnAllLinks: true } }, async ({ simulator, cleared }) => {
    const clear = simulator.clear()
    await settle()
    expect(new Set(clear.answers.map(({ endpoint }) => endpoint))).toEqual(new Set([0, 1]))
    expect(cleared).toHaveLength(1)
  }))

test('the launch id still means its conversation after a restart', async () => {
  let first: World | undefined
  await inWorld({}, async (world) => {
    world.simulator.say('secret')
    await world.clock.advance(100)
    first = world
  })
  if (first === undefined) throw new Error('the first world did not open')
  const { files, simulator: before } = first
  await inWorld({ files }, async ({ simulator, gateway }) => {
    const commands: unknown[] = []
    const control = gateway.control.bind(gateway)
    gateway.control = (command) => {
      commands.push(command)
      return control(command)
    }
    const frame = { jsonrpc: '2.0', id: 'c1', sessionId: before.topSessionId, method: 'clearContext' }
    simulator.phone.addControl({ kind: 'clear', id: 'c1', sessionId: before.topSessionId, tasks: [] })
    simulator.sendRaw(JSON.stringify(frame))
    await settle()
    expect(commands).toEqual([{ type: 'reset', key: `agent:main:xiaoyi:dm:${before.sessionId}` }])
  })
})
