import { createInterface } from 'node:readline'
import { lockHome, type HomeLock } from '../../src/app/home-lock.ts'
import { silentLog } from '../../src/base/log.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { nodeProcesses } from '../../src/platform/node-processes.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'

/** A starter of its own process: `lock` tries to lock the home, `release` gives it back. Each answers with one line. */
const [home = ''] = process.argv.slice(2)
const deps = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
let held: HomeLock | undefined

async function tryLock(): Promise<string> {
  try {
    held = await lockHome(deps, home, `${home}/gateway.lock`, () => undefined)
    return 'owner'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

async function release(): Promise<string> {
  const kept = held === undefined || held.lost() === undefined ? 'released' : 'lost'
  await held?.release()
  held = undefined
  return kept
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${line === 'lock' ? await tryLock() : await release()}\n`)
}
