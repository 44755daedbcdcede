import type { Files } from '../../src/base/files.ts'
import { openJournal, type Journal } from '../../src/storage/files/journal.ts'
import { silentLog, type Log, type LogFacts } from '../../src/base/log.ts'
import type { AgentCredentials } from '../../src/simulator/xiaoyi/handshake.ts'
import type { FetchMedia } from '../../src/channel/xiaoyi/media.ts'
import { XiaoyiChannel, type Cleared, type ReceivedData } from '../../src/channel/xiaoyi/channel.ts'
import { type XiaoyiConfig, toXiaoyiSettings } from '../../src/channel/xiaoyi/settings.ts'
import { XiaoyiState } from '../../src/channel/xiaoyi/state.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { PhoneTask, Rule } from '../../src/simulator/xiaoyi/phone-task.ts'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import type { Switches } from '../../src/simulator/xiaoyi/switches.ts'
import { ManualClock, settle } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { ScriptedGateway } from './scripted-gateway.ts'
import { LocalStorage } from '../../src/storage/local/local-storage.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../src/storage/local/message-rows.ts'
import { createMemoryStore } from '../../src/transcript/memory-store.ts'

export const AGENT = { ak: 'ak-canary', sk: 'sk-canary', agentId: 'agent-1' } as const

export interface World {
  readonly clock: ManualClock
  readonly network: MemoryNetwork
  readonly simulator: XiaoyiSimulator
  readonly files: MemoryFiles
  readonly gateway: ScriptedGateway
  readonly channel: XiaoyiChannel
  readonly logs: string[]
  readonly cleared: Cleared[]
  readonly received: ReceivedData[]
  close(): Promise<void>
}

export interface WorldOptions {
  /** What the simulated service expects; its clients use `AGENT`. */
  readonly agent?: AgentCredentials
  readonly config?: Partial<XiaoyiConfig>
  readonly switches?: Partial<Switches>
  readonly endpoints?: number
  readonly tls?: boolean
  readonly push?: boolean
  readonly files?: MemoryFiles
  readonly clock?: ManualClock
  readonly network?: MemoryNetwork
  readonly simulator?: XiaoyiSimulator
  /** Files come through the guarded fetch, as in the running channel. */
  readonly realFetch?: boolean
  readonly fetchMedia?: FetchMedia
  /** Start the channel; true unless said otherwise. */
  readonly start?: boolean
}

export const ENDPOINTS = ['127.0.0.1:9001', '127.0.0.1:9002'] as const

/** The channel against the simulator, everything in memory, on one manual clock. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const clock = options.clock ?? new ManualClock()
  const network = options.network ?? new MemoryNetwork(clock)
  const simulator = options.simulator ?? (await openSimulator(options, clock, network))
  const files = options.files ?? new MemoryFiles({ now: () => clock.now() })
  const logs: string[] = []
  const cleared: World['cleared'] = []
  const received: World['received'] = []
  const gateway = new ScriptedGateway(clock, () => channel)
  const channel: XiaoyiChannel = await XiaoyiChannel.open({
    settings: toXiaoyiSettings({
      ...AGENT,
      servers: simulator.urls.map((url) => ({ url })),
      ...(options.push === true ? { push: { url: simulator.pushUrl } } : {}),
      ...options.config,
    }),
    clock,
    // Another process draws other ids.
    ids: new SeededIds(options.simulator === undefined ? 7 : 8),
    log: recordingLog(logs),
    files,
    home: '/home',
    state: await openState(files),
    dialer: network,
    http: network,
    ...(options.realFetch === true ? {} : { fetchMedia: options.fetchMedia ?? fetchFrom(network) }),
    keyFor: (route) => gateway.keyFor(route),
    onClear: async (event) => void cleared.push(event),
    onData: async (event) => void received.push(event),
  })
  if (options.start !== false) await channel.start(gateway)
  await settle()
  const close = async (): Promise<void> => {
    const closing = channel.close()
    await clock.advance(3_000)
    await closing
    gateway.stop()
    await simulator.close()
    await settle()
  }
  return { clock, network, simulator, files, gateway, channel, logs, cleared, received, close }
}

/** A storage of which only the state of channels is used. */
export async function openChannelStorage(
  files: Files,
): Promise<{ readonly storage: LocalStorage; readonly journal: Journal }> {
  const storage = new LocalStorage({ clock: new ManualClock(), log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/home/journal',
    topics: storage.topics,
    log: silentLog,
  })
  storage.attach(journal, createMemoryStore({ clock: new ManualClock(), ids: new SeededIds(1) }))
  return { storage, journal }
}

/** What a restart knows, from the journal of these files. Whoever used it before was killed. */
export async function openState(files: Files): Promise<XiaoyiState> {
  const state = new XiaoyiState()
  await state.load((await openChannelStorage(files)).storage)
  return state
}

function openSimulator(options: WorldOptions, clock: ManualClock, network: MemoryNetwork): Promise<XiaoyiSimulator> {
  const tls = options.tls === undefined ? {} : { tls: options.tls }
  const all = [9001, 9002, 9003].map((port) => ({ host: '127.0.0.1', port, ...tls }))
  return createXiaoyiSimulator({
    clock,
    ids: new SeededIds(11),
    servers: network,
    agent: options.agent ?? AGENT,
    endpoints: all.slice(0, options.endpoints ?? 2),
    ...(options.switches === undefined ? {} : { switches: options.switches }),
  })
}

/** Stands in for the guarded fetch: the caps, without the address rules. */
export function fetchFrom(network: MemoryNetwork): FetchMedia {
  return async (url, { maxBytes }, signal) => {
    const request = { method: 'GET', url, headers: {}, connectTimeoutMs: 1, firstByteTimeoutMs: 1, idleTimeoutMs: 1 }
    const response = await network.request(request, signal)
    if (response.status !== 200) throw new GatewayError('FIELD_INVALID', 'the file is not there')
    const pieces: Uint8Array[] = []
    let bytes = 0
    for await (const piece of response.body) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > maxBytes) throw new GatewayError('FIELD_INVALID', 'the file is too large')
    }
    return { bytes: Buffer.concat(pieces), mimeType: response.headers.get('content-type') ?? '' }
  }
}

export function recordingLog(lines: string[], facts: LogFacts = {}): Log {
  const write =
    (level: string) =>
    (message: string, more: LogFacts = {}): void =>
      void lines.push(JSON.stringify({ level, message, ...facts, ...more }))
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (more) => recordingLog(lines, { ...facts, ...more }),
  }
}

/** Opens a world for one test and expects it to end clean: no timer left, no rule of the phone broken. */
export async function inWorld(
  options: WorldOptions,
  body: (world: World) => Promise<void>,
  allowed: readonly Rule[] = [],
): Promise<void> {
  const world = await openWorld(options)
  try {
    await body(world)
  } finally {
    await world.close()
  }
  const broken = world.simulator.phone.violations.filter(({ rule }) => !allowed.includes(rule))
  if (broken.length > 0) throw new Error(`rules broken: ${JSON.stringify(broken)}`)
  if (world.clock.pending > 0) throw new Error(`${world.clock.pending} timers were left behind`)
}

/** Frames of a task in the short form tests compare. */
export function framesOf(task: PhoneTask): string[] {
  return task.frames.map((frame) => {
    const flags = (['append', 'lastChunk', 'final'] as const).filter((name) => frame[name] === true)
    const content = frame.state ?? frame.text ?? frame.reasoning ?? ''
    return [frame.kind.replace('-update', ''), JSON.stringify(content), ...flags].join(' ')
  })
}
