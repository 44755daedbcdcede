import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/core/entry.ts'
import { textOf } from '../../src/core/message.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import { checkTranscript } from '../../src/transcript/check.ts'
import { DIRECTORY, entriesOf, never, openTranscriptHome, sessionId, userDraft } from '../support/transcripts.ts'

const SESSION = sessionId('sess_x')
const PATH = `${DIRECTORY}/sess_x.jsonl`
const HEADER = '{"type":"session","version":3,"id":"sess_x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}'
const SEED = 20261115

/** A healthy session: mostly one line of talk, now and then a branch or a compaction. */
function healthyLines(seed: number, count: number): string[] {
  const random = seededRandom(seed)
  const ids = Array.from({ length: count }, (_, i) => (0xa0000000 + i * 7919).toString(16))
  return ids.map((id, i) => {
    const parentId = i === 0 ? null : random() < 0.9 ? ids[i - 1] : ids[Math.floor(random() * i)]
    const timestamp = '2026-01-01T00:00:00.000Z'
    if (i > 2 && random() < 0.05) {
      const firstKeptEntryId = ids[i - 2]
      return JSON.stringify({
        type: 'compaction',
        id,
        parentId,
        timestamp,
        summary: `s${i}`,
        firstKeptEntryId,
        tokensBefore: i,
      })
    }
    const message = { role: 'user', content: `text ${i} ${'ü'.repeat(Math.floor(random() * 20))}`, timestamp: i }
    return JSON.stringify({ type: 'message', id, parentId, timestamp, message })
  })
}

function plant(bytes: Uint8Array | string): MemoryFiles {
  const files = new MemoryFiles()
  files.plant(PATH, bytes)
  return files
}

interface Opened {
  readonly entries: readonly Entry[]
  readonly path: readonly Entry[]
  readonly repairs: number
}

/** Opens, reads everything, appends, opens again; the same entries have to be there both times. */
async function openAndGoOn(files: MemoryFiles): Promise<Opened> {
  const before = files.text(PATH)
  const app = await openTranscriptHome({ files, withJournal: false })
  const transcript = await app.store.open(SESSION, never)
  const entries = await entriesOf(transcript)
  const path = await transcript.branch()
  const context = await transcript.context()
  expect(context.messages.length).toBeLessThanOrEqual(path.length + 1)
  expect(files.text(PATH), 'opening changes nothing').toBe(before)
  const repairs = transcript.repairs.length
  const [appended] = await transcript.append([userDraft('the next message')])
  expect(appended?.parentId ?? null).toBe(path.at(-1)?.id ?? null)
  await transcript.close()
  await app.close()
  const later = await openTranscriptHome({ files, withJournal: false, seed: 2 })
  const again = await later.store.open(SESSION, never)
  const kept = new Map((await entriesOf(again)).map((entry) => [entry.id, entry]))
  for (const entry of entries) expect(kept.get(entry.id)).toEqual(entry)
  expect((await again.branch()).slice(0, path.length)).toEqual(path)
  expect(again.repairs, 'the first append left a sound file').toEqual([])
  const report = await checkTranscript(files, PATH)
  expect(report.isRepairable).toBe(false)
  // What a flipped byte makes of a field's name or value is read as well as can be, and stays in the file.
  expect(report.notes.filter(({ kind }) => kind !== 'odd-fields')).toEqual([])
  await again.close()
  await later.close()
  return { entries, path, repairs }
}

const size = fc.integer({ min: 3, max: 25 })
const seeds = fc.integer({ min: 1, max: 1_000_000 })
const run = (property: fc.IAsyncProperty<unknown[]> | fc.IAsyncProperty<never>, numRuns = 150): Promise<void> =>
  fc.assert(property as fc.IAsyncProperty<unknown[]>, { seed: SEED, numRuns })

const textsOf = (entries: readonly Entry[]): string[] =>
  entries.flatMap((entry) =>
    entry.type === 'message' && entry.message.role === 'user' ? [textOf(entry.message.content)] : [],
  )

describe(`a transcript file in any state (seed ${SEED})`, () => {
  it('opens when it is cut at any byte, with every whole line before the cut', async () => {
    await run(
      fc.asyncProperty(seeds, size, fc.double({ min: 0, max: 1, noNaN: true }), async (seed, count, where) => {
        const lines = healthyLines(seed, count)
        const bytes = Buffer.from(`${[HEADER, ...lines].join('\n')}\n`)
        const cut = bytes.subarray(0, Math.floor(bytes.length * where))
        const whole = cut.toString('latin1').split('\n').length - 2
        const { entries } = await openAndGoOn(plant(cut))
        const ids = new Set(entries.map((entry) => entry.id as string))
        for (const line of lines.slice(0, Math.max(0, whole))) expect(ids.has(idOf(line))).toBe(true)
      }),
    )
  })

  it('keeps every line that flipped bytes did not touch, and the history before them in context', async () => {
    await run(
      fc.asyncProperty(
        seeds,
        size,
        fc.array(fc.tuple(fc.double({ min: 0, max: 0.9999, noNaN: true }), fc.integer({ min: 0, max: 255 })), {
          minLength: 1,
          maxLength: 4,
        }),
        async (seed, count, flips) => {
          const lines = linear(healthyLines(seed, count))
          const text = `${[HEADER, ...lines].join('\n')}\n`
          const bytes = Buffer.from(text)
          const touched = new Set<number>()
          for (const [where, value] of flips) {
            const at = Math.floor(bytes.length * where)
            // A newline that goes, or comes, touches the lines on both of its sides.
            const line = bytes.subarray(0, at).toString('latin1').split('\n').length - 1
            touched.add(line)
            if (bytes[at] === 10) touched.add(line + 1)
            bytes[at] = value
          }
          const { entries, path } = await openAndGoOn(plant(bytes))
          const intact = lines.filter((_, i) => !touched.has(i + 1))
          const found = new Set(textsOf(entries))
          for (const text of intact) expect(found.has(contentOf(text))).toBe(true)
          const inContext = new Set(textsOf(path))
          for (const text of intact) expect(inContext.has(contentOf(text)), 'earlier history').toBe(true)
        },
      ),
    )
  })

  it('opens when lines are lost, doubled, moved or spliced, and keeps what is left', async () => {
    const change = fc.constantFrom(
      'drop',
      'double',
      'swap',
      'glue',
      'null',
      'number',
      'not-utf8',
      'second-header',
      'blank',
    )
    await run(
      fc.asyncProperty(
        seeds,
        size,
        fc.array(fc.tuple(change, fc.nat(), fc.nat()), { minLength: 1, maxLength: 5 }),
        async (seed, count, changes) => {
          const lines: (string | Buffer)[] = linear(healthyLines(seed, count))
          for (const [kind, a, b] of changes) mutate(lines, kind, a, b)
          const bytes = Buffer.concat([HEADER, ...lines].flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))
          const { entries, path } = await openAndGoOn(plant(bytes))
          const expected = lines.filter((line): line is string => typeof line === 'string' && isEntry(line))
          const ids = entries.map((entry) => entry.id as string)
          for (const line of expected) expect(ids.filter((id) => id === idOf(line))).toHaveLength(1)
          expect(path.length).toBeGreaterThan(0)
        },
      ),
    )
  })

  it('opens when its header is lost, and every entry is there', async () => {
    await run(
      fc.asyncProperty(
        seeds,
        size,
        fc.constantFrom('', '{', '{"type":"session"}', 'null', '{"type":"session","id":7}'),
        async (seed, count, header) => {
          const lines = healthyLines(seed, count)
          const { entries } = await openAndGoOn(plant(`${[header, ...lines].join('\n')}\n`))
          expect(entries.map((entry) => entry.id)).toEqual(lines.map(idOf))
        },
      ),
      50,
    )
  })

  it('opens when parents point in circles, to themselves, forwards or nowhere', async () => {
    await run(
      fc.asyncProperty(
        seeds,
        size,
        fc.array(fc.tuple(fc.nat(), fc.option(fc.nat(), { nil: undefined })), { minLength: 1, maxLength: 6 }),
        async (seed, count, links) => {
          const lines = healthyLines(seed, count)
          for (const [child, parent] of links) {
            const at = child % count
            const parentId = parent === undefined ? 'nobody' : idOf(lines[parent % count] ?? '')
            lines[at] = JSON.stringify({ ...(JSON.parse(lines[at] ?? '') as object), parentId })
          }
          const { entries } = await openAndGoOn(plant(`${[HEADER, ...lines].join('\n')}\n`))
          expect(entries.map((entry) => entry.id)).toEqual(lines.map(idOf))
        },
      ),
    )
  })

  it('opens when ids are used twice: the first keeps it, no entry is lost', async () => {
    await run(
      fc.asyncProperty(
        seeds,
        size,
        fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 4 }),
        async (seed, count, pairs) => {
          const lines = healthyLines(seed, count)
          for (const [a, b] of pairs) {
            lines[a % count] = JSON.stringify({
              ...(JSON.parse(lines[a % count] ?? '') as object),
              id: idOf(lines[b % count] ?? ''),
            })
          }
          const { entries } = await openAndGoOn(plant(`${[HEADER, ...lines].join('\n')}\n`))
          expect(entries).toHaveLength(count)
          expect(new Set(entries.map((entry) => entry.id)).size).toBe(count)
        },
      ),
    )
  })

  it('opens when it is no transcript at all', async () => {
    await run(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
        await openAndGoOn(plant(bytes))
      }),
    )
  })
})

/** Every entry the child of the line before, so that "earlier history" has one meaning. */
function linear(lines: readonly string[]): string[] {
  const talk = lines.filter((line) => !line.includes('"compaction"'))
  return talk.map((line, i) =>
    JSON.stringify({ ...(JSON.parse(line) as object), parentId: i === 0 ? null : idOf(talk[i - 1] ?? '') }),
  )
}

function mutate(lines: (string | Buffer)[], kind: string, a: number, b: number): void {
  const at = a % lines.length
  const other = b % lines.length
  const line = lines[at] ?? ''
  switch (kind) {
    case 'drop':
      if (lines.length > 1) lines.splice(at, 1)
      return
    case 'double':
      // Two identical lines are one entry.
      lines.splice(other, 0, Buffer.from(line))
      return
    case 'swap':
      ;[lines[at], lines[other]] = [lines[other] ?? '', line]
      return
    case 'glue':
      if (lines.length < 3 || at === other) return
      lines[at] = Buffer.concat([Buffer.from(line).subarray(0, 30), Buffer.from(lines[other] ?? '')])
      lines.splice(other, 1)
      return
    case 'null':
      lines.splice(at, 0, Buffer.from('null'))
      return
    case 'number':
      lines.splice(at, 0, Buffer.from('123'))
      return
    case 'not-utf8':
      lines.splice(at, 0, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))
      return
    case 'second-header':
      lines.splice(at, 0, Buffer.from(HEADER))
      return
    default:
      lines.splice(at, 0, Buffer.from('  '))
  }
}

function isEntry(line: string): boolean {
  return line.includes('"type":"message"')
}

function idOf(line: string | Buffer): string {
  return (JSON.parse(String(line)) as { id: string }).id
}

function contentOf(line: string): string {
  return (JSON.parse(line) as { message: { content: string } }).message.content
}
