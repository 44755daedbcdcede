import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { checkTranscript, repairTranscript, type RepairPorts } from '../../../src/transcript/check.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { never } from '../../support/transcripts.ts'

const PATH = '/s/sess_a.jsonl'
const HEADER = '{"type":"session","version":3,"id":"sess_a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
const line = (id: string, parentId: string | null): string =>
  `${JSON.stringify({ type: 'message', id, parentId, timestamp: '2026-01-01T00:00:00.000Z', message: { role: 'user', content: id, timestamp: 1 } })}\n`

function ports(files: MemoryFiles): RepairPorts {
  return { files, clock: new RunningClock(), ids: new SeededIds(), processes: new ScriptedProcesses(), log: silentLog }
}

function disk(text: string): MemoryFiles {
  const files = new MemoryFiles()
  files.plant(PATH, text)
  return files
}

describe('checking a transcript', () => {
  it('finds nothing wrong with a healthy one and has nothing to repair', async () => {
    const files = disk(HEADER + line('00000001', null) + line('00000002', '00000001'))
    const report = await checkTranscript(files, PATH)
    expect(report).toMatchObject({ isHealthy: true, entries: 2, version: 3, notes: [], steps: [] })
    const { isRepaired } = await repairTranscript(ports(files), PATH, never)
    expect(isRepaired).toBe(false)
    expect(await files.list('/s')).toEqual(['sess_a.jsonl'])
  })

  it('finds a body that does not parse although its head looks well', async () => {
    const glued = line('00000002', '00000001').slice(0, 90) + line('00000003', '00000002')
    const report = await checkTranscript(disk(HEADER + line('00000001', null) + glued), PATH)
    expect(report.isHealthy).toBe(false)
    expect(report.notes[0]).toMatchObject({ kind: 'corrupt', line: 3 })
  })

  it('changes nothing', async () => {
    const files = disk(`${HEADER}broken\n`)
    await checkTranscript(files, PATH)
    expect(files.text(PATH)).toBe(`${HEADER}broken\n`)
    expect(await files.list('/s')).toEqual(['sess_a.jsonl'])
  })

  it('says when there is no file', async () => {
    await expect(checkTranscript(new MemoryFiles(), PATH)).rejects.toMatchObject({ code: 'TRANSCRIPT_NOT_FOUND' })
  })
})

describe('repairing a transcript', () => {
  it('keeps the old bytes, links children of a lost line to its parent, and leaves a healthy file', async () => {
    // The lost line's head can still be read: its child belongs to 1, not to the line before it.
    const lost = '{"type":"message","id":"00000003","parentId":"00000001","timestamp":"20\n'
    const text = HEADER + line('00000001', null) + line('00000002', '00000001') + lost + line('00000004', '00000003')
    const files = disk(text)
    const report = await repairTranscript(ports(files), PATH, never)
    expect(report).toMatchObject({ isRepaired: true, isHealthy: false })
    expect(files.text(report.backupPath ?? '')).toBe(text)
    expect(files.text(PATH)).toContain('"id":"00000004","parentId":"00000001"')
    expect(files.text(PATH)).toContain('clew.repair')
    expect(await checkTranscript(files, PATH)).toMatchObject({ isHealthy: true })
    expect((await files.list('/s')).filter((name) => name.includes('.lock'))).toEqual([])
  })

  it('keeps only so many backups', async () => {
    const files = disk(`${HEADER}broken\n`)
    const clock = new RunningClock()
    for (let i = 0; i < 8; i++) {
      files.plant(PATH, `${HEADER}broken ${i}\n`)
      await repairTranscript({ ...ports(files), clock }, PATH, never)
      await new Promise<void>((resolve) => clock.after(1, resolve))
    }
    expect((await files.list('/s')).filter((name) => name.includes('.bak-'))).toHaveLength(5)
  })
})
