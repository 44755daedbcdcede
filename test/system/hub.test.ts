import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { BuiltGateway, build, newHome, pause, removeHome, ROOT, SystemClient } from '../support/built-gateway.ts'

beforeAll(build)

it('clew simulate hub: a gateway dials it, a client behind it is answered', async () => {
  const hub = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'simulate', 'hub', '--port', '0'])
  const exited = new Promise((resolve) => hub.once('exit', resolve))
  let output = ''
  hub.stdout.on('data', (piece: Buffer) => (output += piece.toString()))
  const found = (pattern: RegExp): string => pattern.exec(output)?.[1] ?? ''
  while (found(/clients\s+(ws:\S+)/u) === '' && hub.exitCode === null) await pause(20)
  const home = await newHome({ webhook_url: found(/"webhook_url": "([^"]+)"/u), uid: 'my-gateway' })
  const gateway = await BuiltGateway.start(home)
  try {
    const client = new SystemClient(new WebSocket(found(/clients\s+(ws:\S+)/u)))
    await client.opened
    let answer = await client.ask({ id: '1', content: 'hello' })
    // The gateway may still be on its way to the hub, which says so.
    for (let tries = 0; answer['code'] === 'HUB_NO_BRIDGE' && tries < 200; tries++) {
      await pause(50)
      answer = await client.ask({ id: '1', content: 'hello' })
    }
    expect(answer).toMatchObject({ type: 'complete', messageId: '1', session: 'webhook:1' })
    await client.close()
    expect(await gateway.stop()).toBe(0)
  } finally {
    hub.kill('SIGTERM')
    await removeHome(home)
  }
  expect(await exited).toBe(0)
})
