import type { SessionId } from '../../../src/core/ids.ts'
import { describe, expect, it } from 'vitest'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { reconcile } from '../../../src/transcript/reconcile.ts'

const HEADER = '{"type":"session","id":"s"}\n'
const OURS = { id: 'aaaaaaaa', line: '{"type":"custom","id":"aaaaaaaa","parentId":null}\n' }

describe('a file after a crash, with a line that another program wrote behind ours', () => {
  it.each(['["aaaaaaaa"]', '{"toString":null}', '7', 'null'])('keeps that line when its id is %s', async (id) => {
    const files = new MemoryFiles()
    const foreign = `{"type":"custom","id":${id},"words":"kept"}\n`
    const handle = await files.open('/t.jsonl', 'append')
    await handle.write(HEADER + foreign)
    await handle.close()
    await reconcile({
      files,
      path: '/t.jsonl',
      batches: [
        {
          offset: HEADER.length,
          headerLine: undefined,
          lines: [OURS],
          record: { s: 'sess_1' as SessionId, o: 0, h: undefined, e: [] },
        },
      ],
      headerLine: HEADER,
      maxLineBytes: 1_000,
      newId: () => 'bbbbbbbb',
      timestamp: '2026-11-17T00:00:00.000Z',
    })
    expect(files.text('/t.jsonl')).toContain('"kept"')
    expect(files.text('/t.jsonl')).toContain(OURS.line)
  })
})
