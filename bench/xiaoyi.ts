import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { sleep, NEVER } from '../src/base/async.ts'
import { silentLog } from '../src/base/log.ts'
import { homePaths } from '../src/app/home.ts'
import { createNodePlatform } from '../src/app/platform.ts'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../src/simulator/xiaoyi/simulator.ts'
import { AGENT } from './lib/xiaoyi-agent.ts'
import { cpuSecondsOf, GatewayProcess, processorTimes, quantile } from './lib/gateway-process.ts'
import { comeFirst, comeLast } from './lib/schedule.ts'

/**
 * How long a phone waits for its `clearContext`, each time with a running turn of its own session that has to be
 * stopped and its task closed first. The built gateway runs as a process of its own, on a real disk and real sockets;
 * this process plays the service and the phone. In turns with it works an agent that does nothing but what the protocol
 * and the disk ask for: the difference is ours, the rest is the machine's, and its quiet and its noisy minutes meet
 * both. Both live through all rounds, as a gateway does that has been at work for a while.
 *
 * Every round counts, and so does every clear in it: the result is the p99 over all of them, ours against that of the
 * agent that does nothing. While the host gives the processors to other machines both wait for it: how much it took is
 * printed for each round and changes nothing.
 */
const ROUNDS = 6
const STREAMING_SESSIONS = 100
const CLEARS = 300
/** Not counted: the first ones of a process meet code that is not compiled yet. */
const WARM_UP_CLEARS = 600
/** Not counted either: the streams have just begun. */
const SETTLING_CLEARS = 50
/** 50 pieces per second and session: a quick model. */
const WORD_EVERY_MS = 20

const platform = createNodePlatform(silentLog)
const { clock, ids, httpServers: servers } = platform
const model = fork(join(import.meta.dirname, 'processes', 'word-stream.ts'), [String(WORD_EVERY_MS)])
const [baseUrl] = (await once(model, 'message')) as [string]
// Both are tried: a program that may not have the first can often have the second.
const isApart = [comeFirst(process.pid), comeLast(model.pid ?? 0)].every(Boolean)
console.info(isApart ? 'the phone comes first, the model last' : 'phone, model and agents take turns: less exact')

interface Started {
  readonly pid: number
  stop(): Promise<void>
}

interface Agent extends Started {
  readonly name: string
  readonly simulator: XiaoyiSimulator
  readonly home: string
  readonly rounds: Measured[]
}

interface Measured {
  readonly times: readonly number[]
  /** Share of the processors' time that other machines of the same host got. */
  readonly stolen: number
}

const clew = await open('clew', startClew)
const bare = await open('bare agent', startBare)
const agents = [clew, bare]
for (const { simulator } of agents) await clears(simulator, WARM_UP_CLEARS)
for (let round = 1; round <= ROUNDS; round++)
  for (const agent of round % 2 === 1 ? agents : agents.toReversed()) agent.rounds.push(await measure(agent, round))
for (const agent of agents) await close(agent)
model.disconnect()
await platform.close()

console.info(`clearContext while ${STREAMING_SESSIONS} sessions stream, all ${ROUNDS} rounds of ${CLEARS} clears each:`)
for (const agent of agents) console.info(`  ${agent.name}: ${summaryOf(timesOf(agent))}`)
const [ours, theirs] = agents.map((agent) => quantile(timesOf(agent), 0.99))
const isHeld = (ours ?? Infinity) <= (theirs ?? 0)
console.info(`  limit: p99 not above the bare agent's: ${isHeld ? 'held' : 'not held'}`)

async function open(name: string, start: (home: string, urls: readonly string[]) => Promise<Started>): Promise<Agent> {
  const endpoint = { host: '127.0.0.1', port: 0 }
  const simulator = await createXiaoyiSimulator({
    clock,
    ids,
    servers,
    agent: AGENT,
    endpoints: [endpoint, endpoint],
    switches: { newSessionAfterClear: false },
    // They are not looked at: collecting the garbage of a long memory would count as latency.
    phoneLimits: { maxFrames: 20 },
  })
  const home = GatewayProcess.newHome()
  const { pid, stop } = await start(home, simulator.urls)
  while (simulator.connections.ready().length < 2) await sleep(clock, 10, NEVER)
  return { name, simulator, home, rounds: [], pid, stop }
}

async function measure({ name, simulator, pid }: Agent, round: number): Promise<Measured> {
  for (let count = 0; count < STREAMING_SESSIONS; count++) {
    simulator.say('stream', { sessionId: `streaming-${round}-${count}`, via: count % 2 })
    await sleep(clock, 7, NEVER)
  }
  await clears(simulator, SETTLING_CLEARS)
  const before = { cpu: cpuSecondsOf(pid), words: await wordsSaid(), at: performance.now() }
  const { times, stolen } = await clears(simulator, CLEARS)
  const seconds = (performance.now() - before.at) / 1000
  const share = (cpuSecondsOf(pid) - before.cpu) / seconds
  const wordsPerSecond = ((await wordsSaid()) - before.words) / seconds
  model.send('end')
  await sleep(clock, 500, NEVER)
  console.info(
    `round ${round}, ${name}: ${summaryOf(times)}, ${(100 * share).toFixed(0)} % of a core, ` +
      `${wordsPerSecond.toFixed(0)} words/s, ${(100 * stolen).toFixed(1)} % stolen`,
  )
  return { times, stolen }
}

async function close({ simulator, home, stop }: Agent): Promise<void> {
  const violations = simulator.phone.violations.length
  await stop()
  await simulator.close()
  GatewayProcess.removeHome(home)
  if (violations > 0) throw new Error('the phone found violations')
}

async function clears(simulator: XiaoyiSimulator, count: number): Promise<Measured> {
  const before = processorTimes()
  const times: number[] = []
  while (times.length < count) times.push(await clearOnce(simulator))
  const after = processorTimes()
  return { times, stolen: (after.stolen - before.stolen) / (after.all - before.all) }
}

async function clearOnce(simulator: XiaoyiSimulator): Promise<number> {
  simulator.newConversation()
  const task = simulator.say('stream')
  while (task.text === '') await sleep(clock, 1, NEVER)
  const began = performance.now()
  await new Promise<void>((resolve) => {
    simulator.phone.events.onControl = () => resolve()
    simulator.clear()
  })
  const took = performance.now() - began
  // What the agent still does about this one is not to be met by the next.
  await sleep(clock, 5, NEVER)
  return took
}

async function startClew(home: string, [wsUrl1, wsUrl2]: readonly string[]): Promise<Started> {
  await writeFile(
    homePaths(home, {}).config,
    JSON.stringify({
      model: 'local/m',
      providers: { local: { type: 'openai-compatible', baseUrl } },
      agent: { tools: [] },
      limits: { concurrent_turns: 2 * STREAMING_SESSIONS },
      channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2 } },
    }),
  )
  const gateway = await GatewayProcess.start(home)
  return { pid: gateway.pid, stop: () => gateway.stop() }
}

async function startBare(home: string, urls: readonly string[]): Promise<Started> {
  const program = join(import.meta.dirname, 'processes', 'bare-agent.ts')
  const child = fork(program, [join(home, 'journal'), baseUrl, ...urls])
  const ended = once(child, 'exit')
  return {
    pid: child.pid ?? 0,
    async stop() {
      child.disconnect()
      await ended
    },
  }
}

async function wordsSaid(): Promise<number> {
  model.send('words')
  const [words] = (await once(model, 'message')) as [number]
  return words
}

function timesOf({ rounds }: Agent): readonly number[] {
  return rounds.flatMap(({ times }) => times)
}

function summaryOf(times: readonly number[]): string {
  return `median ${quantile(times, 0.5).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms`
}
