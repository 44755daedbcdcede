import { silentLog } from '../../src/base/log.ts'
import { homePaths } from '../../src/app/home.ts'
import { openGatewayApp, type GatewayApp } from '../../src/app/gateway-app.ts'
import type { Platform } from '../../src/app/platform.ts'
import { providersOf, type PluginSource } from '../../src/app/plugin.ts'
import { serve, type Serving } from '../../src/app/serve.ts'
import type { SimulatedPhone } from '../../src/app/simulated-phone.ts'
import { loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import type { HookSource } from '../../src/hook/register.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Socket } from '../../src/base/sockets.ts'
import type { ConnectQuery } from '../../src/channel/webhook/channel.ts'
import { linkedSockets, type LinkedSocket } from '../../src/testing/linked-sockets.ts'
import { ManualClock, settle } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { inertPorts } from './inert-ports.ts'
import type { TestStorage } from './virtual-schemas.ts'

export type Frame = Record<string, unknown>

export interface GatewayOptions {
  readonly files?: MemoryFiles
  readonly clock?: ManualClock
  readonly seed?: number
  readonly config?: Record<string, unknown>
  /** Shared with simulators that the gateway is to reach. */
  readonly network?: MemoryNetwork
  readonly env?: Record<string, string>
  readonly processes?: ScriptedProcesses
  /** Ports to use instead of the inert ones: programs, hook modules, an image resizer. */
  readonly ports?: Partial<Platform>
  readonly hooks?: readonly HookSource[]
  readonly plugins?: readonly PluginSource[]
  /** A simulated phone, as `clew start --simulate-xiaoyi` brings one. */
  readonly phone?: SimulatedPhone
}

const HOME = '/home/clew'
const ON_FILES: TestStorage = { ports: {}, overrides: [] }
/** Loaded only where it is used: it registers hooks with the test runner, and scripts open this gateway too. */
const schemas = process.env['CLEW_TEST_STORAGE'] === 'postgres' ? await import('./virtual-schemas.ts') : undefined

/** The whole gateway in memory, on virtual time. The same seed gives the same bytes. */
export class MemoryGateway {
  readonly files: MemoryFiles
  readonly clock: ManualClock
  readonly network: MemoryNetwork
  readonly app: GatewayApp
  readonly serving: Serving
  readonly options: GatewayOptions
  readonly processes: ScriptedProcesses

  private constructor(
    parts: Pick<MemoryGateway, 'files' | 'clock' | 'network' | 'app' | 'serving' | 'options' | 'processes'>,
  ) {
    this.files = parts.files
    this.clock = parts.clock
    this.network = parts.network
    this.app = parts.app
    this.serving = parts.serving
    this.options = parts.options
    this.processes = parts.processes
  }

  /** The next start after a power cut (or, with `kill`, after the process alone died): same home, a minute later. */
  async restart(
    how: { readonly kill?: boolean; readonly random?: () => number; readonly afterMs?: number } = {},
  ): Promise<MemoryGateway> {
    return MemoryGateway.open({
      ...this.options,
      files: how.kill === true ? this.files.kill() : this.files.crash(how.random),
      clock: new ManualClock(this.clock.now() + (how.afterMs ?? 60_000)),
      seed: (this.options.seed ?? 1) + 1,
      processes: this.processes.successor(),
    })
  }

  static async open(options: GatewayOptions = {}): Promise<MemoryGateway> {
    const clock = options.clock ?? new ManualClock()
    const files = options.files ?? new MemoryFiles({ now: () => clock.now() })
    const network = options.network ?? new MemoryNetwork(clock)
    const paths = homePaths(HOME, {})
    if (options.config !== undefined) files.plant(paths.config, JSON.stringify(options.config))
    const { phone } = options
    const ownClock = clockOfLife(clock, files)
    const storage = (await schemas?.storageOf(files, ownClock)) ?? ON_FILES
    const overrides = [...storage.overrides, ...(phone === undefined ? [] : [phone.override])]
    const { env = {}, hooks = [], plugins = [] } = options
    const ownProviders = providersOf(plugins).map(({ provider }) => provider.name)
    const load = (): Promise<LoadedConfig> => loadConfig({ files, path: paths.config, env, overrides, ownProviders })
    const { config } = await load()
    const ids = new SeededIds(options.seed ?? 1)
    const processes = options.processes ?? new ScriptedProcesses({ pid: 1 })
    const platform: Platform = {
      files,
      clock: ownClock,
      ids,
      processes,
      http: network,
      httpServers: network,
      dialer: network,
      ...inertPorts,
      ...storage.ports,
      log: silentLog,
      ...options.ports,
    }
    const screen = phone === undefined ? {} : { phone: phone.screen }
    const app = await openGatewayApp(platform, { config, paths, env, load, hooks, plugins, ...screen })
    return new MemoryGateway({
      files,
      clock,
      network,
      app,
      options,
      processes,
      serving: await serve(app, platform).catch(async (error: unknown) => {
        await app.close()
        throw error
      }),
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.serving.port}`
  }

  async connect(query = '', headers: Readonly<Record<string, string>> = {}): Promise<TestClient> {
    const url = `ws://127.0.0.1:${this.serving.port}/ws${query}`
    const options = { headers, maxFrameBytes: 1024 * 1024, timeoutMs: 1_000 }
    return new TestClient(this, await this.network.dial(url, options, new AbortController().signal))
  }

  /** A socket that the webhook channel gets directly, behind the door that decides whose it is. */
  linkSocket(query: ConnectQuery): LinkedSocket {
    const [socket, server] = linkedSockets({ clock: this.clock })
    this.app.webhook.connect(server, query)
    return socket
  }

  /** A client on such a socket, which a test can also silence, cut or slow. */
  link(query: ConnectQuery = {}): TestClient<LinkedSocket> {
    return new TestClient(this, this.linkSocket(query))
  }

  async request(
    path: string,
    init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
  ): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
    const { method = 'GET', headers = {}, body } = init
    const timeouts = { connectTimeoutMs: 1_000, firstByteTimeoutMs: 1_000, idleTimeoutMs: 1_000 }
    const request = { method, url: `${this.url}${path}`, headers, ...timeouts, ...(body === undefined ? {} : { body }) }
    const response = await this.network.request(request, new AbortController().signal)
    const pieces: Uint8Array[] = []
    for await (const piece of response.body) pieces.push(piece)
    return { status: response.status, text: Buffer.concat(pieces).toString(), headers: response.headers }
  }

  async api(path: string, init?: Parameters<MemoryGateway['request']>[1]): Promise<Frame> {
    return JSON.parse((await this.request(path, init)).text) as Frame
  }

  async stop(): Promise<void> {
    const stopping = this.serving.stop(AbortSignal.abort())
    let done = false
    void stopping.finally(() => {
      done = true
    })
    await this.clock.runUntil(() => done)
    await stopping
  }
}

/** The process of one life of a home, whose earlier lives were killed. */
export function processOfLife(life: number): ScriptedProcesses {
  const processes = new ScriptedProcesses({ pid: 1_000 + life })
  for (let earlier = 1; earlier < life; earlier++) processes.die({ ...processes.self, pid: 1_000 + earlier })
  return processes
}

/** A program that was killed with its disk's life leaves timers that never fire. */
function clockOfLife(clock: ManualClock, files: MemoryFiles): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, () => void (!files.isCrashed && callback())),
  }
}

/** One client's socket: frames in, frames out, as objects. */
export class TestClient<S extends Socket = Socket> {
  readonly socket: S
  readonly frames: Frame[] = []
  closed: { readonly code: number; readonly reason: string } | undefined
  /** Called in the moment a frame arrives, before anything else can happen. */
  onFrame: ((frame: Frame) => void) | undefined
  readonly #gateway: MemoryGateway

  constructor(gateway: MemoryGateway, socket: S) {
    this.#gateway = gateway
    this.socket = socket
    socket.listen({
      onText: (text) => {
        const frame = JSON.parse(text) as Frame
        this.frames.push(frame)
        this.onFrame?.(frame)
      },
      onPong: () => undefined,
      onClose: (code, reason) => {
        this.closed = { code, reason }
      },
    })
  }

  async send(...frames: readonly unknown[]): Promise<void> {
    for (const frame of frames) await this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  /** Sends, and waits for the next frame that is not a preview. */
  async ask(frame: unknown): Promise<Frame> {
    const before = this.terminal().length
    await this.send(frame)
    await this.#gateway.clock.runUntil(() => this.terminal().length > before)
    return this.terminal()[before] ?? {}
  }

  /** Waits until this many terminal frames have come in all. */
  async waitFor(count: number): Promise<readonly Frame[]> {
    await this.#gateway.clock.runUntil(() => this.terminal().length >= count)
    return this.terminal()
  }

  terminal(): readonly Frame[] {
    return this.frames.filter(({ type }) => type !== 'progress' && type !== 'event' && type !== 'accepted')
  }

  async settle(): Promise<void> {
    await settle()
  }
}
