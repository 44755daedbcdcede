import { describe, expect, it } from 'vitest'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import { loadByScan, type LoadOptions } from '../../src/transcript/load.ts'
import { loadTail, type TailSizes } from '../../src/transcript/load-tail.ts'

const SEED = 20261117
const TIMESTAMP = '2026-01-01T00:00:00.000Z'
const HEADER = JSON.stringify({ type: 'session', version: 3, id: 's', timestamp: TIMESTAMP, cwd: '/' })
const MAX_LINE_BYTES = 20_000

/** From blocks of a few lines to the whole file in one. */
const SIZES: readonly TailSizes[] = [
  { contextBlockBytes: 1, searchBlockBytes: 1, runBytes: 2 },
  { contextBlockBytes: 100, searchBlockBytes: 97, runBytes: 50 },
  { contextBlockBytes: 700, searchBlockBytes: 2_000, runBytes: 300 },
  { contextBlockBytes: 100_000, searchBlockBytes: 100_000, runBytes: 1_000 },
  { contextBlockBytes: 100_000, searchBlockBytes: 100_000, runBytes: 100_000 },
]

/** A session with branches, compactions and few settings, so that level and model often stand far above the context. */
function sessionLines(random: () => number): string[] {
  const lines = [HEADER]
  const ids: string[] = []
  const count = 1 + Math.floor(random() * 60)
  const isRich = random() < 0.5
  for (let at = 0; at < count; at++) {
    const digits = random() < 0.1 ? 16 : 8
    const id = Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(digits, '0')
    const parentId = at === 0 || random() < 0.01 ? null : random() < 0.9 ? ids.at(-1) : pick(ids, random)
    lines.push(JSON.stringify({ ...entryAt(at, id, ids, isRich, random), id, parentId, timestamp: TIMESTAMP }))
    ids.push(id)
    if (random() < 0.02) lines.push('')
  }
  // As pi and we write it: type, id and parent first.
  return lines.map((line) => (line === '' || line === HEADER ? line : reordered(line)))
}

function entryAt(at: number, id: string, ids: readonly string[], isRich: boolean, random: () => number): object {
  const dice = random()
  if (dice < 0.03) return { type: 'thinking_level_change', thinkingLevel: `level ${at}` }
  if (isRich && dice < 0.05) return { type: 'model_change', provider: 'p', modelId: `model ${at}` }
  if (dice < 0.12) {
    const firstKeptEntryId =
      random() < 0.1 ? id : random() < 0.1 ? 'nobody' : (ids.at(-1 - Math.floor(random() * 6)) ?? id)
    return { type: 'compaction', summary: `summary ${at}`, firstKeptEntryId, tokensBefore: at }
  }
  if (dice < 0.15 && ids.length > 0) {
    const data = { leafId: random() < 0.1 ? null : pick(ids, random) }
    return { type: 'custom', customType: 'clew.leaf', data }
  }
  if (dice < 0.2) return { type: 'label', targetId: pick([id, ...ids], random), label: 'x' }
  const content = 'слово "文件" \\ '.repeat(Math.floor(random() * random() * 100))
  if (isRich && dice < 0.5) {
    return { type: 'message', message: { role: 'assistant', content, provider: 'p', model: `m${at}`, timestamp: at } }
  }
  return { type: 'message', message: { role: 'user', content, timestamp: at } }
}

function reordered(line: string): string {
  const { type, id, parentId, ...rest } = JSON.parse(line) as Record<string, unknown>
  return JSON.stringify({ type, id, parentId, ...rest })
}

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)] as T
}

/** What happens to files: lines lost, cut, glued, doubled headers, foreign key order, CRLF, a write that never finished. */
function damaged(lines: readonly string[], random: () => number): string {
  const at = 1 + Math.floor(random() * (lines.length - 1))
  const line = lines[at] ?? ''
  const changed = [...lines]
  const end = random() < 0.5 ? '\n' : ''
  switch (Math.floor(random() * 8)) {
    case 0:
      changed.splice(at, 1)
      break
    case 1:
      changed[at] = line.slice(0, Math.floor(random() * line.length))
      break
    case 2:
      changed.splice(at, 2, line.slice(0, Math.floor(random() * line.length)) + (lines[at + 1] ?? ''))
      break
    case 3:
      changed.splice(at, 0, HEADER)
      break
    case 4:
      changed[at] = line.replace(/^\{("type":"[a-z_]+"),(.*)\}$/, '{$2,$1}')
      break
    case 5:
      return changed.join('\r\n') + end
    case 6:
      return changed.join('\n') + '\n' + line.slice(0, Math.floor(random() * line.length))
    default:
      changed[at] = `${line.slice(0, -1)}]`
  }
  return changed.join('\n') + end
}

async function optionsFor(content: string): Promise<LoadOptions> {
  const files = new MemoryFiles()
  files.plant('/file', content)
  const fallbackHeader = { type: 'session', version: 3, id: 'x', timestamp: '', cwd: '' } as const
  return { handle: await files.open('/file', 'read'), maxLineBytes: MAX_LINE_BYTES, fallbackHeader }
}

describe(`a file read from its end (seed ${SEED})`, () => {
  it('says what a scan says, wherever blocks and runs end, and needs no scan where the file is sound', async () => {
    const random = seededRandom(SEED)
    for (let run = 0; run < 400; run++) {
      const options = await optionsFor(`${sessionLines(random).join('\n')}\n`)
      const { scan: _, ...whole } = await loadByScan(options)
      for (const sizes of SIZES) {
        const tail = await loadTail(options, sizes)
        expect(tail, `run ${run}, blocks of ${sizes.contextBlockBytes}`).toEqual({ ...whole, scan: undefined })
      }
    }
  })

  it('says the same or leaves it to the scan where the file is damaged', async () => {
    const random = seededRandom(SEED + 1)
    let told = 0
    for (let run = 0; run < 800; run++) {
      const options = await optionsFor(damaged(sessionLines(random), random))
      const scan = await loadByScan(options)
      for (const sizes of SIZES) {
        const tail = await loadTail(options, sizes)
        if (tail === undefined) continue
        told++
        const { leafId, active } = tail.state
        expect({ leafId, active }, `run ${run}, blocks of ${sizes.contextBlockBytes}`).toEqual({
          leafId: scan.state.leafId,
          active: scan.state.active,
        })
      }
    }
    expect(told).toBeGreaterThan(800)
  })
})
