import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/base/json.ts'
import { type Fault, MemoryFiles } from '../../src/testing/memory-files.ts'
import { SeededIds, seededRandom } from '../../src/testing/seeded-ids.ts'
import { createFilesTool } from '../../src/tool/files/files-tool.ts'
import { aCall, never } from '../support/tool-call.ts'

const SEED = 20261115
const path = '/home/workspace/notes/a.txt'
const FAULTS: readonly Fault[] = ['crash-before', 'crash-after', 'crash-torn', 'EIO', 'ENOSPC']

const run = async (disk: MemoryFiles, args: JsonObject): Promise<boolean> => {
  const tool = createFilesTool({ files: disk, ids: new SeededIds(), workspace: '/home/workspace' })
  try {
    return !(await tool.run(aCall('files', args), never)).isError
  } catch {
    return false
  }
}

const write = (disk: MemoryFiles, text: string): Promise<boolean> =>
  run(disk, { action: 'write', path: 'notes/a.txt', text })

const move = (disk: MemoryFiles): Promise<boolean> =>
  run(disk, { action: 'move', path: 'notes/a.txt', to: 'old/deep/b.txt' })

/** How many changing calls it makes, so that a fault can be put at each of them. */
async function operationsOf(change: (disk: MemoryFiles) => Promise<boolean>): Promise<number> {
  const disk = new MemoryFiles()
  await write(disk, 'old')
  const before = disk.operations
  await change(disk)
  return disk.operations - before
}

/** Every disk that can be found after the change was disturbed at any place. */
async function* disturbed(fault: Fault, change: (disk: MemoryFiles) => Promise<boolean>) {
  const operations = await operationsOf(change)
  const random = seededRandom(SEED)
  for (let at = 0; at < operations; at++) {
    const disk = new MemoryFiles()
    await write(disk, 'old')
    disk.injectFault(disk.operations + at, fault)
    const reported = await change(disk)
    for (const after of [disk.kill(), disk.crash(), disk.crash(random)]) yield { after, reported }
  }
}

describe('a change of the files tool that is interrupted anywhere', () => {
  it.each(FAULTS)('leaves the old text or the new one, and the new one once it was reported (%s)', async (fault) => {
    for await (const { after, reported } of disturbed(fault, (disk) => write(disk, 'new'))) {
      const text = after.text(path)
      expect(['old', 'new']).toContain(text)
      expect(!reported || text === 'new').toBe(true)
    }
  })

  it.each(FAULTS)('never loses a file that is moved (%s)', async (fault) => {
    for await (const { after, reported } of disturbed(fault, move)) {
      const [from, to] = [after.text(path), after.text('/home/workspace/old/deep/b.txt')]
      expect([from, to]).toContain('old')
      expect(!reported || to === 'old').toBe(true)
    }
  })
})
