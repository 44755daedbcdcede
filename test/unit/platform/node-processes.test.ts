import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync, existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nodeProcesses } from '../../../src/platform/node-processes.ts'

const { self } = nodeProcesses

describe('processes as the system knows them', () => {
  it('knows that this one lives, and that one with its pid but another start does not', () => {
    expect(nodeProcesses.isAlive(self)).toBe(true)
    expect(nodeProcesses.isAlive({ ...self, startedAt: '1' })).toBe(false)
    expect(nodeProcesses.isAlive({ ...self, startedAt: '' })).toBe(true)
  })

  it('knows when a process ended', async () => {
    const child = spawn(process.execPath, ['-e', '0'])
    await once(child, 'exit')
    expect(nodeProcesses.isAlive({ ...self, pid: child.pid ?? 0, startedAt: '' })).toBe(false)
  })

  it('does not judge processes of other machines', () => {
    expect(nodeProcesses.isAlive({ pid: 1, startedAt: '1', host: 'elsewhere' })).toBe(true)
  })

  it('removes what was left with it when a signal ends the process, but not a successor', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clew-exit-'))
    try {
      const [ours, theirs] = [join(folder, 'ours'), join(folder, 'theirs')]
      writeFileSync(ours, '')
      writeFileSync(theirs, '')
      const { dev, ino } = statSync(ours)
      const script = `
        import { nodeProcesses } from ${JSON.stringify(join(import.meta.dirname, '../../../src/platform/node-processes.ts'))}
        nodeProcesses.onExit(${JSON.stringify(ours)}, ${JSON.stringify(`${dev}:${ino}`)})
        nodeProcesses.onExit(${JSON.stringify(theirs)}, '0:0')
        console.log('ready')
        setInterval(() => undefined, 1000)`
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script])
      await once(child.stdout, 'data')
      child.kill('SIGTERM')
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
      expect(signal).toBe('SIGTERM')
      expect([existsSync(ours), existsSync(theirs)]).toEqual([false, true])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
