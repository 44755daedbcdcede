import { expect, it } from 'vitest'
import { JournalSegments } from '../../../src/storage/files/journal-segments.ts'
import { silentLog } from '../../../src/base/log.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

it('a write, a sync or an undo without an open segment is an error, not a durable no-op', async () => {
  const files = new MemoryFiles()
  await files.makeDirectory('/j')
  const options = {
    files,
    directory: '/j',
    log: silentLog,
    segmentBytes: 10,
    prepareAfterBytes: 10,
    fence: () => undefined,
  }
  const segments = new JournalSegments(options)
  const bytes = Buffer.from('x')
  const unopened = 'the journal has no open segment'
  await expect(segments.write(bytes)).rejects.toThrow(unopened)
  await expect(segments.sync(1)).rejects.toThrow(unopened)
  await segments.start(1)
  await segments.write(bytes)
  await segments.sync(1)
  await segments.close({ keepFiles: false })
  await expect(segments.write(bytes)).rejects.toThrow(unopened)
  await expect(segments.sync(1)).rejects.toThrow(unopened)
  await expect(segments.undo()).rejects.toThrow(unopened)
})
