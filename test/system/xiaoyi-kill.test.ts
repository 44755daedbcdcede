import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { createXiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { build, MAIN } from '../support/built-gateway.ts'
import { openModelServer } from '../support/model-server.ts'
import { AGENT } from '../support/xiaoyi-world.ts'

beforeAll(build)

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 20) {
    if (waited > 45_000) throw new Error(`it did not happen: ${what}`)
    await new Promise<void>((resolve) => systemClock.after(20, resolve))
  }
}

/** The command as a person starts it. */
function startGateway(home: string): ChildProcess {
  return spawn(process.execPath, [MAIN, 'start', '--home', home, '--port', '0'], { stdio: 'ignore' })
}

async function ended(gateway: ChildProcess): Promise<void> {
  await until('the process has ended', () => gateway.exitCode !== null || gateway.signalCode !== null)
}

test('kill -9 in the middle of an answer: the next process finishes the task, once', async () => {
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
  const home = await mkdtemp(join(tmpdir(), 'clew-kill-'))
  closing.push(() => rm(home, { recursive: true, force: true }))
  const [wsUrl1, wsUrl2] = simulator.urls
  const config = {
    model: 'local/m',
    providers: { local: { type: 'openai-compatible', baseUrl: model.baseUrl } },
    channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2 } },
  }
  await writeFile(join(home, 'bridge.json'), JSON.stringify(config))

  const first = startGateway(home)
  closing.push(async () => first.kill('SIGKILL'))
  await until('the first process is connected', () => simulator.connections.ready().length === 2)
  const task = simulator.say('say one |two |three')
  await until('the answer has begun', () => task.text !== '')
  first.kill('SIGKILL')
  await ended(first)
  expect(task.state).toBe('running')

  const second = startGateway(home)
  closing.push(async () => second.kill('SIGKILL'))
  await until('the task is finished', () => task.state !== 'running')
  expect(task).toMatchObject({ state: 'done', finals: 1 })
  expect(task.text).not.toBe('')
  simulator.redeliver(task)
  const next = simulator.say('hello')
  await until('the conversation goes on', () => next.state === 'done')
  expect(next.text).toBe('hello')
  expect(task.finals).toBe(1)
  expect(simulator.phone.violations).toEqual([])

  second.kill('SIGTERM')
  await ended(second)
  expect(second.exitCode).toBe(0)
})
