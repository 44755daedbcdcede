import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { build, newHome, removeHome, ROOT } from '../support/built-gateway.ts'

let home = ''
let pid = 0
afterEach(async () => {
  if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  await removeHome(home)
})

/** As npm does it: a shell in between, which a signal to npm ends and the gateway never hears of. */
it('npm start: the gateway drains and ends when npm is ended', { timeout: 60_000 }, async () => {
  await build()
  home = await newHome()
  const shell = spawn('sh', ['-c', 'node scripts/start.mjs --port 0 --home "$0"; exit', home], {
    cwd: ROOT,
    env: { ...process.env, npm_lifecycle_event: 'start' },
    stdio: 'ignore',
  })
  pid = await until(() => gatewayPid(home))
  expect(pid).not.toBe(shell.pid)
  shell.kill('SIGTERM')
  await until(async () => (isRunning(pid) ? undefined : true))
  // Its address is taken back last: it was not killed, it stopped.
  expect(await gatewayPid(home)).toBeUndefined()
})

async function gatewayPid(folder: string): Promise<number | undefined> {
  try {
    const contact = JSON.parse(await readFile(join(folder, 'gateway.json'), 'utf8')) as { process: { pid: number } }
    return contact.process.pid
  } catch {
    return undefined
  }
}

function isRunning(id: number): boolean {
  try {
    // 0 would be everybody in our group.
    return id > 0 && process.kill(id, 0)
  } catch {
    return false
  }
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await pause(50)
  }
}
