import { phrasesIn } from '../../src/core/phrases/phrases-in.ts'
import { sleep } from '../../src/base/clock.ts'
import { openJournal, type Journal } from '../../src/storage/files/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Channel, Intake } from '../../src/channel/channel.ts'
import { WebhookChannel, type ConnectQuery } from '../../src/channel/webhook/channel.ts'
import type { AcceptedMessage, ReplyContent } from '../../src/core/inbound.ts'
import { Delivery } from '../../src/gateway/delivery.ts'
import { Channels } from '../../src/gateway/channels.ts'
import { Gateway } from '../../src/gateway/gateway.ts'
import { type DeliveryLimits, DEFAULT_MESSAGE_LIMITS } from '../../src/storage/local/run-table.ts'
import { Sessions } from '../../src/session/sessions.ts'
import type { QueueMode, TurnContext } from '../../src/session/turn-work.ts'
import { SessionControl } from '../../src/session/control.ts'
import type { TurnLimits } from '../../src/session/turn-slots.ts'
import { LocalStorage } from '../../src/storage/local/local-storage.ts'
import { linkedSockets, type LinkedSocket } from '../../src/testing/linked-sockets.ts'
import type { ManualClock } from '../../src/testing/manual-clock.ts'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { TranscriptStore } from '../../src/transcript/store.ts'

export interface CoreOptions {
  readonly clock: ManualClock
  readonly files: MemoryFiles
  readonly seed: number
  readonly queueMode?: QueueMode
  readonly limits?: Partial<DeliveryLimits>
  readonly gatewayLimits?: {
    readonly queuedPerSession: number
    readonly queuedTotal: number
    readonly turns: TurnLimits
    readonly list: number
    readonly sessions: number
    readonly messageAttempts: number
  }
  /** Works on a message instead of the agent that only waits. */
  readonly converse?: (message: AcceptedMessage, context: TurnContext) => Promise<ReplyContent>
  /** How long a message is worked on. */
  readonly workMs?: (message: AcceptedMessage) => number
  /** As a channel that takes messages before all the others are up. */
  readonly duringStart?: (intake: Intake) => Promise<void>
  readonly onTurn?: (message: AcceptedMessage, what: 'start' | 'end') => void
  readonly onPoisoned?: (message: AcceptedMessage) => void
}

/** Channel, queue, delivery and journal as they are, with an agent that only waits: thousands of runs in a test. */
export class GatewayCore {
  readonly gateway: Gateway
  readonly sessions: Sessions
  readonly channel: WebhookChannel
  readonly delivery: Delivery
  readonly storage: LocalStorage
  readonly journal: Journal
  readonly #clock: ManualClock

  private constructor(
    parts: Pick<GatewayCore, 'gateway' | 'sessions' | 'channel' | 'delivery' | 'storage' | 'journal'>,
    clock: ManualClock,
  ) {
    this.gateway = parts.gateway
    this.sessions = parts.sessions
    this.channel = parts.channel
    this.delivery = parts.delivery
    this.storage = parts.storage
    this.journal = parts.journal
    this.#clock = clock
  }

  static async open(options: CoreOptions): Promise<GatewayCore> {
    const { clock, files, workMs = () => 10, onTurn } = options
    const ids = new SeededIds(options.seed)
    const channel = new WebhookChannel({
      fileUrl: (id) => `/api/files/${id}`,
      files: { attach: async () => [] },
      clock,
      ids,
      log: silentLog,
      maxFrameBytes: 1024 * 1024,
      maxConnections: 2_000,
      maxAccounts: 10_000,
      limits: {
        framesPerSecond: 1e6,
        frameBurst: 1e6,
        framesInWork: 256,
        replyBufferBytes: 1024 * 1024,
        unconfirmed: 1_000,
        progressEveryMs: 50,
      },
      heartbeat: { pingMs: 30_000, deadAfterMs: 90_000 },
    })
    const storage = new LocalStorage({
      clock,
      log: silentLog,
      limits: { ...DEFAULT_MESSAGE_LIMITS, rememberedAccounts: 1_000, ...options.limits },
    })
    const channels = new Channels()
    const delivery = new Delivery({ clock, log: silentLog, storage, channels })
    const journal = await openJournal({
      ids: new SeededIds(),
      files,
      directory: '/journal',
      topics: storage.topics,
      log: silentLog,
    })
    storage.attach(journal, noTranscripts)
    const control = new SessionControl({
      clock,
      ids,
      storage,
      log: silentLog,
      maxArchivedPerSession: 10,
      onEnding: async () => undefined,
    })
    const {
      turns: turnLimits,
      messageAttempts,
      ...limits
    } = options.gatewayLimits ?? {
      queuedPerSession: 100,
      queuedTotal: 10_000,
      list: 10_000,
      sessions: 100_000,
      messageAttempts: 2,
      turns: { total: 4, perProvider: 4, perAccount: 4 },
    }
    const sessions = new Sessions({
      clock,
      ids,
      log: silentLog,
      storage,
      outlet: delivery,
      control,
      limits: { turns: turnLimits, messageAttempts },
      queueMode: () => options.queueMode ?? 'queue',
      metrics: { turnEnded: () => undefined, happened: () => undefined },
      turns: {
        firstModel: async () => ({ provider: 'scripted', model: 'scripted/model' }),
        async run(message, context) {
          onTurn?.(message, 'start')
          try {
            if (options.converse !== undefined) return await options.converse(message, context)
            await sleep(clock, workMs(message), context.signal)
            return { kind: 'complete', text: `answer to ${message.text}` }
          } finally {
            onTurn?.(message, 'end')
          }
        },
        tidyUp: async () => undefined,
        recordPoisoned: async (message) => options.onPoisoned?.(message),
      },
      commands: {
        phrases: async () => phrasesIn('en'),
        status: async () => 'fine',
        model: async () => 'none',
        approve: async () => 'none',
      },
    })
    const gateway = new Gateway({
      clock,
      ids,
      storage,
      channels,
      sessions,
      delivery,
      approvals: { remind: () => undefined },
      route: { agent: 'main', scope: 'per-sender', preserveCase: false },
      limits,
      metrics: { messageAccepted: () => undefined },
    })
    const early: Channel = {
      name: 'early',
      start: async (intake) => options.duringStart?.(intake),
      observe: () => undefined,
      deliver: async () => 'waiting',
      status: () => ({}),
      drain: () => undefined,
      close: async () => undefined,
    }
    for (const each of [channel, early]) channels.add(each)
    await gateway.open()
    return new GatewayCore({ gateway, sessions, channel, delivery, storage, journal }, clock)
  }

  connect(query: ConnectQuery): LinkedSocket {
    const [client, server] = linkedSockets({ clock: this.#clock })
    this.channel.connect(server, query)
    return client
  }

  async close(): Promise<void> {
    const closing = (async () => {
      await this.gateway.drain(AbortSignal.abort())
      await this.gateway.close()
      await this.storage.close()
      await this.journal.close()
    })()
    let done = false
    void closing.finally(() => {
      done = true
    })
    await this.#clock.runUntil(() => done)
  }
}

const noTranscripts: TranscriptStore = {
  open: () => Promise.reject(new Error('no transcript is needed here')),
  exists: async () => false,
  archive: async () => undefined,
  restore: async () => undefined,
  remove: async () => undefined,
  close: async () => undefined,
}

export type CoreFrame = Record<string, unknown>

/** A client of a `GatewayCore`: frames out as objects, frames in remembered. */
export class CoreClient {
  readonly socket: LinkedSocket
  readonly frames: CoreFrame[] = []
  closed: number | undefined

  constructor(core: GatewayCore, query: ConnectQuery = {}) {
    this.socket = core.connect(query)
    this.socket.listen({
      onText: (text) => this.frames.push(JSON.parse(text) as CoreFrame),
      onPong: () => undefined,
      onClose: (code) => {
        this.closed = code
      },
    })
  }

  async send(...frames: readonly unknown[]): Promise<void> {
    for (const frame of frames) await this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  terminal(): readonly CoreFrame[] {
    return this.frames.filter(({ type }) => type === 'complete' || type === 'error')
  }
}
