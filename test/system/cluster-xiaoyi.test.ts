import { afterEach, beforeAll, expect, test } from 'vitest'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { build, BuiltGateway, newHome, removeHome } from '../support/built-gateway.ts'
import { openModelServer } from '../support/model-server.ts'
import { databaseUrl, freshSchema } from '../support/test-database.ts'
import { AGENT } from '../support/xiaoyi-world.ts'

const closing: (() => unknown)[] = []
beforeAll(build)
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 20) {
    if (waited > 45_000) throw new Error(`it did not happen: ${what}`)
    await new Promise<void>((resolve) => systemClock.after(20, resolve))
  }
}

/** A simulated service, and how to start nodes that all have its agent in their configuration. */
async function openWorld(): Promise<{ readonly simulator: XiaoyiSimulator; start(): Promise<BuiltGateway> }> {
  const endpoint = { host: '127.0.0.1', port: 0 }
  const simulator = await createXiaoyiSimulator({
    clock: systemClock,
    ids: systemIds,
    servers: nodeHttpServers,
    agent: AGENT,
    endpoints: [endpoint, endpoint],
  })
  closing.push(() => simulator.close())
  const model = await openModelServer(nodeHttpServers, systemClock)
  closing.push(() => model.close())
  const [wsUrl1, wsUrl2] = simulator.urls
  const config = {
    model: 'local/m',
    providers: { local: { type: 'openai-compatible', baseUrl: model.baseUrl } },
    channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2 } },
    storage: { kind: 'postgres', url: await databaseUrl(), schema: freshSchema(), lease_ms: 1_000 },
    shutdown: { drain_ms: 0 },
  }
  return {
    simulator,
    async start() {
      const home = await newHome(config)
      closing.push(() => removeHome(home))
      const node = await BuiltGateway.start(home)
      closing.push(() => node.kill())
      return node
    },
  }
}

const connected = (simulator: XiaoyiSimulator): boolean => simulator.connections.ready().length === 2

test('the links are of one node; kill -9 of it, and another one connects and finishes the task, once', async () => {
  const { simulator, start } = await openWorld()
  const first = await start()
  await until('the first node is connected', () => connected(simulator))
  const second = await start()
  expect(simulator.connections.ready()).toHaveLength(2)
  const task = simulator.say('say one |two |three')
  await until('the answer has begun', () => task.text !== '')
  await first.kill()
  expect(task.state).toBe('running')
  await until('the task is finished', () => task.state !== 'running')
  expect(task).toMatchObject({ state: 'done', finals: 1 })
  simulator.redeliver(task)
  const next = simulator.say('hello')
  await until('the conversation goes on', () => next.state === 'done')
  expect(next.text).toBe('hello')
  expect(task.finals).toBe(1)
  expect(simulator.connections.ready()).toHaveLength(2)
  expect(simulator.phone.violations).toEqual([])
  expect(await second.stop()).toBe(0)
})

test('a node that stops in order hands links and tasks to another one at once', async () => {
  const { simulator, start } = await openWorld()
  const first = await start()
  await until('the first node is connected', () => connected(simulator))
  await start()
  const task = simulator.say('say one |two |three')
  await until('the answer has begun', () => task.text !== '')
  expect(await first.stop()).toBe(0)
  await until('the task is finished', () => task.state !== 'running')
  expect(task).toMatchObject({ state: 'done', finals: 1 })
  expect(task.text).toContain('three')
  expect(simulator.phone.violations).toEqual([])
})
