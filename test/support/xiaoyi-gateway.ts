import type { HookModule } from '../../src/hook/hook.ts'
import type { GatewayApp } from '../../src/app/gateway-app.ts'
import { createXiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import type { XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import type { Switches } from '../../src/simulator/xiaoyi/switches.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway, processOfLife } from './gateway.ts'
import type { ModelServer } from './model-server.ts'
import { openModelServer } from './model-server.ts'
import { AGENT, recordingLog } from './xiaoyi-world.ts'

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
  readonly logs: string[]
  stop(): Promise<void>
}

const running = new Set<Inside>()
const outsides: Outside[] = []

/** Ends everything a test opened and did not kill. */
export async function closeAll(): Promise<void> {
  for (const inside of running) if (!inside.files.isCrashed) await inside.stop()
  running.clear()
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

let seed = 0

export async function openInside(
  outside: Outside,
  files = new MemoryFiles(),
  xiaoyi: object = {},
  hooks: readonly HookModule[] = [],
  settings: object = {},
): Promise<Inside> {
  const { clock, network, simulator, model } = outside
  const [wsUrl1, wsUrl2] = simulator.urls
  const logs: string[] = []
  const gateway = await MemoryGateway.open({
    files,
    clock,
    network,
    processes: processOfLife(++seed),
    seed,
    config: {
      model: 'local/m',
      listen: { port: 0 },
      providers: { local: { type: 'openai-compatible', baseUrl: model.baseUrl } },
      agent: { tools: ['time'] },
      channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2, ...xiaoyi } },
      ...settings,
    },
    plugins: [{ source: 'test', plugin: { hooks } }],
    ports: { log: recordingLog(logs) },
  })
  const inside: Inside = {
    files,
    app: gateway.app,
    logs,
    async stop() {
      running.delete(inside)
      await gateway.stop()
    },
  }
  running.add(inside)
  await clock.advance(100)
  return inside
}

/** As after `kill -9`: sockets break, timers stop mattering, the disk keeps what the system has. */
export async function kill({ network, clock }: Outside, inside: Inside): Promise<MemoryFiles> {
  const files = inside.files.kill()
  for (const { client } of network.connections()) client.cut()
  await clock.advance(1)
  return files
}
