import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assertNever } from '../../src/base/assert-never.ts'
import { deferred, type Deferred } from '../../src/base/async.ts'
import type { Files } from '../../src/base/files.ts'
import { isRecord, parseJson } from '../../src/base/json.ts'
import type { Entry } from '../../src/core/entry.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { ManualClock, settle } from '../../src/testing/manual-clock.ts'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { TranscriptStore } from '../../src/transcript/store.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { DIRECTORY, entriesOf, never, openTranscriptHome, sessionId, userDraft } from '../support/transcripts.ts'

const RUNS = { seed: 20261116, numRuns: Number(process.env['CLEW_FUZZ_INTERLEAVINGS'] ?? 400) }
/** Of one property; the long run has many more cases. */
const PATIENCE_MS = Math.max(60_000, 20 * RUNS.numRuns)
const SESSIONS = ['sess_a', 'sess_b'].map(sessionId)
const OURSELVES = new ScriptedProcesses()
const ANOTHER = new ScriptedProcesses({ pid: 3_000, startedAt: '3' })
const pathOf = (session: number): string => `${DIRECTORY}/${SESSIONS[session]}.jsonl`

/** The same disk for another process: locks are told apart by the port. */
function seenByAnother(files: MemoryFiles): Files {
  return {
    open: (path, mode, permissions) => files.open(path, mode, permissions),
    stat: (path) => files.stat(path),
    statSync: (path) => files.statSync(path),
    list: (directory) => files.list(directory),
    makeDirectory: (path, permissions) => files.makeDirectory(path, permissions),
    rename: (from, to) => files.rename(from, to),
    remove: (path) => files.remove(path),
    removeDirectory: (path) => files.removeDirectory(path),
    syncDirectory: (path) => files.syncDirectory(path),
    realPath: (path) => files.realPath(path),
  }
}

const session = fc.constantFrom(0, 1)
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('append' as const), session }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 10, 20, 30, 150) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('foreign' as const), session }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose lock' as const), session }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('other process' as const), session }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('read' as const), session }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const), session }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('checkpoint' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('slow', 'quick') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('full', 'room') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('hold journal', 'let go') }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Happened {
  readonly files: FaultyFiles
  readonly clock: ManualClock
  /** What was acknowledged by whom, per session and in that order. */
  readonly ours: readonly Entry[][]
  readonly theirs: readonly Entry[][]
  /** Nobody else has written to this session. */
  readonly isAlone: readonly boolean[]
  /** Ends everything in order. */
  close(): Promise<void>
}

/** Whatever is begun is not waited for: the next step comes into the middle of it. */

async function perform(steps: readonly Step[]): Promise<Happened> {
  const clock = new ManualClock()
  const files = new FaultyFiles({ now: () => clock.now() })
  const app = await openTranscriptHome({ files, clock, withJournal: true, processes: OURSELVES })
  const another = { files: seenByAnother(files), seed: 2, processes: ANOTHER }
  const other = await openTranscriptHome({ ...another, clock, withJournal: false })
  const transcripts = await Promise.all(SESSIONS.map((id) => app.store.open(id, never)))
  const ours: Entry[][] = [[], []]
  const theirs: Entry[][] = [[], []]
  const isAlone = [true, true]
  const underWay = new Set<Promise<unknown>>()
  const begin = (work: Promise<unknown>): void => {
    const quiet = work.catch(() => undefined).finally(() => underWay.delete(quiet))
    underWay.add(quiet)
  }
  let slow: Deferred<void> | undefined
  let gate: Deferred<void> | undefined
  let count = 0
  for (const next of steps) {
    const at = 'session' in next ? next.session : 0
    const transcript = transcripts[at]
    if (transcript === undefined) throw new Error('there are two sessions')
    switch (next.do) {
      case 'append':
        begin(transcript.append([userDraft(`ours ${count++}`)]).then((entries) => ours[at]?.push(...entries)))
        break
      case 'advance':
        if ('ms' in next) await clock.advance(next.ms)
        break
      case 'foreign':
        // Nobody can help somebody who writes into the middle of a line.
        if (files.halfway > 0 || files.statSync(pathOf(at)) === undefined) break
        isAlone[at] = false
        begin(files.appendAsForeign(pathOf(at), `f0e${String(count++).padStart(5, '0')}`))
        break
      case 'lose lock':
        // Only a process that was away for long loses it, and then no write is under way.
        if (files.halfway > 0) break
        begin(files.remove(`${pathOf(at)}.lock`))
        break
      case 'other process':
        isAlone[at] = false
        begin(appendAs(other.store, SESSIONS[at] ?? sessionId(''), `theirs ${count++}`, theirs[at] ?? []))
        break
      case 'read':
        begin(entriesOf(transcript))
        break
      case 'reopen':
        begin(transcript.close())
        transcripts[at] = await app.store.open(transcript.sessionId, never)
        break
      case 'checkpoint':
        begin(app.journal?.checkpoint() ?? Promise.resolve())
        break
      case 'slow':
        slow ??= deferred()
        files.slow = slow.promise
        break
      case 'quick':
        quick()
        break
      case 'full':
        files.isFull = true
        break
      case 'room':
        files.isFull = false
        break
      case 'hold journal':
        gate ??= deferred()
        files.gate = gate.promise
        break
      case 'let go':
        letGo()
        break
      default:
        assertNever(next)
    }
    await settle()
  }
  return {
    files,
    clock,
    ours,
    theirs,
    isAlone,
    async close() {
      files.isFull = false
      quick()
      letGo()
      let isDone = false
      const ending = (async () => {
        await Promise.all(underWay)
        await other.close()
        await app.close()
      })().finally(() => (isDone = true))
      await clock.runUntil(() => isDone)
      await ending
    },
  }

  function quick(): void {
    slow?.resolve()
    slow = files.slow = undefined
  }

  function letGo(): void {
    gate?.resolve()
    gate = files.gate = undefined
  }
}

async function appendAs(store: TranscriptStore, id: SessionId, text: string, acknowledged: Entry[]): Promise<void> {
  const transcript = await store.open(id, new AbortController().signal)
  try {
    acknowledged.push(...(await transcript.append([userDraft(text)])))
  } finally {
    await transcript.close()
  }
}

/** Every acknowledged entry stands in the file once. */
function expectOnce(files: MemoryFiles, { ours, theirs }: Happened): void {
  for (const at of [0, 1]) {
    const acknowledged = [...(ours[at] ?? []), ...(theirs[at] ?? [])].map(({ id }) => id as string)
    expect(
      idsIn(files, at)
        .filter((id) => acknowledged.includes(id))
        .toSorted(),
    ).toEqual(acknowledged.toSorted())
  }
}

/** The last line of a file is its leaf. */
function expectInOrder(files: MemoryFiles, { ours }: Happened): void {
  for (const at of [0, 1]) {
    const acknowledged = (ours[at] ?? []).map(({ id }) => id as string)
    expect(idsIn(files, at).filter((id) => acknowledged.includes(id))).toEqual(acknowledged)
  }
}

function idsIn(files: MemoryFiles, at: number): string[] {
  const lines = (files.text(pathOf(at)) ?? '').split('\n').map(parseJson)
  return lines.filter(isRecord).map((line) => String(line['id']))
}

/** A later process finds every entry as it was acknowledged, and can go on. */
async function expectGoodToRead(files: MemoryFiles, happened: Happened): Promise<void> {
  const processes = new ScriptedProcesses({ pid: 4_000, startedAt: '4' })
  for (const earlier of [OURSELVES, ANOTHER]) processes.die(earlier.self)
  const app = await openTranscriptHome({ files, withJournal: true, seed: 3, processes })
  for (const at of [0, 1]) {
    const transcript = await app.store.open(SESSIONS[at] ?? sessionId(''), never)
    const ours = happened.ours[at] ?? []
    const found = new Map((await entriesOf(transcript)).map((entry) => [entry.id, entry]))
    for (const entry of ours) expect(contentOf(found.get(entry.id))).toEqual(contentOf(entry))
    if (happened.isAlone[at] === true) {
      const path = (await transcript.branch()).map(({ id }) => id)
      const acknowledged = ours.map(({ id }) => id)
      expect(path.filter((id) => acknowledged.includes(id))).toEqual(acknowledged)
    }
    await transcript.append([userDraft('afterwards')])
    await transcript.close()
  }
  await app.close()
  expectOnce(files, happened)
}

/** A parent that somebody else wrote and did not sync may be gone. */
function contentOf(entry: Entry | undefined): unknown {
  return entry?.type === 'message' ? entry.message : undefined
}

const manySteps = fc.array(step, { minLength: 3, maxLength: 40 })

describe(`lines that follow the journal into their file (seed ${RUNS.seed})`, { timeout: PATIENCE_MS }, () => {
  it('are all there, once and in order, whatever happens meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(manySteps, async (steps) => {
        const happened = await perform(steps)
        await happened.close()
        expectOnce(happened.files, happened)
        expectInOrder(happened.files, happened)
        await expectGoodToRead(happened.files, happened)
      }),
      RUNS,
    )
  })

  it('are all there after a power cut in the middle of it', async () => {
    await fc.assert(
      fc.asyncProperty(manySteps, fc.integer(), async (steps, seed) => {
        const happened = await perform(steps)
        const ids = new SeededIds(seed)
        await expectGoodToRead(
          happened.files.crash(() => ids.fraction()),
          happened,
        )
      }),
      RUNS,
    )
  })

  it('are all there after kill -9 in the middle of it', async () => {
    await fc.assert(
      fc.asyncProperty(manySteps, async (steps) => {
        const happened = await perform(steps)
        await expectGoodToRead(happened.files.kill(), happened)
      }),
      RUNS,
    )
  })
})
