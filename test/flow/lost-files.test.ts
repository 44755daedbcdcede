import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const gateways = gatewaysOfThisFile()
const HOME = '/home/clew'
const JOURNAL = `${HOME}/journal`

/** Errors of the log, by what they say. */
function recordingLog(): { readonly log: typeof silentLog; readonly errors: string[] } {
  const errors: string[] = []
  const log: typeof silentLog = {
    ...silentLog,
    error: (message: string) => void errors.push(message),
    child: () => log,
  }
  return { log, errors }
}

async function used(): Promise<MemoryGateway> {
  const gateway = await gateways.open()
  const client = await gateway.connect('?uid=u')
  for (const id of ['1', '2', '3']) await client.ask({ id, content: `hello ${id}`, session: 's' })
  // Long enough for the head of the journal to be recorded.
  await gateway.clock.advance(15_000)
  return gateway
}

async function reopened(
  before: MemoryGateway,
  harm: (files: MemoryGateway['files']) => Promise<void> | void,
): Promise<{ readonly losses: Record<string, unknown>; readonly errors: string[] }> {
  const { log, errors } = recordingLog()
  const files = before.files.kill()
  await harm(files)
  const processes = before.processes.successor()
  const gateway = await MemoryGateway.open({ files, seed: 9, processes, ports: { log } })
  // The files of transcripts are looked at when the start is over.
  await gateway.clock.advance(1_000)
  const { storage } = await gateway.api('/api/status')
  await gateway.stop()
  return { losses: storage as Record<string, unknown>, errors }
}

const NONE = {
  damagedLines: 0,
  missingBatches: 0,
  unreadableSegments: 0,
  rejectedRecords: 0,
  lostBatches: 0,
  lostTranscripts: 0,
}

describe('what was lost while no gateway ran is noticed and said at the next start', () => {
  it('of a healthy home after kill -9: nothing', async () => {
    const { losses, errors } = await reopened(await used(), () => undefined)
    expect(losses).toMatchObject(NONE)
    expect(errors).toEqual([])
  })

  it('of one whose disk was full for a while: nothing', async () => {
    const gateway = await used()
    const client = await gateway.connect('?uid=u')
    gateway.files.limitSpace(0)
    expect(await client.ask({ id: '4', content: 'refused', session: 's' })).toMatchObject({ code: 'STORAGE_FULL' })
    gateway.files.limitSpace(10_000_000)
    expect(await client.ask({ id: '5', content: 'hello again', session: 's' })).toMatchObject({ type: 'complete' })
    const { losses, errors } = await reopened(gateway, () => undefined)
    expect(losses).toMatchObject(NONE)
    expect(errors).toEqual([])
  })

  it('a journal file that was removed', async () => {
    const { losses, errors } = await reopened(await used(), async (files) => {
      for (const name of await files.list(JOURNAL)) await files.remove(`${JOURNAL}/${name}`)
    })
    expect(losses['lostBatches']).toBeGreaterThan(0)
    expect(errors).toContain('the end of the journal is gone; what it held is lost')
  })

  it('the whole journal of a gateway that was killed right after its start', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?uid=u')
    await client.ask({ id: '1', content: 'hello', session: 's' })
    const { losses, errors } = await reopened(gateway, async (files) => {
      for (const name of await files.list(JOURNAL)) await files.remove(`${JOURNAL}/${name}`)
    })
    expect(losses).toMatchObject({ lostBatches: 1 })
    expect(errors).toContain('the end of the journal is gone; what it held is lost')
  })

  it('a journal file that was cut', async () => {
    const { losses } = await reopened(await used(), async (files) => {
      const handle = await files.open(`${JOURNAL}/1.log`, 'update')
      await handle.truncate(handle.stat().size >> 1)
      await handle.close()
    })
    expect(losses['lostBatches']).toBeGreaterThan(0)
    expect(losses['unfinishedLines']).toBe(1)
  })

  it('a journal file of noise', async () => {
    const { losses, errors } = await reopened(await used(), (files) => {
      files.plant(`${JOURNAL}/1.log`, 'noise\n'.repeat(100))
    })
    expect(losses).toMatchObject({ unreadableSegments: 1 })
    expect(losses['lostBatches']).toBeGreaterThan(0)
    expect(errors[0]).toContain('holds nothing that can be read')
  })

  it('a gap in the middle of the journal', async () => {
    const { losses, errors } = await reopened(await used(), (files) => {
      const lines = (files.text(`${JOURNAL}/1.log`) ?? '').split('\n').filter((line) => /^[0-9a-f]{8} /u.test(line))
      const batchOf = (line: string): string => line.slice(9).split('.')[0] ?? ''
      const gone = new Set([batchOf(lines[3] ?? '')])
      files.plant(`${JOURNAL}/1.log`, `${lines.filter((line) => !gone.has(batchOf(line))).join('\n')}\n`)
    })
    expect(losses).toMatchObject({ missingBatches: 1, lostBatches: 0 })
    expect(errors).toContain('parts of the journal are missing; what they held is lost')
  })

  it.each(['removed', 'cut'])('a transcript that was %s after a clean stop', async (how) => {
    const before = await used()
    await before.stop()
    const { losses, errors } = await reopened(before, async (files) => {
      const [name] = (await files.list(`${HOME}/sessions`)).filter((one) => one.endsWith('.jsonl'))
      const path = `${HOME}/sessions/${name ?? ''}`
      if (how === 'removed') return files.remove(path)
      const handle = await files.open(path, 'update')
      await handle.truncate(handle.stat().size - 200)
      return handle.close()
    })
    expect(losses).toMatchObject({ ...NONE, lostTranscripts: 1 })
    expect(errors).toContain('transcripts are gone, or shorter than they were; a backup may have them')
  })
})
