import { expect, it } from 'vitest'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()

/** Counts reads of rows: those that others' work goes on beside, and those that it waits for. */
function counting(files: MemoryFiles): { aside: number; waitedFor: number } {
  const reads = { aside: 0, waitedFor: 0 }
  const open = files.open.bind(files)
  files.open = async (path, mode, permissions) => {
    const handle = await open(path, mode, permissions)
    if (!path.endsWith('.rows')) return handle
    return {
      ...handle,
      read: async (position, length) => {
        reads.aside++
        return handle.read(position, length)
      },
      readNow(position, length) {
        reads.waitedFor++
        return handle.readNow(position, length)
      },
    }
  }
  return reads
}

it('a message to a conversation that is not in memory waits for its row, and nobody else does', async () => {
  const before = await openGateway()
  const first = await before.connect('?uid=ann')
  // More than are kept in memory, all behind an index that is saved.
  for (let at = 0; at < 1_100; at++) {
    const record = { sessionId: `sess_${at}`, updatedAt: before.clock.now() + at, owner: 'ann', messages: 2 }
    await before.app.home.storage.transact([{ kind: 'put-session', key: `k${at}`, record } as never])
  }
  await first.ask({ id: '1', content: 'hello', session: 'k3' })
  await before.stop()
  const files = before.files.kill()
  const reads = counting(files)
  const after = await openGateway({ files })
  const ann = await after.connect('?uid=ann')
  const start = { ...reads }
  const answer = await ann.ask({ id: '2', content: 'hello', session: 'k7' })
  expect(answer).toMatchObject({ type: 'complete' })
  expect(reads.aside).toBeGreaterThan(start.aside)
  expect(reads.waitedFor).toBe(start.waitedFor)
  expect(await after.api('/api/sessions?limit=1')).toMatchObject({
    total: 1_100,
    sessions: [{ key: 'k7', messages: 4 }],
  })
})
