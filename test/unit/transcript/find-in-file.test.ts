import { describe, expect, it } from 'vitest'
import { findInFile } from '../../../src/transcript/find-in-file.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const PATH = '/sessions/s.jsonl'

function line(id: string, text: string): string {
  const message = { role: 'user', content: text, timestamp: 1 }
  return JSON.stringify({ type: 'message', id, parentId: null, timestamp: '2026-01-01T00:00:00.000Z', message })
}

function planted(lines: readonly string[]): MemoryFiles {
  const files = new MemoryFiles({ now: () => 0 })
  files.plant(PATH, `${lines.join('\n')}\n`)
  return files
}

async function idsOf(files: MemoryFiles, wanted: string, maxBytes = 1e9): Promise<readonly string[]> {
  const ids: string[] = []
  for (let before: number | undefined; before !== 0;) {
    const piece = await findInFile(files, PATH, { wanted, maxBytes, ...(before === undefined ? {} : { before }) })
    if (piece === undefined) return ['no file']
    ids.push(...piece.found.map(({ entry }) => entry.id))
    before = piece.rest
  }
  return ids
}

describe('finding a text in a transcript’s file', () => {
  it('names the lines that hold it, the last first', async () => {
    const files = planted([line('a', 'One lamp'), line('b', 'two boxes'), line('c', 'three LAMPS')])
    expect(await idsOf(files, 'lamp')).toEqual(['c', 'a'])
    expect(await idsOf(files, 'nothing')).toEqual([])
  })

  it('finds what is escaped: quotes, new lines, and letters that another program wrote as numbers', async () => {
    const escaped = line('d', 'x').replace('"x"', String.raw`"\u706f a\/b"`)
    const files = planted([line('a', 'say "hello"'), line('b', 'one\ntwo'), line('c', '灯'), escaped])
    expect(await idsOf(files, '"hello"')).toContain('a')
    expect(await idsOf(files, 'one\ntwo')).toContain('b')
    expect(await idsOf(files, '灯')).toEqual(['d', 'c'])
    expect(await idsOf(files, 'a/b')).toEqual(['d'])
  })

  it('goes on in the middle of a file, and names each line once', async () => {
    const lines = Array.from({ length: 3_000 }, (_, at) => line(`e${at}`, `lamp ${'word '.repeat(80)}`))
    const files = planted(lines)
    const all = await idsOf(files, 'lamp', 100_000)
    expect(all).toEqual(lines.map((_, at) => `e${at}`).toReversed())
  })

  it('reads a line longer than a block, skips damaged ones, and an empty file holds nothing', async () => {
    const files = planted([line('a', `${'x'.repeat(700_000)} lamp`), '{"type":"message","lamp', line('b', 'lamp')])
    expect(await idsOf(files, 'lamp')).toEqual(['b', 'a'])
    files.plant(PATH, '')
    expect(await idsOf(files, 'lamp')).toEqual([])
    expect(await findInFile(files, '/sessions/none.jsonl', { wanted: 'x', maxBytes: 1 })).toBeUndefined()
  })
})
