import { describe, expect, it } from 'vitest'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import { scanFile } from '../../src/transcript/scan.ts'

const SEED = 20261116
const MAX_LINE_BYTES = 2_000

/** Lines of all lengths, some too long to be loaded, some broken, and now and then no newline at the end. */
function randomFile(random: () => number): string {
  const lines = [JSON.stringify({ type: 'session', version: 3, id: 's', timestamp: 't', cwd: '/' })]
  const count = 1 + Math.floor(random() * 30)
  for (let at = 0; at < count; at++) {
    const id = at.toString(16).padStart(8, '0')
    const parentId = at === 0 ? null : (at - 1).toString(16).padStart(8, '0')
    const content = 'слово '.repeat(Math.floor(random() * random() * 400))
    const line = JSON.stringify({ type: 'message', id, parentId, timestamp: 't', message: { role: 'user', content } })
    lines.push(random() < 0.1 ? line.slice(0, Math.floor(random() * line.length)) : line)
    if (random() < 0.05) lines.push('')
  }
  return lines.join('\n') + (random() < 0.7 ? '\n' : '')
}

async function scanned(content: string, blockBytes?: number): Promise<object> {
  const files = new MemoryFiles()
  files.plant('/file', content)
  const handle = await files.open('/file', 'read')
  const options = { maxLineBytes: MAX_LINE_BYTES, verify: false, ...(blockBytes === undefined ? {} : { blockBytes }) }
  const { index, ...rest } = await scanFile(handle, options)
  const entries = Array.from({ length: index.count }, (_, at) => [
    index.idAt(at),
    index.parentAt(at),
    index.offsetAt(at),
    index.lengthAt(at),
    index.lineAt(at),
  ])
  return { ...rest, entries, notes: index.notes, leftOut: index.leftOut }
}

describe(`a file read block by block (seed ${SEED})`, () => {
  it('gives what it gives in one piece, wherever the blocks end', async () => {
    const random = seededRandom(SEED)
    for (let run = 0; run < 300; run++) {
      const content = randomFile(random)
      const whole = await scanned(content)
      for (const blockBytes of [1, 10, 97, 1_000]) {
        expect(await scanned(content, blockBytes), `run ${run}, blocks of ${blockBytes}`).toEqual(whole)
      }
    }
  })
})
