import { closeSync, fsyncSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { openJournal } from '../src/storage/files/journal.ts'
import { silentLog } from '../src/base/log.ts'
import type { SessionId, SessionKey } from '../src/core/ids.ts'
import type { SessionRecord } from '../src/core/inbound.ts'
import { nodeFiles } from '../src/platform/node-files.ts'
import { systemClock, systemIds } from '../src/platform/system.ts'
import { SessionDirectory } from '../src/storage/local/directory.ts'
import { TableFile } from '../src/storage/tables/table-file.ts'
import { GatewayProcess, quantile, summary } from './lib/gateway-process.ts'

/** The webhook channel under load, its session index, its restart. Short runs: CLEW_BENCH_SECONDS=10. */
const SECONDS = Number(process.env['CLEW_BENCH_SECONDS'] ?? 60)
const CONNECTIONS = 1_000
const MESSAGES_PER_SECOND = 200

await measureIndex()
await measureRestart()
await measureGateway()

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

function row(index: number, at: number): SessionRecord {
  return {
    sessionId: `sess_${String(index).padStart(32, '0')}` as SessionId,
    updatedAt: at,
    deliveryContext: { channel: 'webhook', to: `msg-${index}`, accountId: 'bench' },
    lastChannel: 'webhook',
    lastTo: `msg-${index}`,
    webhookMessageId: `msg-${index}`,
    webhookSessionId: `webhook:msg-${index}`,
  }
}

/** One durable update after another, as one client would cause them: ours, and the whole file written anew each time. */
async function measureIndex(): Promise<void> {
  say(`raw write + fdatasync, one after the other: ${(await rawSyncsPerSecond()).toFixed(0)}/s`)
  say('index: durable updates per second: one caller, 100 callers | one caller, whole-file rewrite')
  for (const sessions of [100, 10_000, 100_000]) {
    const folder = mkdtempSync(join(tmpdir(), 'clew-bench-index-'))
    try {
      const kept = new TableFile({ files: nodeFiles, ids: systemIds, log: silentLog, directory: join(folder, 'rows') })
      const directory = new SessionDirectory(systemClock, kept)
      await kept.open()
      const journal = await openJournal({
        ids: systemIds,
        files: nodeFiles,
        directory: join(folder, 'journal'),
        topics: [directory, kept],
        log: silentLog,
      })
      await kept.start()
      for (let start = 0; start < sessions; start += 1_000) {
        const count = Math.min(1_000, sessions - start)
        await journal.commit(
          Array.from({ length: count }, (_, i) =>
            directory.recordOf({ kind: 'put-session', key: keyOf(start + i), record: row(start + i, start + i) }),
          ),
        )
      }
      const update = async (turn: number): Promise<void> => {
        await journal.commit([
          directory.recordOf({
            kind: 'put-session',
            key: keyOf(turn % sessions),
            record: row(turn % sessions, directory.now()),
          }),
        ])
      }
      const ours = await ratePerSecond(2_000, update)
      const callers = Array.from({ length: 100 }, () => ratePerSecond(2_000, update))
      const together = (await Promise.all(callers)).reduce((sum, rate) => sum + rate, 0)
      const rows = Object.fromEntries(Array.from({ length: sessions }, (_, at) => [keyOf(at), row(at, at)]))
      const theirs = await ratePerSecond(2_000, async (turn) => rewrite(folder, rows, turn))
      const list = await latencies(200, () => directory.list({ limit: 50 }))
      const get = await latencies(200, () => directory.resolve(keyOf(sessions - 1)))
      say(
        `  ${String(sessions).padStart(7)} sessions  ${ours.toFixed(0).padStart(6)}/s, ${together.toFixed(0).padStart(6)}/s | ${theirs.toFixed(1).padStart(7)}/s` +
          `   list of 50: p99 ${quantile(list, 0.99).toFixed(2)} ms, get: p99 ${quantile(get, 0.99).toFixed(3)} ms`,
      )
      await journal.close()
      await kept.close()
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** What this disk allows without blocking the event loop. */
async function rawSyncsPerSecond(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'clew-bench-raw-'))
  const handle = await nodeFiles.open(join(folder, 'raw'), 'append')
  try {
    const line = Buffer.alloc(400, 'x')
    return await ratePerSecond(2_000, async () => {
      await handle.write(line)
      await handle.sync()
    })
  } finally {
    await handle.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function keyOf(index: number): SessionKey {
  return `webhook:msg-${index}` as SessionKey
}

function rewrite(folder: string, rows: Record<string, SessionRecord>, turn: number): void {
  const at = turn % Object.keys(rows).length
  rows[keyOf(at)] = row(at, turn)
  const temporary = join(folder, 'sessions.json.tmp')
  const file = openSync(temporary, 'w')
  writeSync(file, JSON.stringify(rows, null, 2))
  fsyncSync(file)
  closeSync(file)
  renameSync(temporary, join(folder, 'sessions.json'))
}

async function ratePerSecond(forMs: number, work: (turn: number) => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  let turns = 0
  while (performance.now() - startedAt < forMs) await work(turns++)
  return turns / ((performance.now() - startedAt) / 1000)
}

async function latencies(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const measured: number[] = []
  for (let at = 0; at < count; at++) {
    const startedAt = performance.now()
    await work()
    measured.push(performance.now() - startedAt)
  }
  return measured
}

async function measureRestart(): Promise<void> {
  const home = GatewayProcess.newHome()
  try {
    for (const sessions of [0, 10_000]) {
      const rows = Object.fromEntries(
        Array.from({ length: sessions }, (_, i) => [keyOf(i), row(i, 1_699_000_000_000 + i)]),
      )
      if (sessions > 0) writeFileSync(join(home, 'sessions.json'), JSON.stringify(rows))
      await (await GatewayProcess.start(home)).stop()
      const times: number[] = []
      for (let turn = 0; turn < 5; turn++) {
        const gateway = await GatewayProcess.start(home)
        times.push(gateway.readyAfterMs)
        await gateway.stop()
      }
      say(`restart with ${sessions} sessions: ${quantile(times, 0.5).toFixed(0)} ms until /healthz (median of 5)`)
    }
  } finally {
    GatewayProcess.removeHome(home)
  }
}

async function measureGateway(): Promise<void> {
  const home = GatewayProcess.newHome()
  const gateway = await GatewayProcess.start(home)
  try {
    const rssBefore = gateway.rssMegabytes
    const sockets: WebSocket[] = []
    for (let index = 0; index < CONNECTIONS; index += 50)
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, (_, i) => gateway.connect(`c${index + i}`)))))
    await pause(1_000)
    const cpuBefore = gateway.cpuSeconds
    await pause(5_000)
    const idleShare = ((gateway.cpuSeconds - cpuBefore) / 5) * 100
    say(
      `idle: ${CONNECTIONS} connections, ${idleShare.toFixed(1)} % of a core, RSS ${rssBefore} → ${gateway.rssMegabytes} MB`,
    )
    await measureLoad(gateway, sockets)
    await measureAbuse(gateway)
    for (const socket of sockets) socket.terminate()
  } finally {
    await gateway.stop()
    GatewayProcess.removeHome(home)
  }
}

async function measureLoad(gateway: GatewayProcess, sockets: readonly WebSocket[]): Promise<void> {
  const sentAt = new Map<string, number>()
  const firstFrame: number[] = []
  const answered: number[] = []
  let errors = 0
  for (const socket of sockets) {
    const begun = new Set<string>()
    socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as { type: string; messageId: string }
      const at = sentAt.get(frame.messageId)
      if (at === undefined) return
      const took = performance.now() - at
      if (!begun.has(frame.messageId)) firstFrame.push(took)
      begun.add(frame.messageId)
      if (frame.type === 'error') errors++
      if (frame.type === 'complete') answered.push(took)
      if (frame.type === 'complete' || frame.type === 'error') begun.delete(frame.messageId)
    })
  }
  const stop = new AbortController()
  const probing = probe(gateway, 'c0-s', stop.signal)
  const cpuBefore = gateway.cpuSeconds
  const total = SECONDS * MESSAGES_PER_SECOND
  const startedAt = performance.now()
  for (let sent = 0; sent < total;) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * MESSAGES_PER_SECOND))
    for (; sent < due; sent++) {
      const socket = sockets[sent % sockets.length]
      sentAt.set(`m${sent}`, performance.now())
      const session = `c${sent % sockets.length}-s`
      socket?.send(JSON.stringify({ id: `m${sent}`, content: `hello number ${sent}`, session, stream: true }))
    }
    await pause(2)
  }
  for (let waited = 0; answered.length + errors < total && waited < 60_000; waited += 50) await pause(50)
  stop.abort()
  const gets = await probing
  const cpuShare = ((gateway.cpuSeconds - cpuBefore) / SECONDS) * 100
  say(`load: ${CONNECTIONS} connections, ${MESSAGES_PER_SECOND} messages/s for ${SECONDS} s against the demo model`)
  say(
    `  answered ${answered.length} of ${total}, errors ${errors}, ${cpuShare.toFixed(0)} % of a core, RSS ${gateway.rssMegabytes} MB`,
  )
  say(`  first frame   ${summary(firstFrame)}`)
  say(`  whole answer  ${summary(answered)}`)
  say(`  session.get   ${summary(gets)}`)
}

/** Asks for one session again and again, and notes how long each answer takes. */
async function probe(gateway: GatewayProcess, key: string, signal: AbortSignal): Promise<number[]> {
  const socket = await gateway.connect('probe')
  const times: number[] = []
  while (!signal.aborted) {
    const startedAt = performance.now()
    const answered = new Promise((resolve) => socket.once('message', resolve))
    socket.send(JSON.stringify({ type: 'session.get', key }))
    await answered
    times.push(performance.now() - startedAt)
    await pause(20)
  }
  socket.terminate()
  return times
}

/** What a client feels while another one floods: the ratio is what counts. */
async function measureAbuse(gateway: GatewayProcess): Promise<void> {
  const quiet = await probeFor(gateway, 3_000)
  const flooder = await gateway.connect('flooder')
  const stop = new AbortController()
  const flooding = (async () => {
    while (!stop.signal.aborted) {
      for (let index = 0; index < 200; index++) flooder.send('{"type":"session.list","broken":')
      await pause(5)
    }
  })()
  const flooded = await probeFor(gateway, 3_000)
  stop.abort()
  await flooding
  flooder.terminate()
  const ratio = quantile(flooded, 0.5) / quantile(quiet, 0.5)
  say(
    `abuse: session.get beside a flood of broken frames, median ${ratio.toFixed(1)} times that without (${summary(flooded)})`,
  )
}

async function probeFor(gateway: GatewayProcess, ms: number): Promise<number[]> {
  const stop = new AbortController()
  const probing = probe(gateway, 'c0-s', stop.signal)
  await pause(ms)
  stop.abort()
  return probing
}
