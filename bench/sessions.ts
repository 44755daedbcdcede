import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { GatewayProcess } from './lib/gateway-process.ts'

/**
 * What known sessions cost that say nothing: a gateway with few and with many rows of `sessions.json`, started again,
 * then two messages a second to ten conversations. Processor time of the process with all its threads.
 */
const SESSIONS = [100, 90_000]
const WARM_UP = 10
const MESSAGES = 60
const EVERY_MS = 500
const LIMIT = 1.2
const MAX_BYTES = 300
const MAX_START = 2

interface Measured {
  readonly startMs: number
  readonly idleMegabytes: number
  readonly messageMs: number
}

function rowsOf(sessions: number): object {
  const row = (at: number): [string, object] => [
    `webhook:msg-${at}`,
    {
      sessionId: `sess_${String(at).padStart(32, '0')}`,
      updatedAt: 1_700_000_000_000 + at,
      lastChannel: 'webhook',
      lastTo: `msg-${at}`,
      webhookMessageId: `msg-${at}`,
    },
  ]
  return Object.fromEntries(Array.from({ length: sessions }, (_, at) => row(at)))
}

async function measure(sessions: number): Promise<Measured> {
  const home = GatewayProcess.newHome()
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'sessions.json'), JSON.stringify(rowsOf(sessions), null, 2))
  await (await GatewayProcess.start(home)).stop()
  const gateway = await GatewayProcess.start(home)
  const startMs = gateway.cpuSeconds * 1000
  await pause(2_000)
  const idleMegabytes = gateway.rssMegabytes
  const socket = await gateway.connect('a')
  const counts = { sent: 0, answered: 0 }
  socket.on('message', (data: Buffer) => {
    if ((JSON.parse(data.toString()) as { type: string }).type === 'complete') counts.answered++
  })
  const send = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      socket.send(JSON.stringify({ id: `m${counts.sent++}`, content: 'hello', session: `s${at % 10}`, stream: true }))
      await pause(EVERY_MS)
    }
    while (counts.answered < counts.sent) await pause(10)
  }
  await send(WARM_UP)
  const before = gateway.cpuSeconds
  await send(MESSAGES)
  const messageMs = ((gateway.cpuSeconds - before) * 1000) / MESSAGES
  socket.terminate()
  await gateway.stop()
  GatewayProcess.removeHome(home)
  return { startMs, idleMegabytes, messageMs }
}

const results: Measured[] = []
for (const sessions of SESSIONS) {
  const result = await measure(sessions)
  results.push(result)
  const { startMs, idleMegabytes, messageMs } = result
  console.log(
    `${sessions} known sessions: start ${startMs.toFixed(0)} ms, idle ${idleMegabytes} MB, ${messageMs.toFixed(1)} ms per message`,
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
