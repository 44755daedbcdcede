import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { sleep } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { homePaths } from '../src/cli/home.ts'
import { createNodePlatform } from '../src/cli/node-platform.ts'
import { createXiaoyiSimulator } from '../src/simulator/xiaoyi/simulator.ts'
import { GatewayProcess } from './lib/gateway-process.ts'
import { openWordStream } from './lib/word-stream.ts'

/**
 * The built gateway as a process of its own, on a real disk and real sockets; this process plays the service, the phone
 * and the model, and looks at the clock as a phone would.
 */
const STREAMING_SESSIONS = 100
const CLEARS = 400
/** Not counted: the first ones of a process meet code that is not compiled yet. */
const WARM_UP_CLEARS = 50
/** About what a clear takes: how long the same time of plain computing takes shows what the machine does to it. */
const WITNESS_MS = 3
/** 50 pieces per second and session: a quick model. */
const WORD_EVERY_MS = 20
const AGENT = { ak: 'ak', sk: 'sk', agentId: 'agent-1' }
const never = new AbortController().signal

const platform = createNodePlatform(silentLog)
const { clock: systemClock, ids, httpServers: servers, files } = platform
const endpoint = { host: '127.0.0.1', port: 0 }
const switches = { newSessionAfterClear: false }
const endpoints = [endpoint, endpoint]
const simulator = await createXiaoyiSimulator({
  clock: systemClock,
  ids,
  servers,
  agent: AGENT,
  endpoints,
  switches,
  // Nobody looks at them: collecting the garbage of a long memory would count as our latency.
  phoneLimits: { maxFrames: 20 },
})
const model = await openWordStream(WORD_EVERY_MS)
const home = GatewayProcess.newHome()
const [wsUrl1, wsUrl2] = simulator.urls
await writeFile(
  homePaths(home, {}).config,
  JSON.stringify({
    model: 'local/m',
    providers: { local: { type: 'openai-compatible', baseUrl: model.baseUrl } },
    agent: { tools: [] },
    limits: { concurrent_turns: 2 * STREAMING_SESSIONS },
    channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2 } },
  }),
)
const gateway = await GatewayProcess.start(home)
while (simulator.connections.ready().length < 2) await sleep(systemClock, 10, never)

const compute = plainComputing(WITNESS_MS)
const alone = await measure('nothing else runs')
for (let count = 0; count < STREAMING_SESSIONS; count++) {
  simulator.say('stream', { sessionId: `streaming-${count}`, via: count % 2 })
  await sleep(systemClock, 7, never)
}
const before = { cpuSeconds: gateway.cpuSeconds, at: performance.now() }
const crowded = await measure(`${STREAMING_SESSIONS} sessions stream`)
const share = (gateway.cpuSeconds - before.cpuSeconds) / ((performance.now() - before.at) / 1000)
console.info(`processor time of the gateway meanwhile: ${(100 * share).toFixed(0)} % of one core`)
console.info(`ratio of the medians: ${(crowded.clear.median / alone.clear.median).toFixed(1)}`)
if (simulator.phone.violations.length > 0) throw new Error('the phone found violations')
await gateway.stop()
await simulator.close()
await model.close()
await platform.close()
GatewayProcess.removeHome(home)
// On a machine that takes the processor away the figure says little about us: then it is only told.
const isQuiet = crowded.computing.p99 < 2 * WITNESS_MS && crowded.write.p99 < 3
if (isQuiet && crowded.clear.p99 >= 10) {
  throw new Error(`clearContext took ${crowded.clear.p99.toFixed(1)} ms at p99; the limit is 10 ms`)
}

interface Times {
  readonly median: number
  readonly p99: number
}

/**
 * Each clear meets a running turn of its own session: it has to be stopped and its task closed first. After each one an
 * empty round trip over the same sockets, refused without any work, one durable write and some computing show what the
 * machine takes.
 */
async function measure(situation: string): Promise<Readonly<Record<'clear' | 'empty' | 'write' | 'computing', Times>>> {
  const clears: number[] = []
  const empties: number[] = []
  const writes: number[] = []
  const computings: number[] = []
  for (let count = -WARM_UP_CLEARS; count < CLEARS; count++) {
    simulator.newConversation()
    const task = simulator.say('stream')
    while (task.text === '') await sleep(systemClock, 1, never)
    const clear = await timed(clearOnce)
    await sleep(systemClock, 2, never)
    const empty = await timed(() => refusedOnce(`empty-${performance.now()}`))
    const write = await timed(writeOnce)
    const computing = await timed(compute)
    if (count < 0) continue
    clears.push(clear)
    empties.push(empty)
    writes.push(write)
    computings.push(computing)
  }
  return {
    clear: report(`clearContext, ${situation}`, clears),
    empty: report(`empty round trip, ${situation}`, empties),
    write: report(`one durable write, ${situation}`, writes),
    computing: report(`computing for ${WITNESS_MS} ms, ${situation}`, computings),
  }
}

async function writeOnce(): Promise<void> {
  const handle = await files.open(join(home, 'probe'), 'append')
  await handle.write('one line of a journal\n')
  await handle.sync()
  await handle.close()
}

/** A fixed amount of work that takes this long when nobody interferes. */
function plainComputing(ms: number): () => Promise<void> {
  let sum = 0
  const work = (steps: number): void => {
    for (let step = 0; step < steps; step++) sum = (sum * 31 + step) % 1_000_003
  }
  const steps = 100_000
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 200; round++) {
    const began = performance.now()
    work(steps)
    best = Math.min(best, performance.now() - began)
  }
  return async () => work(Math.round((steps * ms) / best))
}

function clearOnce(): Promise<void> {
  return new Promise((resolve) => {
    simulator.phone.events.onControl = () => resolve()
    simulator.clear()
  })
}

function refusedOnce(id: string): Promise<void> {
  const { sessionId } = simulator
  const task = simulator.phone.addTask({ taskId: id, requestId: id, sessionId, request: '', endpoint: 0 })
  return new Promise((resolve) => {
    simulator.phone.events.onChange = (changed) => {
      if (changed !== task) return
      task.end('done')
      resolve()
    }
    simulator.sendRaw(JSON.stringify({ jsonrpc: '2.0', id, sessionId, method: 'none' }))
  })
}

async function timed(action: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await action()
  return performance.now() - began
}

function report(name: string, times: number[]): Times {
  times.sort((a, b) => a - b)
  const at = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? 0
  const [median, p99] = [at(0.5), at(0.99)]
  console.info(`${name}: median ${median.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, max ${at(1).toFixed(2)} ms`)
  return { median, p99 }
}
