import { describe, expect, it } from 'vitest'
import type { Entry, EntryDraft } from '../../src/core/entry.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { MemoryFiles, type Fault } from '../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'
import type { TranscriptLimits } from '../../src/transcript/limits.ts'
import {
  assistantDraft,
  DIRECTORY,
  entriesOf,
  never,
  openTranscriptHome,
  resultDraft,
  sessionId,
  userDraft,
  type TranscriptHome,
} from '../support/transcripts.ts'

const A = sessionId('sess_a')
const B = sessionId('sess_b')

/** What was acknowledged, and therefore has to be there after any crash. */
class Acknowledged {
  readonly entries = new Map<SessionId, Entry[]>()
  /** Operations under way that may or may not have happened: their session is not compared. */
  readonly uncertain = new Set<SessionId>()
  readonly gone = new Set<SessionId>()

  async append(app: TranscriptHome, session: SessionId, drafts: readonly EntryDraft[]): Promise<readonly Entry[]> {
    const transcript = await app.store.open(session, never)
    const stored = await transcript.append(drafts)
    this.entries.set(session, [...(this.entries.get(session) ?? []), ...stored])
    await transcript.close()
    return stored
  }
}

interface Scenario {
  readonly name: string
  plant?(files: MemoryFiles): void
  run(app: TranscriptHome, acknowledged: Acknowledged): Promise<void>
}

const HEADER = '{"type":"session","version":3,"id":"sess_a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
const line = (id: string, parentId: string | null, text: string): string =>
  `${JSON.stringify({ type: 'message', id, parentId, timestamp: '2026-01-01T00:00:00.000Z', message: { role: 'user', content: text, timestamp: 1 } })}\n`

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'first message',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('first')])
    },
  },
  {
    name: 'tool loop',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('go')])
      for (const round of ['c1', 'c2']) {
        await acknowledged.append(app, A, [assistantDraft('thinking', [round])])
        await acknowledged.append(app, A, [resultDraft(round, 'seen')])
      }
      await acknowledged.append(app, A, [assistantDraft('done')])
    },
  },
  {
    name: 'call left open, then the next message',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('go'), assistantDraft('hm', ['c1', 'c2'])])
      await acknowledged.append(app, A, [userDraft('next')])
    },
  },
  {
    name: 'branch',
    run: async (app, acknowledged) => {
      const [root] = await acknowledged.append(app, A, [userDraft('root'), assistantDraft('old')])
      const transcript = await app.store.open(A, never)
      await transcript.branchTo(root?.id ?? null)
      await acknowledged.append(app, A, [assistantDraft('new')])
      await transcript.branchTo(null)
      await acknowledged.append(app, A, [userDraft('second root')])
      await transcript.close()
    },
  },
  {
    name: 'branch with summary',
    run: async (app, acknowledged) => {
      const [root] = await acknowledged.append(app, A, [userDraft('root'), assistantDraft('old')])
      const transcript = await app.store.open(A, never)
      const summary = await transcript.branchWithSummary(root?.id ?? null, 'left behind')
      acknowledged.entries.get(A)?.push(summary)
      await acknowledged.append(app, A, [userDraft('on')])
      await transcript.close()
    },
  },
  {
    name: 'compaction',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('one'), assistantDraft('two')])
      const [kept] = await acknowledged.append(app, A, [userDraft('three')])
      const firstKeptEntryId = kept!.id
      await acknowledged.append(app, A, [{ type: 'compaction', summary: 's', firstKeptEntryId, tokensBefore: 9 }])
      await acknowledged.append(app, A, [userDraft('four')])
    },
  },
  {
    name: 'reset',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('old life')])
      const before = acknowledged.entries.get(A) ?? []
      acknowledged.uncertain.add(A)
      await app.store.archive(A)
      acknowledged.entries.delete(A)
      await acknowledged.append(app, B, [userDraft('new life')])
      await app.store.restore(A)
      acknowledged.entries.set(A, before)
      acknowledged.uncertain.delete(A)
    },
  },
  {
    name: 'delete',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('secret')])
      acknowledged.uncertain.add(A)
      await app.store.remove(A)
      acknowledged.entries.delete(A)
      acknowledged.uncertain.delete(A)
      acknowledged.gone.add(A)
      await acknowledged.append(app, B, [userDraft('other')])
    },
  },
  {
    name: 'repair of a damaged file by the first append',
    plant: (files) =>
      files.plant(
        `${DIRECTORY}/sess_a.jsonl`,
        HEADER + line('00000001', null, 'a') + '{"broken\n' + line('00000003', '00000002', 'c'),
      ),
    run: async (app, acknowledged) => {
      acknowledged.entries.set(A, await readAll(app, A))
      await acknowledged.append(app, A, [userDraft('after')])
      await acknowledged.append(app, A, [userDraft('and after')])
    },
  },
  {
    name: 'torn tail, then appends',
    plant: (files) =>
      files.plant(`${DIRECTORY}/sess_a.jsonl`, HEADER + line('00000001', null, 'a') + '{"type":"message","id":"0000'),
    run: async (app, acknowledged) => {
      acknowledged.entries.set(A, await readAll(app, A))
      await acknowledged.append(app, A, [userDraft('after')])
    },
  },
  {
    name: 'no newline at the end, then appends',
    plant: (files) => files.plant(`${DIRECTORY}/sess_a.jsonl`, (HEADER + line('00000001', null, 'a')).trimEnd()),
    run: async (app, acknowledged) => {
      acknowledged.entries.set(A, await readAll(app, A))
      await acknowledged.append(app, A, [userDraft('after')])
      await acknowledged.append(app, A, [userDraft('and after')])
    },
  },
  {
    name: 'migration of format 1',
    plant: (files) =>
      files.plant(
        `${DIRECTORY}/sess_a.jsonl`,
        '{"type":"session","id":"sess_a","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}\n' +
          '{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"a","timestamp":1}}\n',
      ),
    run: async (app, acknowledged) => {
      acknowledged.entries.set(A, await readAll(app, A))
      await acknowledged.append(app, A, [userDraft('b')])
    },
  },
  {
    name: 'tool result over the cap',
    run: async (app, acknowledged) => {
      await acknowledged.append(app, A, [userDraft('go'), assistantDraft('hm', ['c1'])])
      await acknowledged.append(app, A, [resultDraft('c1', 'x'.repeat(5_000))])
    },
  },
  {
    name: 'two sessions at once, with a checkpoint between',
    run: async (app, acknowledged) => {
      await Promise.all([A, B].map((session) => acknowledged.append(app, session, [userDraft('1')])))
      await app.journal?.checkpoint()
      await Promise.all(
        [A, B, A, B].map((session, i) => acknowledged.append(app, session, [userDraft(`at once ${i}`)])),
      )
      await app.close()
    },
  },
]

async function readAll(app: TranscriptHome, session: SessionId): Promise<Entry[]> {
  const transcript = await app.store.open(session, never)
  const entries = await entriesOf(transcript)
  await transcript.close()
  return entries
}

const LIMITS = { maxToolResultCharacters: 1_000, minToolResultBlockCharacters: 100 }

interface Kind {
  readonly title: string
  readonly withJournal: boolean
  readonly limits: Partial<TranscriptLimits>
}

const KINDS: readonly Kind[] = [
  { title: 'over a journal', withJournal: true, limits: LIMITS },
  { title: 'on its own', withJournal: false, limits: LIMITS },
]

async function runUntilCrash(
  files: MemoryFiles,
  scenario: Scenario,
  { withJournal, limits }: Kind,
): Promise<Acknowledged> {
  const acknowledged = new Acknowledged()
  try {
    const app = await openTranscriptHome({ files, withJournal, limits })
    await scenario.run(app, acknowledged)
  } catch (error) {
    // The crash. Anything else must fail the test.
    if (!files.isCrashed) throw error
  }
  return acknowledged
}

/** A later process, which finds the earlier one dead. */
async function openLater(files: MemoryFiles, { withJournal, limits }: Kind, seed: number): Promise<TranscriptHome> {
  const processes = new ScriptedProcesses({ pid: 2_000 + seed, startedAt: String(seed) })
  processes.die({ pid: 1_000, startedAt: '1', host: 'test-host' })
  for (let i = 0; i < 5; i++) processes.die({ pid: 2_000 + i, startedAt: String(i), host: 'test-host' })
  return openTranscriptHome({ files, withJournal, limits, processes, seed: 77 + seed })
}

async function expectAll(app: TranscriptHome, acknowledged: Acknowledged, label: string): Promise<void> {
  for (const [session, expected] of acknowledged.entries) {
    if (acknowledged.uncertain.has(session)) continue
    const transcript = await app.store.open(session, never)
    const found = await entriesOf(transcript)
    const ids = new Set(expected.map((entry) => entry.id))
    const kept = found.filter((entry) => ids.has(entry.id))
    expect(kept, `after ${label}`).toEqual(expected)
    // Earlier history stays in context: every ancestor of the last acknowledged entry is on its path.
    const path = expected.length === 0 ? [] : await transcript.branch(expected.at(-1)!.id)
    expect(missingAncestors(expected, path), `after ${label}`).toEqual([])
    const [later] = await transcript.append([userDraft('life goes on')])
    const parent = later?.parentId == null ? later : await transcript.entry(later.parentId)
    expect(parent, `after ${label}`).toBeDefined()
    await transcript.close()
  }
  for (const session of acknowledged.gone) expect(await app.store.exists(session), `after ${label}`).toBe(false)
}

function missingAncestors(acknowledged: readonly Entry[], path: readonly Entry[]): string[] {
  const onPath = new Set(path.map((entry) => entry.id))
  const missing: string[] = []
  for (let at = acknowledged.at(-1); at !== undefined;) {
    if (!onPath.has(at.id)) missing.push(at.id)
    const { parentId }: Entry = at
    at = acknowledged.find((entry) => entry.id === parentId)
  }
  return missing
}

const FAULTS: readonly Fault[] = ['crash-before', 'crash-torn', 'crash-after']
const SEEDS = [0, 1]

describe.each(KINDS)('the transcript store $title, after a power cut at every point', (kind) => {
  const { title } = kind

  it.each(SCENARIOS)('has every acknowledged entry, in order, once, and goes on: $name', async (scenario) => {
    let points = 0
    const healthy = new MemoryFiles()
    scenario.plant?.(healthy)
    await runUntilCrash(healthy, scenario, kind)
    for (let at = 0; at < healthy.operations; at++) {
      for (const fault of FAULTS) {
        for (const seed of SEEDS) {
          const files = new MemoryFiles()
          scenario.plant?.(files)
          files.injectFault(at, fault)
          const acknowledged = await runUntilCrash(files, scenario, kind)
          const disk = files.crash(seed === 0 ? undefined : seededRandom(seed * 7919 + at))
          const label = `${scenario.name}, ${title}: ${fault} at ${at}, seed ${seed}`
          const app = await openLater(disk, kind, 0)
          await expectAll(app, acknowledged, label)
          await app.close()
          points++
        }
      }
    }
    console.info(`transcript ${title}, ${scenario.name}: ${points} crash points tried`)
  })

  it.each(SCENARIOS)('survives a crash at every point of the recovery itself: $name', async (scenario) => {
    let points = 0
    const healthy = new MemoryFiles()
    scenario.plant?.(healthy)
    await runUntilCrash(healthy, scenario, kind)
    const crashAt = Math.floor(healthy.operations * 0.7)
    const crashed = (): { disk: MemoryFiles; acknowledged: Promise<Acknowledged> } => {
      const files = new MemoryFiles()
      scenario.plant?.(files)
      files.injectFault(crashAt, 'crash-torn')
      const acknowledged = runUntilCrash(files, scenario, kind)
      return { disk: files, acknowledged }
    }
    const probe = crashed()
    const expected = await probe.acknowledged
    const probeDisk = probe.disk.crash(seededRandom(5))
    const app = await openLater(probeDisk, kind, 0)
    await expectAll(app, expected, scenario.name)
    await app.close()
    for (let at = 0; at < probeDisk.operations; at++) {
      const run = crashed()
      const acknowledged = await run.acknowledged
      const disk = run.disk.crash(seededRandom(5))
      disk.injectFault(at, 'crash-torn')
      try {
        const second = await openLater(disk, kind, 0)
        await expectAll(second, acknowledged, scenario.name)
        await second.close()
      } catch (error) {
        if (!disk.isCrashed) throw error
      }
      const third = await openLater(disk.crash(seededRandom(at)), kind, 1)
      await expectAll(third, acknowledged, `${scenario.name}: recovery crashed at ${at}`)
      await third.close()
      points++
    }
    console.info(`transcript ${title}, ${scenario.name}: ${points} crash points of recoveries tried`)
  })
})
