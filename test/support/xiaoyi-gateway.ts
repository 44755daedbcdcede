import type { HookModule } from '../../src/hook/hook.ts'
import { inertPorts } from './inert-ports.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { XiaoyiChannel } from '../../src/channel/xiaoyi/channel.ts'
import { homePaths } from '../../src/app/home.ts'
import { openGatewayApp, type GatewayApp } from '../../src/app/gateway-app.ts'
import { openXiaoyiChannel } from '../../src/app/xiaoyi-channel.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createXiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import type { XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import type { Switches } from '../../src/simulator/xiaoyi/switches.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { ModelServer } from './model-server.ts'
import { openModelServer } from './model-server.ts'
import { storageOf } from './virtual-schemas.ts'
import { AGENT, recordingLog } from './xiaoyi-world.ts'

const HOME = '/home/clew'

/** Phone, service and model live on while gateways come and go. */
export interface Outside {
  readonly clock: ManualClock
  readonly network: MemoryNetwork
  readonly simulator: XiaoyiSimulator
  readonly model: ModelServer
}

export interface Inside {
  readonly files: MemoryFiles
  readonly app: GatewayApp
  readonly channel: XiaoyiChannel
  readonly logs: string[]
  readonly die: () => void
  stop(): Promise<void>
}

const running = new Set<Inside>()
const outsides: Outside[] = []

/** Ends everything a test opened. */
export async function closeAll(): Promise<void> {
  for (const inside of running) await inside.stop()
  for (const { simulator } of outsides.splice(0)) await simulator.close()
}

export async function openOutside(switches: Partial<Switches> = {}): Promise<Outside> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const endpoints = [9001, 9002].map((port) => ({ host: '127.0.0.1', port }))
  const ids = new SeededIds(11)
  const simulator = await createXiaoyiSimulator({ clock, ids, servers: network, agent: AGENT, endpoints, switches })
  const outside = { clock, network, simulator, model: await openModelServer(network, clock) }
  outsides.push(outside)
  return outside
}

let seed = 1

export async function openInside(
  outside: Outside,
  files = new MemoryFiles(),
  xiaoyi: object = {},
  hooks: readonly HookModule[] = [],
): Promise<Inside> {
  const { clock, network, simulator, model } = outside
  const paths = homePaths(HOME, {})
  const [wsUrl1, wsUrl2] = simulator.urls
  const config = {
    model: 'local/m',
    providers: { local: { type: 'openai-compatible', baseUrl: model.baseUrl } },
    agent: { tools: ['time'] },
    channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2, ...xiaoyi } },
  }
  files.plant(paths.config, JSON.stringify(config))
  const logs: string[] = []
  const processes = new ScriptedProcesses({ pid: 1000 + ++seed })
  // Whoever held the lock before was killed.
  for (let earlier = 1001; earlier < 1000 + seed; earlier++) processes.die({ ...processes.self, pid: earlier })
  let isAlive = true
  // A killed program's timers never fire.
  const ownClock: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, () => void (isAlive && callback())),
  }
  const storage = await storageOf(files, ownClock)
  const platform = {
    files,
    clock: ownClock,
    ids: new SeededIds(seed),
    processes,
    http: network,
    httpServers: network,
    dialer: network,
    ...inertPorts,
    ...storage.ports,
    log: recordingLog(logs),
  }
  const loaded = await loadConfig({ files, path: paths.config, env: {}, overrides: storage.overrides })
  const app = await openGatewayApp(platform, {
    config: loaded.config,
    paths,
    plugins: [{ source: 'test', plugin: { hooks } }],
  })
  const channel = await openXiaoyiChannel(platform, loaded.config, paths, {
    state: app.home.xiaoyi,
    hooks: app.agent.hooks,
    storage: app.storage,
  })
  if (channel === undefined) throw new Error('the channel is not enabled')
  await app.open([channel])
  const inside: Inside = {
    files,
    app,
    channel,
    logs,
    die: () => {
      isAlive = false
      running.delete(inside)
    },
    async stop() {
      running.delete(inside)
      let done = false
      const stopping = app.gateway
        .drain(AbortSignal.abort())
        .then(() => app.close())
        .finally(() => (done = true))
      await clock.runUntil(() => done)
      await stopping
    },
  }
  running.add(inside)
  await clock.advance(100)
  return inside
}

/** As after `kill -9`: sockets break, timers stop mattering, the disk keeps what the system has. */
export async function kill({ network, clock }: Outside, inside: Inside): Promise<MemoryFiles> {
  const files = inside.files.kill()
  inside.die()
  for (const { client } of network.connections()) client.cut()
  await clock.advance(1)
  return files
}
