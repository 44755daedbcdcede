import { silentLog } from '../../../src/base/log.ts'
import type { Entry } from '../../../src/core/entry.ts'
import { calibrationFrom, inputOfRecord, requestRecords, sizeOfHistory } from '../../../src/history/request-record.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { planCleanup, uncleanedSteps } from '../../../src/history/cleanup.ts'
import { planCompactionUndo } from '../../../src/history/compaction-undo.ts'
import type { StepName } from '../../../src/history/item.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from '../../../src/history/prepare.ts'
import { recallRounds } from '../../../src/history/recall-rounds.ts'
import { decodeReport } from '../../../src/history/report.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { checkTranscript, repairTranscript } from '../../../src/transcript/check.ts'
import type { TranscriptContext } from '../../../src/transcript/store.ts'
import { latestSetup } from '../../../src/turn/setup.ts'
import { bodyOf, violationsIn } from '../fuzz/check.ts'
import { WRITERS } from '../fuzz/generate.ts'
import { createRandom } from '../fuzz/random.ts'
import { id } from '../history.ts'
import { nextTurn, type LoopTurns } from '../loop-turns.ts'
import { RunningClock } from '../running-clock.ts'
import { DIRECTORY, never, openTranscriptHome, sessionId, userDraft } from '../transcripts.ts'
import { withTurns } from '../turned-files.ts'
import { expectedOf, type Expected } from './expect.ts'
import { generateLines } from './lines.ts'
import { mutateFile } from './mutate.ts'

const PATH = `${DIRECTORY}/sess_f.jsonl`

export interface FileFailure {
  readonly api: string
  readonly problem: string
}

/** The six ways a request is written. */
export const FILE_TARGETS = [
  { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true },
  { provider: 'openai', api: 'openai-responses', model: 'gpt-5', acceptsImages: true },
  { provider: 'openai', api: 'openai-completions', model: 'gpt-4.1', acceptsImages: true },
  { provider: 'my-local', api: 'openai-completions', model: 'deepseek-r1', acceptsImages: false },
  { provider: 'google', api: 'google-generative-ai', model: 'gemini-3-pro', acceptsImages: true },
  { provider: 'mistral', api: 'mistral-conversations', model: 'mistral-large-latest', acceptsImages: true },
] as const

type Target = (typeof FILE_TARGETS)[number]

/** The file that a seed stands for. */
export function createFile(seed: number): Buffer {
  const random = createRandom(seed)
  return mutateFile(generateLines(random), random)
}

/**
 * One damaged file through the real store, every API's encoder and strict checker, a cleanup, an append that repairs
 * it, and a second look. What throws is a failure like any other.
 */
export async function checkFile(seed: number, turns?: LoopTurns): Promise<readonly FileFailure[]> {
  try {
    return await problemsOf(createFile(seed), seed, turns)
  } catch (thrown) {
    return [{ api: 'all', problem: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }]
  }
}

/** The second half of a case costs as much as the first and depends less on what the fields hold. */
const APPEND_EVERY = 3

const NEXT = 'the next message said9999q'

async function problemsOf(file: Buffer, seed: number, turns?: LoopTurns): Promise<readonly FileFailure[]> {
  const files = new MemoryFiles()
  files.plant(PATH, file)
  const expected = expectedOf(file)
  turns?.skip()
  const before = await contextOf(files)
  const lostPath = expected.path.find((own) => !before.entries.some((entry) => entry.id === own))
  if (lostPath !== undefined) return [{ api: 'all', problem: 'an entry of the path is not in the context' }]
  const failures: FileFailure[] = []
  for (const target of FILE_TARGETS) {
    await nextTurn()
    failures.push(...problemsFor(target, before.entries, expected, turns))
  }
  await nextTurn()
  tryRecords(before.entries, FILE_TARGETS[seed % FILE_TARGETS.length] ?? FILE_TARGETS[0])
  return seed % APPEND_EVERY === 0 ? [...failures, ...(await problemsAfterAppend(files, before, seed))] : failures
}

async function contextOf(files: MemoryFiles, append?: string): Promise<TranscriptContext> {
  const app = await openTranscriptHome({ files: withTurns(files, nextTurn), withJournal: false })
  const transcript = await app.store.open(sessionId('sess_f'), never)
  try {
    if (append !== undefined) await transcript.append([userDraft(append)])
    return await transcript.context()
  } finally {
    await transcript.close()
    await app.close()
  }
}

function problemsFor(
  target: Target,
  entries: readonly Entry[],
  expected: Expected,
  turns?: LoopTurns,
): readonly FileFailure[] {
  const input = inputFor(target, withNext(entries))
  const prepared = prepareHistory(input)
  const body = bodyOf(input, prepared, 'off')
  turns?.look()
  const [violation] = violationsIn(input, body)
  const api = `${target.provider} ${target.api}`
  if (violation !== undefined) return [{ api, problem: `${violation.rule} at ${violation.path}: ${violation.message}` }]
  const lost = lostWord(expected, entries, prepared, body)
  turns?.skip()
  return lost === undefined ? [] : [{ api, problem: `a word is lost: ${lost}` }]
}

function inputFor(target: Target, entries: readonly Entry[]): HistoryInput {
  const budget = createBudget({ contextWindow: 200_000 })
  return { entries, target, budget, historyLimit: 0, now: 1_000, projection: 'normal' }
}

function withNext(entries: readonly Entry[]): readonly Entry[] {
  const next: Entry = {
    type: 'message',
    id: id('next'),
    parentId: entries.at(-1)?.id ?? null,
    timestamp: '2026-01-02T00:00:00.000Z',
    message: { role: 'user', content: NEXT, timestamp: 1 },
  }
  return [...entries, next]
}

const LIMITS: readonly StepName[] = ['fit', 'prune', 'truncate-results']

function lostWord(
  { words }: Expected,
  entries: readonly Entry[],
  { report }: PreparedHistory,
  body: string,
): string | undefined {
  const limited = new Set(report.changes.filter(({ step }) => LIMITS.includes(step)).map(({ entry }) => entry))
  const wanted = entries.flatMap((entry) => (limited.has(entry.id) ? [] : (words.get(entry.id) ?? [])))
  return [...wanted, 'said9999q'].find((word) => !body.includes(word))
}

/** What commands work out of the entries: a cleanup with its record applied, recalled rounds, an undone compaction. */
function tryRecords(entries: readonly Entry[], target: Target): void {
  const { entries: _, ...input } = inputFor(target, entries)
  for (const stepId of uncleanedSteps(entries).slice(0, 2)) {
    const count = (messages: readonly unknown[]) => ({ count: messages.length, estimated: true })
    planCleanup(entries, { stepId, outcome: 'completed', policy: 'always', minTokens: 0, input, count })
  }
  recallRounds(entries, { maxChars: 1_000 })
  planCompactionUndo(entries)
  tryRequests(entries)
}

/** What is read from the records of requests: the size of the context, a calibration, and a past request built again. */
function tryRequests(entries: readonly Entry[]): void {
  sizeOfHistory(entries)
  latestSetup(entries)
  for (const target of WRITERS) calibrationFrom(entries, target)
  for (const record of requestRecords(entries).slice(-2)) {
    const past = inputOfRecord(record, entries)
    if (past !== undefined) prepareHistory(past)
    decodeReport(record.report)
  }
}

async function problemsAfterAppend(
  files: MemoryFiles,
  before: TranscriptContext,
  seed: number,
): Promise<readonly FileFailure[]> {
  if (seed % 2 === 0) await repaired(files)
  else await checkTranscript(files, PATH)
  await contextOf(files, NEXT)
  const after = await contextOf(files)
  const was = before.messages.map((message) => JSON.stringify(message))
  const is = after.messages.map((message) => JSON.stringify(message))
  const changed = was.findIndex((message) => !is.includes(message))
  if (changed >= 0) return [{ api: 'all', problem: `message ${changed} is another after the file was repaired` }]
  if (!is.at(-1)?.includes('said9999q')) return [{ api: 'all', problem: 'the appended message is not the last one' }]
  const target = FILE_TARGETS[seed % FILE_TARGETS.length] ?? FILE_TARGETS[0]
  return problemsFor(target, after.entries, { words: new Map(), path: [] })
}

async function repaired(files: MemoryFiles): Promise<void> {
  const processes = new ScriptedProcesses()
  const ports = { files, clock: new RunningClock(), ids: new SeededIds(), processes, log: silentLog }
  await repairTranscript(ports, PATH, never)
}
