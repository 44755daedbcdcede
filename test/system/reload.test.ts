import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { build, BuiltGateway, newHome, pause, removeHome, ROOT, run } from '../support/built-gateway.ts'

const MAIN = join(ROOT, 'dist', 'cli', 'main.js')
let home: string
let gateway: BuiltGateway

beforeAll(build)

afterEach(async () => {
  await gateway.kill()
  await removeHome(home)
})

function clew(...args: string[]): ReturnType<typeof run> {
  return run(process.execPath, [MAIN, ...args, '--home', home])
}

async function shows(words: string, times = 1): Promise<void> {
  const count = (): number => gateway.output.split(words).length - 1
  for (let tries = 0; tries < 1_000 && count() < times; tries++) await pause(10)
  expect(count()).toBeGreaterThanOrEqual(times)
}

it('a socket stays open over `clew reload` and SIGHUP; a bad file changes nothing and both say why', async () => {
  home = await newHome({})
  gateway = await BuiltGateway.start(home)
  const client = await gateway.connect('?uid=ada')
  await client.ask({ id: '1', session: 's', content: 'hello' })

  await writeFile(join(home, 'bridge.json'), JSON.stringify({ language: 'zh', limits: { connections: 9 } }))
  const said = await clew('reload')
  expect(said).toMatchObject({ code: 0 })
  expect(said.output).toContain('applied        language')
  expect(said.output).toContain('needs restart  limits.connections')
  expect(said.output).toContain('clew restart')

  await writeFile(join(home, 'bridge.json'), '{ "language": "en", "agent": { "tools": ["calculater"] } }')
  const refused = await clew('reload')
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('calculater')
  gateway.child.kill('SIGHUP')
  await shows('bridge.json was not taken over')
  expect((await clew('status', '--json')).output).toContain('"language": "zh"')

  await writeFile(join(home, 'bridge.json'), JSON.stringify({ queue: { mode: 'steer' } }))
  gateway.child.kill('SIGHUP')
  // The first time was `clew reload`.
  await shows('read bridge.json again', 2)
  const answer = await client.ask({ id: '2', session: 's', content: '/status' })
  expect(answer['content']).toContain('steer')
  await client.close()
})

it('without a gateway `clew reload` says so', async () => {
  home = await newHome({})
  gateway = await BuiltGateway.start(home)
  await gateway.stop()
  const said = await clew('reload')
  expect(said.code).toBe(1)
  expect(said.output).toContain('GATEWAY_NOT_RUNNING')
})

it('a terminal that is closed ends its gateway', async () => {
  home = await newHome({})
  const command = `exec '${process.execPath}' '${MAIN}' start --port 0 --home '${home}'`
  const terminal = spawn('script', ['-qfec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'] })
  let shown = ''
  terminal.stdout.on('data', (piece: Buffer) => (shown += piece.toString()))
  for (let tries = 0; tries < 2_000 && !shown.includes('is ready'); tries++) await pause(10)
  terminal.kill('SIGKILL')
  for (let tries = 0; tries < 2_000 && (await clew('status')).code === 0; tries++) await pause(10)
  expect((await clew('status')).code).toBe(1)
  // The home is free again.
  gateway = await BuiltGateway.start(home)
})
