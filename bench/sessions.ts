import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { GatewayProcess, quantile } from './lib/gateway-process.ts'
import { makeKnownSessions } from './lib/known-sessions.ts'

/**
 * What known sessions cost that say nothing: a gateway with few and with many of them, then two messages a second to ten
 * conversations, new ones and known ones. Processor time of the process with all its threads.
 */
const SESSIONS = [100, Number(process.env['CLEW_BENCH_SESSIONS'] ?? 1_000_000)]
const STARTS = 5
const WARM_UP = 20
const MESSAGES = 120
const EVERY_MS = 500
const LIMIT = 1.2
const MAX_BYTES = 300
const MAX_START = 2
const MAX_STALL_MS = 50

interface Measured {
  readonly startMs: number
  readonly idleMegabytes: number
  readonly messageMs: number
  readonly busyMegabytes: number
  readonly stopMs: number
  readonly stalls: string
}

async function medianStart(home: string): Promise<number> {
  const times: number[] = []
  for (let turn = 0; turn < STARTS; turn++) {
    const gateway = await GatewayProcess.start(home)
    times.push(gateway.cpuSeconds * 1000)
    await gateway.stop()
  }
  return quantile(times, 0.5)
}

async function measure(sessions: number): Promise<Measured> {
  const home = GatewayProcess.newHome()
  try {
    await makeKnownSessions(home, sessions)
    writeFileSync(join(home, 'bridge.json'), JSON.stringify({ limits: { sessions: 2_000_000 } }))
    const startMs = await medianStart(home)
    const gateway = await GatewayProcess.start(home)
    await pause(2_000)
    const idleMegabytes = gateway.rssMegabytes
    const messageMs = await measureMessages(gateway, sessions)
    const busyMegabytes = gateway.rssMegabytes
    const stalls = await stallsOf(gateway)
    const stopMs = await measureStop(gateway)
    return { startMs, idleMegabytes, messageMs, busyMegabytes, stopMs, stalls }
  } finally {
    GatewayProcess.removeHome(home)
  }
}

/** A process that has ended has no figures: the last look before counts. */
async function measureStop(gateway: GatewayProcess): Promise<number> {
  const before = gateway.cpuSeconds
  let latest = before
  const look = setInterval(() => (latest = gateway.cpuSeconds), 10)
  try {
    await gateway.stop()
  } finally {
    clearInterval(look)
  }
  return (latest - before) * 1000
}

async function measureMessages(gateway: GatewayProcess, sessions: number): Promise<number> {
  const socket = await gateway.connect('owner-1')
  const counts = { sent: 0, answered: 0 }
  socket.on('message', (data: Buffer) => {
    if ((JSON.parse(data.toString()) as { type: string }).type === 'complete') counts.answered++
  })
  const send = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      // Every other one goes to a conversation that is known and was not used since the start.
      const known = Math.floor((counts.sent * sessions) / (WARM_UP + MESSAGES))
      const session = at % 2 === 0 ? `s${at % 10}` : `webhook:peer-${known - (known % 10_000) + 1}`
      socket.send(JSON.stringify({ id: `m${counts.sent++}`, content: 'hello', session, stream: true }))
      await pause(EVERY_MS)
    }
    while (counts.answered < counts.sent) await pause(10)
  }
  await send(WARM_UP)
  const before = gateway.cpuSeconds
  await send(MESSAGES)
  const messageMs = ((gateway.cpuSeconds - before) * 1000) / MESSAGES
  socket.terminate()
  return messageMs
}

/** How often the event loop was held up for more than 50 ms, as the gateway counted it. */
async function stallsOf(gateway: GatewayProcess): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('clew_eventloop_stall_seconds_count'))
  return String(lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0))
}

const results: Measured[] = []
for (const sessions of SESSIONS) {
  const result = await measure(sessions)
  results.push(result)
  const { startMs, idleMegabytes, messageMs, busyMegabytes, stopMs, stalls } = result
  console.log(
    `${sessions} known sessions: start ${startMs.toFixed(0)} ms (median of ${STARTS}), idle ${idleMegabytes} MB, ` +
      `${messageMs.toFixed(1)} ms per message, ${busyMegabytes} MB after it, stop ${stopMs.toFixed(0)} ms, ` +
      `event loop held up over ${MAX_STALL_MS} ms: ${stalls} times`,
  )
}
const [few, many] = results
const [fewer = 0, more = 0] = SESSIONS
if (few !== undefined && many !== undefined) {
  const bytes = ((many.idleMegabytes - few.idleMegabytes) * 2 ** 20) / (more - fewer)
  const judged = (value: number, limit: number): string => `(limit ${limit}: ${value <= limit ? 'held' : 'not held'})`
  const [message, start] = [many.messageMs / few.messageMs, many.startMs / few.startMs]
  console.log(`a message costs ${message.toFixed(2)} × ${judged(message, LIMIT)}`)
  console.log(`a known session takes ${bytes.toFixed(0)} bytes of memory ${judged(bytes, MAX_BYTES)}`)
  console.log(`a start costs ${start.toFixed(2)} × ${judged(start, MAX_START)}`)
}
