import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { bundledScript } from '../support/bundled-script.ts'

const lockerScript = bundledScript(join(import.meta.dirname, '../support/home-locker-process.ts'))
const PROCESSES = 6
const ROUNDS = 100

let home: string
const children: ChildProcess[] = []
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'clew-home-lock-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(home, { recursive: true, force: true })
})

function startLocker(): (command: 'lock' | 'release') => Promise<string> {
  const child = spawn(process.execPath, [lockerScript(), home], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async (command) => {
    child.stdin.write(`${command}\n`)
    return String((await answers.next()).value)
  }
}

it('of a dead gateway goes to exactly one of six processes that start at once, a hundred times', async () => {
  const lockers = Array.from({ length: PROCESSES }, startLocker)
  for (let round = 0; round < ROUNDS; round++) {
    // No process has this pid: the largest one of Linux is below it.
    const dead = { pid: 2 ** 22 + 1, startedAt: '1', host: hostname(), token: `round${round}` }
    await writeFile(join(home, 'gateway.lock'), JSON.stringify(dead))
    const answers = await Promise.all(lockers.map((ask) => ask('lock')))
    expect(answers.toSorted(), `round ${round}`).toEqual([...Array<string>(PROCESSES - 1).fill('HOME_IN_USE'), 'owner'])
    expect(await Promise.all(lockers.map((ask) => ask('release')))).toEqual(Array(PROCESSES).fill('released'))
    expect(await readdir(home)).toEqual([])
  }
})
