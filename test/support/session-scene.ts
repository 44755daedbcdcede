import { deferred, type Deferred } from '../../src/base/async.ts'
import type { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { RunId, SessionId, SessionKey } from '../../src/core/ids.ts'
import type { AcceptedMessage, Reply, ReplyContent } from '../../src/core/inbound.ts'
import { phrasesIn } from '../../src/core/phrases/phrases-in.ts'
import { Channels, Delivery } from '../../src/gateway/delivery.ts'
import { SessionControl } from '../../src/session/control.ts'
import { Sessions } from '../../src/session/sessions.ts'
import { TurnTranscript } from '../../src/session/turn-transcript.ts'
import type { QueueMode, TurnContext } from '../../src/session/turn-work.ts'
import { createMemoryStorage } from '../../src/storage/memory/memory-storage.ts'
import type { Accepted, Storage } from '../../src/storage/storage.ts'
import { settle } from '../../src/testing/manual-clock.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

export const KEY = 's' as SessionKey
export const OLD = `sess_${'0'.repeat(32)}` as SessionId
/** Real sessions, storage and delivery; turns end when the test says so, whatever they are told. */
export class SessionScene {
  readonly clock: Clock
  readonly ids = new SeededIds(1)
  readonly storage: Storage
  readonly replies: string[] = []
  /** Events that reached the channel. */
  readonly shown: string[] = []
  readonly tidied: string[] = []
  readonly turns = new Map<string, SceneTurn>()
  queueMode: QueueMode = 'queue'
  /** Why the next looks for the model that is to answer fail. */
  readonly modelFailures: Error[] = []
  readonly sessions: Sessions
  readonly #starts = new Map<string, Deferred<undefined>>()

  constructor(clock: Clock, storage?: Storage) {
    const { ids } = this
    this.clock = clock
    this.storage = storage ?? createMemoryStorage({ clock, ids })
    const channels = new Channels()
    channels.add({
      name: 'test',
      start: async () => undefined,
      observe: ({ run, event }) => void this.shown.push(`${run} ${event.type}`),
      deliver: async (reply) => {
        this.replies.push(`${reply.run} ${describe(reply)}`)
        return 'delivered'
      },
      status: () => ({}),
      drain: () => undefined,
      close: async () => undefined,
    })
    this.sessions = new Sessions({
      clock,
      ids,
      log: silentLog,
      storage: this.storage,
      outlet: new Delivery({ clock, log: silentLog, storage: this.storage, channels }),
      control: new SessionControl({
        clock,
        ids,
        storage: this.storage,
        log: silentLog,
        maxArchivedPerSession: 10,
        onEnding: () => undefined,
      }),
      limits: { turns: { total: 4, perProvider: 4, perAccount: 4 }, messageAttempts: 2 },
      queueMode: () => this.queueMode,
      metrics: { turnEnded: () => undefined, happened: () => undefined },
      commands: {
        phrases: async () => phrasesIn('en'),
        status: async () => 'fine',
        model: async () => 'none',
        approve: async () => 'none',
      },
      turns: {
        firstModel: async () => {
          const failure = this.modelFailures.shift()
          if (failure !== undefined) throw failure
          return { provider: 'scripted', model: 'scripted/model' }
        },
        run: (message, context) => this.#run(message, context),
        tidyUp: async ({ run }, by) => void this.tidied.push(`${run} ${by}`),
        recordPoisoned: async () => undefined,
      },
    })
  }

  async #run({ run, key }: AcceptedMessage, context: TurnContext): Promise<ReplyContent | undefined> {
    const { clock, storage } = this
    const { sessionId } = (await storage.sessions.get(key)) ?? { sessionId: OLD }
    const opened = await storage.transcripts.open(sessionId, context.signal)
    const deps = { clock, log: silentLog, key, signal: context.signal, owner: context.owner }
    const transcript = new TurnTranscript(opened, deps)
    context.writesTo(transcript)
    const end = deferred<ReplyContent | undefined>()
    this.turns.set(run, { context, transcript, end })
    this.#startOf(run).resolve(undefined)
    return end.promise
  }

  /** Resolves when the turn of this message has begun. */
  async started(run: string): Promise<void> {
    await this.#startOf(run).promise
  }

  #startOf(run: string): Deferred<undefined> {
    const start = this.#starts.get(run) ?? deferred<undefined>()
    this.#starts.set(run, start)
    return start
  }

  async store(run: string): Promise<Accepted> {
    return this.storage.inbox.accept(message(run), {
      fingerprint: run,
      session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
    })
  }

  async say(...runs: readonly string[]): Promise<void> {
    for (const run of runs) {
      const over = this.sessions.expect(run as RunId)
      const accepted = await this.store(run)
      if (accepted.kind === 'fresh') this.sessions.arrive(message(run), accepted)
      over()
    }
    await settle()
  }

  turn(run: string): SceneTurn {
    const turn = this.turns.get(run)
    if (turn === undefined) throw new Error(`${run} was not started`)
    return turn
  }

  async types(sessionId: SessionId = OLD): Promise<readonly unknown[]> {
    const transcript = await this.storage.transcripts.open(sessionId, new AbortController().signal)
    const entries = await transcript.branch()
    await transcript.close()
    return entries.map((entry) => (entry.type === 'custom' ? entry.customType : entry.type))
  }
}

export interface SceneTurn {
  readonly context: TurnContext
  readonly transcript: TurnTranscript
  readonly end: Deferred<ReplyContent | undefined>
}

export function message(run: string): AcceptedMessage {
  const about = { channel: 'test', account: 'u', attachments: [], route: {}, replyTo: {} }
  return { run: run as RunId, key: KEY, acceptedAt: 0, messageId: run, text: run, ...about }
}

function describe({ content }: Reply): string {
  return content.kind === 'complete'
    ? content.text
    : content.kind === 'cancelled'
      ? `cancelled by ${content.by}`
      : 'error'
}
