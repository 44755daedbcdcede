import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { SessionId, SessionKey } from '../src/core/ids.ts'
import type { SessionRecord } from '../src/core/inbound.ts'
import { cpuSecondsOf, GatewayProcess } from './lib/gateway-process.ts'
import { openHome } from './lib/known-sessions.ts'

/**
 * What conversations cost that are all in use: so many of so many turns, each going on twice within a minute. None has
 * to be read from the disk a second time. A turn asks 70 characters; the answer is the demo model's.
 */
const SESSIONS = Number(process.env['CLEW_BENCH_ACTIVE'] ?? 1_000)
const TURNS = 110
const ROUND_MS = 30_000
const LIMIT_MB = 250

const home = GatewayProcess.newHome()
try {
  await makeConversations()
  const gateway = await GatewayProcess.start(home)
  await pause(2_000)
  const idle = gateway.rssMegabytes
  const socket = await gateway.connect('ann')
  const counts = { sent: 0, answered: 0 }
  socket.on('message', (data: Buffer) => {
    const { type, code } = JSON.parse(data.toString()) as { type: string; code?: string }
    if (type === 'error') throw new Error(`a turn failed: ${code ?? ''}`)
    if (type === 'complete') counts.answered++
  })
  console.log(
    `${SESSIONS} conversations of ${TURNS} turns, all asked in each round of ${ROUND_MS / 1000} s; idle ${idle} MB`,
  )

  for (const round of [1, 2, 3]) {
    const read = readBytesOf(gateway.pid)
    const before = cpuSecondsOf(gateway.pid)
    const startedAt = performance.now()
    for (let at = 0; at < SESSIONS; at++) {
      const content = textOf(`${round}.${at}`)
      socket.send(JSON.stringify({ id: `m${counts.sent++}`, content, session: `s${at}`, stream: true }))
      await pause(Math.max(0, startedAt + ((at + 1) * ROUND_MS) / SESSIONS - performance.now()))
    }
    while (counts.answered < counts.sent) await pause(20)
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text()
    const heap = Number(/^nodejs_heap_size_used_bytes (?<bytes>\S+)/mu.exec(metrics)?.groups?.['bytes'] ?? Number.NaN)
    const counted = Number(/^clew_held_bytes\{[^}]*transcripts[^}]*\} (?<bytes>\S+)/mu.exec(metrics)?.groups?.['bytes'])
    const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
    console.log(
      `round ${round}: ${gateway.rssMegabytes} MB, heap ${megabytes(heap)} MB, counted ${megabytes(counted)} MB, ` +
        `${((readBytesOf(gateway.pid) - read) / SESSIONS / 1024).toFixed(1)} KB read per turn, ` +
        `${(((cpuSecondsOf(gateway.pid) - before) * 1000) / SESSIONS).toFixed(1)} ms per turn`,
    )
  }
  const rss = gateway.rssMegabytes
  console.log(`memory ${rss} MB (limit ${LIMIT_MB}: ${rss <= LIMIT_MB ? 'held' : 'not held'})`)
  socket.terminate()
  await gateway.stop()
} finally {
  GatewayProcess.removeHome(home)
}

/** What the process asked the system for, from the disk or out of its cache. */
function readBytesOf(pid: number): number {
  return Number(/rchar: (?<bytes>\d+)/u.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.groups?.['bytes'])
}

function textOf(name: string): string {
  return `question ${name} about the weather of tomorrow, of the day after it, and the sea`
}

/** One conversation is held by the gateway itself; the others are copies of its transcript. */
async function makeConversations(): Promise<void> {
  const gateway = await GatewayProcess.start(home)
  const socket = await gateway.connect('ann')
  for (let turn = 0; turn < TURNS; turn++) {
    const done = new Promise<void>((resolve) =>
      socket.on('message', (data: Buffer) => {
        if ((JSON.parse(data.toString()) as { type: string; id?: string }).type === 'complete') resolve()
      }),
    )
    socket.send(JSON.stringify({ id: `first${turn}`, content: textOf(String(turn)), session: 's0', stream: true }))
    await done
    socket.removeAllListeners('message')
  }
  socket.terminate()
  await gateway.stop()
  const storage = await openHome(home)
  const first = await storage.storage.sessions.get('s0' as SessionKey)
  if (first === undefined) throw new Error('the first conversation has no row')
  const transcript = readFileSync(join(home, 'sessions', `${first.sessionId}.jsonl`), 'utf8')
  for (let at = 1; at < SESSIONS; at++) {
    const sessionId = `sess_${at.toString(16).padStart(32, '0')}` as SessionId
    writeFileSync(join(home, 'sessions', `${sessionId}.jsonl`), transcript.replaceAll(first.sessionId, sessionId))
    const record: SessionRecord = { ...first, sessionId }
    await storage.storage.transact([{ kind: 'put-session', key: `s${at}` as SessionKey, record }])
  }
  await storage.close()
  console.log(`a transcript of ${TURNS} turns has ${(transcript.length / 1024).toFixed(0)} KB`)
}
