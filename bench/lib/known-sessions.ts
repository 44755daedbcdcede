import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openJournal } from '../../src/storage/files/journal.ts'
import type { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Change } from '../../src/core/change.ts'
import type { SessionId, SessionKey } from '../../src/core/ids.ts'
import { homePaths } from '../../src/app/home.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { nodeProcesses } from '../../src/platform/node-processes.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { openFilesStorage, type FilesStorage } from '../../src/storage/files/files-storage.ts'
import { HomeTables } from '../../src/storage/files/home-tables.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../src/storage/local/message-rows.ts'
import { DEFAULT_LEDGER } from '../../src/storage/local/usage-ledger.ts'

const AT_ONCE = 1_000
/** What every home did, however many conversations it has: so many answers, over so many hours. */
const ANSWERS = DEFAULT_LEDGER.sessions
const HOURS = 1_000
const HOUR_MS = 3_600_000
/** A day ago, a second apart. */
const BEGUN_MS_AGO = 86_400_000
const HEADER = '{"type":"session","version":3}\n'
/** A start looks at the files of those written last only; a file for each of a million would measure the file system. */
const WITH_FILES = 2_000

/** The storage of a home whose gateway is not running. */
export async function openHome(home: string, clock: Clock = systemClock): Promise<FilesStorage> {
  const opened = await openFilesStorage({
    files: nodeFiles,
    clock,
    ids: systemIds,
    log: silentLog,
    processes: nodeProcesses,
    paths: homePaths(home, {}),
    limits: DEFAULT_MESSAGE_LIMITS,
    usage: DEFAULT_LEDGER,
    state: {},
    durability: 'sync',
    cacheBytes: 1024 * 1024,
    wasAbandoned: false,
    fence: () => undefined,
    hooks: () => ({}),
    onFailed: () => undefined,
  })
  await opened.storage.start()
  return opened
}

/**
 * A home in which so many conversations had one turn each: rows as the gateway writes them, what they spent, how long
 * their transcripts are, and `sessions.json`. All of it is written by the gateway's own code.
 */
export async function makeKnownSessions(home: string, sessions: number): Promise<void> {
  mkdirSync(join(home, 'sessions'), { recursive: true })
  const paths = homePaths(home, {})
  let now = systemClock.now() - HOURS * HOUR_MS
  const clock = { ...systemClock, now: () => now }
  const ports = { files: nodeFiles, clock, ids: systemIds, log: silentLog }
  const opened = await openHome(home, clock)
  for (let start = 0; start < sessions; start += AT_ONCE) {
    const ats = Array.from({ length: Math.min(AT_ONCE, sessions - start) }, (_, at) => start + at)
    await opened.storage.transact(ats.map((at) => rowOf(at, sessions)))
  }
  for (let start = 0; start < ANSWERS; start += AT_ONCE) {
    now += (HOURS * HOUR_MS * AT_ONCE) / ANSWERS
    await opened.storage.transact(Array.from({ length: AT_ONCE }, (_, at) => spentIn((start + at) % sessions)))
  }
  await opened.close()
  const tables = await HomeTables.open({ ...ports, paths })
  const journal = await openJournal({ ...ports, directory: paths.journal, topics: [...tables.topics, tables.kept] })
  await tables.kept.start()
  for (let at = 0; at < sessions; at++) {
    tables.transcripts.hasSize(idOf(at), HEADER.length)
    if (at >= sessions - WITH_FILES) writeFileSync(join(paths.transcripts, `${idOf(at)}.jsonl`), HEADER)
    if (at % AT_ONCE === 0) await journal.commit([])
  }
  await journal.close()
  await tables.kept.close()
}

function idOf(at: number): SessionId {
  return `sess_${at.toString(16).padStart(32, '0')}` as SessionId
}

function rowOf(at: number, sessions: number): Change {
  const key = `webhook:peer-${at}` as SessionKey
  const to = `peer-${at}`
  const text = `question ${at} about the weather of tomorrow and of the day after it`
  const record = {
    sessionId: idOf(at),
    updatedAt: systemClock.now() - BEGUN_MS_AGO - (sessions - at),
    owner: `owner-${at % 10_000}`,
    deliveryContext: { channel: 'webhook', to, accountId: `owner-${at % 10_000}` },
    lastChannel: 'webhook',
    lastTo: to,
    lastAccountId: `owner-${at % 10_000}`,
    webhookMessageId: `message-${at}`,
    webhookSessionId: key,
    title: text.slice(0, 60),
    preview: text,
    messages: 2,
    contextTokens: 240,
  }
  return { kind: 'put-session', key, record }
}

function spentIn(at: number): Change {
  const counts = { requests: 1, tokens: 240, input: 200, output: 40, cacheRead: 0, cacheWrite: 0 }
  const spent = { ...counts, usd: 0, unpriced: 1, saved: 0 }
  return { kind: 'spend', sessionId: idOf(at), model: 'demo/demo', channel: 'webhook', spent }
}
