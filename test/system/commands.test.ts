import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { build, BuiltGateway, newHome, pause, removeHome, ROOT, run } from '../support/built-gateway.ts'

const MAIN = join(ROOT, 'dist', 'cli', 'main.js')

beforeAll(build)

it('tools list asks the running gateway and starts no server a second time', async () => {
  const home = await newHome()
  const pids = join(home, 'pids')
  const server = join(ROOT, 'test', 'support', 'hostile-mcp-server.mjs')
  const configured = await newHome({
    agent: { mcp: { servers: { s: { command: process.execPath, args: [server, 'lies', pids] } } } },
  })
  const gateway = await BuiltGateway.start(configured)
  const list = (): ReturnType<typeof run> => run(process.execPath, [MAIN, 'tools', 'list', '--home', configured])
  let { output } = await list()
  for (let tries = 0; tries < 100 && !output.includes('s__echo'); tries++) {
    await pause(100)
    output = (await list()).output
  }
  expect(output).toContain('s__echo')
  expect(output).toContain('only-as-task is not offered: it runs only as a task')
  expect((await readFile(pids, 'utf8')).trim().split('\n')).toHaveLength(1)
  expect(await gateway.stop()).toBe(0)
  await Promise.all([removeHome(home), removeHome(configured)])
}, 60_000)

it.each([['provider', 'anthropic'], ['hub']])('simulate %s on a busy port says so', async (...names) => {
  const busy = createServer()
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve))
  const address = busy.address()
  const port = typeof address === 'object' && address !== null ? String(address.port) : ''
  const { code, output } = await run(process.execPath, [MAIN, 'simulate', ...names, '--port', port, '--verbose'])
  busy.close()
  expect(code).toBe(1)
  expect(output).toContain(`port ${port} of 127.0.0.1 is in use`)
  expect(output).toContain('(PORT_IN_USE)')
})

it('a service is given longer to stop than its gateway drains', async () => {
  const stopSeconds = async (config: Readonly<Record<string, unknown>>): Promise<string | undefined> => {
    const home = await newHome(config)
    try {
      const { output } = await run(process.execPath, [MAIN, 'service', 'install', '--print', '--home', home])
      return /(?:TimeoutStopSec=|<key>ExitTimeOut<\/key>\s*<integer>)(\d+)/u.exec(output)?.[1]
    } finally {
      await removeHome(home)
    }
  }
  expect(await stopSeconds({})).toBe('20')
  expect(await stopSeconds({ shutdown: { drain_ms: 60_000 } })).toBe('70')
})
