import { spawnSync } from 'node:child_process'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { conversation } from './lib/conversation.ts'
import { newestPi, NOT_INSTALLED } from './lib/peers.ts'
import { openJournal, type Journal } from '../src/storage/files/journal.ts'
import { silentLog } from '../src/base/log.ts'
import { textOf } from '../src/core/message.ts'
import { nodeFiles } from '../src/platform/node-files.ts'
import { nodeProcesses } from '../src/platform/node-processes.ts'
import { systemClock, systemIds } from '../src/platform/system.ts'
import { openFileStore, type FileTranscriptStore } from '../src/transcript/file-store.ts'
import { TranscriptTopic } from '../src/transcript/topic.ts'
import { generateSession } from '../test/support/transcript-session.ts'
import type { SessionId } from '../src/core/ids.ts'
import type { EntryDraft } from '../src/core/entry.ts'

/**
 * Opening and appending, side by side with pi-coding-agent 0.73.1 and with what the disk allows, in one run. Every
 * opening is measured in a process of its own. Prints a block for `bench/RESULTS.md`.
 */
const never = new AbortController().signal
const STAMP = '2026-01-01T00:00:00.000Z'
/** Plain JavaScript, as it is published, instead of what a loader makes of it on the fly. */
const BUILT = process.env['CLEW_BENCH_BUILT']
const ROOT = BUILT ?? join(import.meta.dirname, '..')
const PI = join(ROOT, 'test/oracles/node_modules/@mariozechner/pi-coding-agent/dist/core/session-manager.js')
/** Messages of a conversation that was never compacted. */
const LONG_MESSAGES = 4_000
const SIZES_MB = (process.env['BENCH_SIZES_MB'] ?? '1,10,100,400').split(',').map(Number)
/** Of our openings, which take milliseconds: the median of a few would be a matter of luck. */
const RUNS = 15

interface Opening {
  readonly ms: number
  readonly before: number
  readonly peak: number
  readonly messages: number
  readonly textLength: number
  readonly delayP99: number
  readonly delayMax: number
}

async function openOurs(path: string): Promise<Opening> {
  const directory = path.slice(0, path.lastIndexOf('/'))
  const sessionId = path.slice(directory.length + 1, -'.jsonl'.length) as SessionId
  const store = await openAlone(directory)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const before = rssMb()
  delay.enable()
  const start = performance.now()
  const transcript = await store.open(sessionId, never)
  const { messages } = await transcript.context()
  const ms = performance.now() - start
  delay.disable()
  const result = { ms, before, peak: peakMb(), ...measureOf(messages), ...delayOf(delay) }
  await transcript.close()
  await store.close()
  return result
}

async function openPi(path: string, module: string): Promise<Opening> {
  const { SessionManager } = (await import(pathToFileURL(module).href)) as {
    SessionManager: { open(path: string): { buildSessionContext(): { messages: { content?: string }[] } } }
  }
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const before = rssMb()
  delay.enable()
  const start = performance.now()
  const { messages } = SessionManager.open(path).buildSessionContext()
  const ms = performance.now() - start
  await new Promise((resolve) => setTimeout(resolve, 5))
  delay.disable()
  return { ms, before, peak: peakMb(), ...measureOf(messages), ...delayOf(delay) }
}

function measureOf(messages: readonly object[]): { messages: number; textLength: number } {
  const textLength = messages.reduce<number>((sum, message) => {
    const { content } = message as { content?: string }
    return sum + (content === undefined ? 0 : textOf(content).length)
  }, 0)
  return { messages: messages.length, textLength }
}

function delayOf(delay: ReturnType<typeof monitorEventLoopDelay>): { delayP99: number; delayMax: number } {
  return { delayP99: delay.percentile(99) / 1e6, delayMax: delay.max / 1e6 }
}

function openAlone(directory: string): Promise<FileTranscriptStore> {
  const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
  return openFileStore({ ...ports, directory })
}

const rssMb = (): number => process.memoryUsage.rss() / 2 ** 20
const peakMb = (): number => process.resourceUsage().maxRSS / 1024
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** Each in its own process; the median by time. */
function inFreshProcesses(
  how: 'ours' | 'pi' | 'newer-pi',
  path: string,
  runs: number,
  node = how === 'newer-pi' ? (newestPi?.node ?? process.execPath) : process.execPath,
): Opening {
  const results: Opening[] = []
  for (let run = 0; run < runs; run++) {
    const args = ['--max-old-space-size=8192', import.meta.filename, how, path]
    const { stdout, stderr } = spawnSync(node, args, { encoding: 'utf8', maxBuffer: 2 ** 24 })
    if (stdout === '') throw new Error(stderr)
    results.push(JSON.parse(stdout) as Opening)
  }
  return results.sort((a, b) => a.ms - b.ms)[runs >> 1] as Opening
}

const draft = (text: string): EntryDraft => ({
  type: 'message',
  message: { role: 'user', content: text, timestamp: 1 },
})

async function appendRates(home: string): Promise<string[]> {
  const text = 'a message of ordinary length, as people type it, '.repeat(3)
  const lines: string[] = []
  const rate = async (count: number, work: () => Promise<void>): Promise<number> => {
    const start = performance.now()
    await work()
    return count / ((performance.now() - start) / 1000)
  }
  const raw = median(await series(3, () => rate(2_000, async () => rawAppends(home, 2_000))))
  const rawAsync = median(await series(3, () => rate(2_000, () => rawAsyncAppends(home, 2_000))))
  const topic = new TranscriptTopic()
  const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
  const journal = await openJournal({
    ids: systemIds,
    files: nodeFiles,
    directory: `${home}/journal`,
    topics: [topic],
    log: silentLog,
  })
  const store = await openFileStore({ ...ports, directory: `${home}/sessions`, journal: { journal, topic } })
  let round = 0
  /** New sessions each time, open and begun before the clock starts: what is measured is appending. */
  const appends = async (sessions: number, each: number, target = store): Promise<number> => {
    round++
    const names = Array.from({ length: sessions }, (_, i) => `sess_${round}_${i}` as SessionId)
    const open = await Promise.all(names.map((name) => target.open(name, never)))
    await Promise.all(open.map((transcript) => transcript.append([draft(text)])))
    const perSecond = await rate(sessions * each, async () => {
      await Promise.all(
        open.map(async (transcript) => {
          for (let n = 0; n < each; n++) await transcript.append([draft(text)])
        }),
      )
    })
    for (const transcript of open) await transcript.close()
    return perSecond
  }
  await appends(1, 500)
  await appends(100, 100)
  const one = median(await series(5, () => appends(1, 2_000)))
  const hundred = median(await series(9, () => appends(100, 300)))
  const bare = median(await series(9, () => rate(30_000, () => bareCommits(journal, text))))
  await store.close()
  await journal.close()
  const alone = await openFileStore({ ...ports, directory: `${home}/alone` })
  const oneAlone = median(await series(3, () => appends(1, 2_000, alone)))
  const hundredAlone = median(await series(3, () => appends(100, 200, alone)))
  await alone.close()
  const fast = await openFileStore({ ...ports, directory: `${home}/fast`, durability: 'fast' })
  const oneFast = median(await series(3, () => appends(1, 20_000, fast)))
  await fast.close()
  const pi = await piAppends(home, text)
  const row = (name: string, value: number, note: string): void => {
    lines.push(`| ${name} | ${Math.round(value).toLocaleString('en')} /s | ${note} |`)
  }
  row('raw write + fdatasync, one after the other (sync calls)', raw, 'limit of this disk')
  row('raw write + fdatasync, one after the other (async calls)', rawAsync, 'limit without blocking the event loop')
  row(
    'clew, journal, 1 session, one after the other',
    one,
    `durable; ${(rawAsync / one).toFixed(2)}× the async limit's time`,
  )
  row('the journal alone, 100 callers', bare, 'durable; no entries, no files, no locks')
  row('clew, journal, 100 sessions at once', hundred, `durable; ${(bare / hundred).toFixed(2)}× the journal's time`)
  row('clew, no journal, 1 session', oneAlone, 'durable')
  row('clew, no journal, 100 sessions', hundredAlone, 'durable')
  row('clew, durability "fast", 1 session', oneFast, 'not durable')
  row('pi 0.73.1 appendMessage, 1 session', pi, 'not durable')
  return lines
}

async function bareCommits(journal: Journal, text: string): Promise<void> {
  const record = { topic: 'bench', data: { id: '12345678', parentId: '12345678', message: { role: 'user', text } } }
  await Promise.all(
    Array.from({ length: 100 }, async () => {
      for (let n = 0; n < 300; n++) await journal.commit([record])
    }),
  )
}

async function series(runs: number, measure: () => Promise<number>): Promise<number[]> {
  const values: number[] = []
  for (let run = 0; run < runs; run++) values.push(await measure())
  return values
}

function rawAppends(home: string, count: number): void {
  const descriptor = openSync(join(home, 'raw'), 'a')
  const bytes = Buffer.alloc(300, 'x')
  for (let i = 0; i < count; i++) {
    writeSync(descriptor, bytes)
    fdatasyncSync(descriptor)
  }
  closeSync(descriptor)
}

async function rawAsyncAppends(home: string, count: number): Promise<void> {
  const handle = await nodeFiles.open(join(home, 'raw-async'), 'append')
  const bytes = Buffer.alloc(300, 'x')
  for (let i = 0; i < count; i++) {
    await handle.write(bytes)
    await handle.sync()
  }
  await handle.close()
}

async function piAppends(home: string, text: string): Promise<number> {
  const { SessionManager } = (await import(pathToFileURL(PI).href)) as {
    SessionManager: { open(path: string): { appendMessage(message: object): void } }
  }
  const pi = SessionManager.open(join(home, 'pi.jsonl'))
  const message = { role: 'user', content: text, timestamp: 1 }
  pi.appendMessage({ ...message, role: 'assistant', content: [], stopReason: 'stop' })
  const start = performance.now()
  for (let i = 0; i < 20_000; i++) pi.appendMessage(message)
  return 20_000 / ((performance.now() - start) / 1000)
}

function cell(opening: Opening): string {
  return `${opening.ms.toFixed(1)} ms (${opening.before.toFixed(0)} → ${opening.peak.toFixed(0)} MB)`
}

/** Everything of such a file is active context: opening it costs what its messages cost, records apart. */
function longConversationRows(home: string): string[] {
  const files = [
    { name: 'records whole, as before decision 0024', records: 'whole', limit: 1 / 5 },
    { name: 'as it is written now', records: 'as now', limit: 1 },
  ] as const
  return files.map(({ name, records, limit }) => {
    const path = join(home, 'long.jsonl')
    const file = openSync(path, 'w')
    writeSync(file, `${JSON.stringify({ type: 'session', version: 3, id: 'long', timestamp: STAMP, cwd: '/' })}\n`)
    for (const { lines } of conversation(LONG_MESSAGES / 2, records)) writeSync(file, lines.join(''))
    closeSync(file)
    const megabytes = (statSync(path).size / 1e6).toFixed(1)
    const ours = inFreshProcesses('ours', path, RUNS)
    const newer = newestPi === undefined ? undefined : inFreshProcesses('newer-pi', path, 5)
    const oursThere = newestPi === undefined ? undefined : inFreshProcesses('ours', path, RUNS, newestPi.node)
    rmSync(path)
    if (newer === undefined || oursThere === undefined)
      return `| ${name}, ${megabytes} MB | ${NOT_INSTALLED} | ${cell(ours)} | – | – | – |`
    if (newer.messages !== ours.messages || newer.textLength !== ours.textLength) throw new Error('the contexts differ')
    const verdict = ours.ms <= newer.ms * limit ? 'held' : 'not held'
    const goal = `at least ${(1 / limit).toFixed(0)}×: ${verdict}`
    return `| ${name}, ${megabytes} MB | ${cell(newer)} | ${cell(ours)} | ${(newer.ms / ours.ms).toFixed(1)}× | ${goal} | ${cell(oursThere)} |`
  })
}

function openingRows(home: string): string[] {
  const rows: string[] = []
  for (const sizeMb of SIZES_MB) {
    const own = generateSession(join(home, `own_${sizeMb}.jsonl`), sizeMb, { isRestated: true })
    const foreign = generateSession(join(home, `foreign_${sizeMb}.jsonl`), sizeMb, { isRestated: false })
    const tail = inFreshProcesses('ours', own, RUNS)
    const scan = inFreshProcesses('ours', foreign, RUNS)
    const pi = inFreshProcesses('pi', own, sizeMb > 50 ? 1 : 3)
    const newer = newestPi === undefined ? undefined : inFreshProcesses('newer-pi', own, 3)
    if (pi.messages !== tail.messages || pi.textLength !== tail.textLength) throw new Error('the contexts differ')
    const newerCells = newer === undefined ? ' – | – |' : ` ${cell(newer)} | ${(newer.ms / tail.ms).toFixed(0)}× |`
    rows.push(
      `| ${sizeMb} MB | ${cell(pi)} |${newerCells} ${cell(tail)} | ${(pi.ms / tail.ms).toFixed(0)}× | ${cell(scan)} | ${(pi.ms / scan.ms).toFixed(0)}× | ${tail.delayP99.toFixed(1)} / ${tail.delayMax.toFixed(1)} ms | ${scan.delayP99.toFixed(1)} / ${scan.delayMax.toFixed(1)} ms |`,
    )
    rmSync(own)
    rmSync(foreign)
  }
  return rows
}

function runBuilt(): void {
  const built = mkdtempSync(join(tmpdir(), 'clew-bench-built-'))
  try {
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const project = ['-p', join(ROOT, 'tsconfig.json'), '--noEmit', 'false', '--outDir', built, '--rootDir', ROOT]
    spawnSync(tsc, project, { stdio: 'ignore' })
    const env = { ...process.env, CLEW_BENCH_BUILT: ROOT }
    const { status } = spawnSync(process.execPath, [join(built, 'bench/transcript.js')], { env, stdio: 'inherit' })
    process.exitCode = status ?? 1
  } finally {
    rmSync(built, { recursive: true, force: true })
  }
}

async function main(): Promise<void> {
  const [how, path] = process.argv.slice(2)
  if (how === 'ours' || how === 'pi' || how === 'newer-pi') {
    const module = how === 'pi' ? PI : (newestPi?.path ?? '')
    const result = how === 'ours' ? await openOurs(path ?? '') : await openPi(path ?? '', module)
    process.stdout.write(JSON.stringify(result))
    return
  }
  if (BUILT === undefined) return runBuilt()
  const home = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'clew-bench-'))
  try {
    const appends = await appendRates(home)
    const rows = openingRows(home)
    const long = longConversationRows(home)
    console.log(
      [
        '## Transcripts',
        '',
        `Node ${process.version}, ${new Date().toISOString().slice(0, 10)}; page cache warm, every opening in a fresh process, medians. RSS before → peak.`,
        '',
        '| file | pi 0.73.1 open + context | pi 1.5.0 (Node 24) | its ratio to own | clew, own file | ratio | clew, foreign file | ratio | event loop p99 / max, own | foreign |',
        '|---|---|---|---|---|---|---|---|---|---|',
        ...rows,
        '',
        `| ${LONG_MESSAGES.toLocaleString('en')} messages, never compacted | pi 1.5.0 (Node 24) | clew | ratio | limit | clew on the Node of pi 1.5.0 |`,
        '|---|---|---|---|---|---|',
        ...long,
        '',
        '| appends | rate | |',
        '|---|---|---|',
        ...appends,
      ].join('\n'),
    )
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

await main()
