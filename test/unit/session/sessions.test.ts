import { expect, test } from 'vitest'
import { deferred, type Deferred } from '../../../src/base/deferred.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { EntryDraft } from '../../../src/core/entry.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import type { RunId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage, Reply, ReplyContent } from '../../../src/core/inbound.ts'
import { phrasesIn } from '../../../src/core/phrases/phrases-in.ts'
import { Channels } from '../../../src/gateway/channels.ts'
import { Delivery } from '../../../src/gateway/delivery.ts'
import { SessionControl } from '../../../src/session/control.ts'
import { Sessions } from '../../../src/session/sessions.ts'
import { TurnTranscript } from '../../../src/session/turn-transcript.ts'
import type { QueueMode, TurnContext } from '../../../src/session/turn-work.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const KEY = 's' as SessionKey
const OLD = `sess_${'0'.repeat(32)}` as SessionId
const SAID: EntryDraft = { type: 'custom', customType: 'test.said', data: {} }
const UNSAID: EntryDraft = { type: 'custom', customType: 'test.unsaid', data: {} }

/** Real sessions, storage and delivery; turns end when the test says so, whatever they are told. */
class Scene {
  readonly clock = new ManualClock()
  readonly ids = new SeededIds(1)
  readonly storage: Storage = createMemoryStorage({ clock: this.clock, ids: this.ids })
  readonly replies: string[] = []
  readonly tidied: string[] = []
  readonly turns = new Map<string, Turn>()
  queueMode: QueueMode = 'queue'
  readonly sessions: Sessions

  constructor(storage?: (real: Storage) => Storage) {
    const { clock, ids } = this
    if (storage !== undefined) this.storage = storage(this.storage)
    const channels = new Channels()
    channels.add({
      name: 'test',
      start: async () => undefined,
      observe: () => undefined,
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
      outlet: new Delivery({ log: silentLog, storage: this.storage, channels }),
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
        firstModel: async () => ({ provider: 'scripted', model: 'scripted/model' }),
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
    return end.promise
  }

  async store(run: string): Promise<void> {
    await this.storage.inbox.accept(message(run), {
      fingerprint: run,
      session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
    })
  }

  async say(...runs: readonly string[]): Promise<void> {
    for (const run of runs) {
      await this.store(run)
      this.sessions.arrive(message(run), true)
    }
    await settle()
  }

  turn(run: string): Turn {
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

interface Turn {
  readonly context: TurnContext
  readonly transcript: TurnTranscript
  readonly end: Deferred<ReplyContent | undefined>
}

function message(run: string): AcceptedMessage {
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

test.each(['cancel', 'reset', 'delete'] as const)(
  'after a %s the storage refuses what the old turn still writes, and the next turn does not wait for it',
  async (what) => {
    const scene = new Scene()
    await scene.say('a', 'b')
    const { transcript, context } = scene.turn('a')
    await transcript.append([SAID])
    await scene.sessions[what](KEY)
    const by = what === 'cancel' ? 'user' : what
    expect(scene.replies).toEqual([`a cancelled by ${by}`, `b cancelled by ${by}`])
    expect(context.signal.aborted).toBe(true)
    await expect(transcript.append([SAID])).rejects.toMatchObject({ code: 'OWNERSHIP_LOST' })
    // Also a write that does not ask the turn: the epoch is what counts.
    const late = scene.storage.transact([{ kind: 'set-state', section: 't', key: 'k', value: 1 }], context.owner)
    await expect(late).rejects.toMatchObject({ code: 'OWNERSHIP_LOST' })
    await scene.say('c')
    scene.turn('c').end.resolve({ kind: 'complete', text: 'new' })
    await settle()
    expect(scene.replies.at(-1)).toBe('c new')
    scene.turn('a').end.resolve({ kind: 'complete', text: 'too late' })
    await settle()
    expect(scene.replies).toHaveLength(3)
  },
)

test('a stop writes what the turn had not stored, in its own transaction', async () => {
  for (const what of ['cancel', 'reset'] as const) {
    const scene = new Scene()
    await scene.say('a')
    const { transcript } = scene.turn('a')
    await transcript.append([SAID])
    transcript.ifStopped(() => ({ drafts: [UNSAID], changes: [] }))
    await scene.sessions[what](KEY)
    expect(await scene.types(), what).toEqual(['test.said', 'test.unsaid'])
    expect(scene.tidied, what).toEqual(what === 'cancel' ? ['a user'] : [])
    expect((await scene.storage.sessions.get(KEY))?.sessionId === OLD, what).toBe(what === 'cancel')
  }
})

test('an append that is under way when the stop comes is waited for, and what is unfinished is asked for after it', async () => {
  const scene = new Scene()
  await scene.say('a')
  const { transcript } = scene.turn('a')
  transcript.ifStopped(() => ({ drafts: [UNSAID], changes: [] }))
  const appended = transcript.append([SAID]).then(() => {
    transcript.ifStopped(() => ({ drafts: [], changes: [] }))
  })
  await scene.sessions.cancel(KEY)
  await appended
  expect(await scene.types()).toEqual(['test.said'])
})

test('a turn whose answer stands keeps it: a cancel stores it at once, the turn tidies up in its own right', async () => {
  const scene = new Scene()
  await scene.say('a', 'b')
  const { transcript, context, end } = scene.turn('a')
  context.tellAnswer({ kind: 'complete', text: 'done' })
  expect(await scene.sessions.cancel(KEY)).toBe(2)
  expect(scene.replies).toEqual(['a done', 'b cancelled by user'])
  await transcript.append([SAID])
  await scene.say('c')
  expect(scene.turns.has('c')).toBe(false)
  end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  expect(scene.turns.has('c')).toBe(true)
  expect(scene.replies).toHaveLength(2)
})

test('a stop that cannot be stored fails at once, and what it stopped is answered when there is space', async () => {
  let isFull = false
  const scene = new Scene((real) => {
    const transact: Storage['transact'] = async (changes, owner) => {
      if (isFull) throw new GatewayError('STORAGE_FULL', 'no space', {})
      return real.transact(changes, owner)
    }
    const { sessions, inbox, outbox, usage, state, ownership, transcripts } = real
    const rest = { watch: () => () => undefined, tell: () => undefined, start: async () => undefined }
    return {
      sessions,
      inbox,
      outbox,
      usage,
      state,
      ownership,
      transcripts,
      transact,
      close: () => real.close(),
      ...rest,
    }
  })
  await scene.say('a', 'b')
  isFull = true
  await expect(scene.sessions.reset(KEY)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
  await scene.say('c')
  // No turn of the session begins before the end of the old one is durable.
  expect([...scene.turns.keys()]).toEqual(['a'])
  isFull = false
  await scene.clock.advance(5_000)
  expect(scene.replies).toEqual(['a cancelled by reset', 'b cancelled by reset'])
  expect([...scene.turns.keys()]).toEqual(['a', 'c'])
})

test('a newer message ends what came before it, whatever that does, and runs next', async () => {
  const scene = new Scene()
  scene.queueMode = 'interrupt'
  await scene.say('a', 'b')
  expect(scene.replies).toEqual(['a cancelled by newer-message'])
  expect([...scene.turns.keys()]).toEqual(['a', 'b'])
  expect(scene.sessions.activity()).toMatchObject({ running: 1, queued: 0 })
})

test('a stop finds what was accepted before it in a session that is still being taken, and spares what comes later', async () => {
  const scene = new Scene()
  await scene.store('a')
  scene.sessions.arrive(message('a'), false)
  const cancelling = scene.sessions.cancel(KEY)
  await scene.store('b')
  scene.sessions.arrive(message('b'), false)
  expect(await cancelling).toBe(1)
  await settle()
  expect(scene.replies).toEqual(['a cancelled by user'])
  expect([...scene.turns.keys()]).toEqual(['b'])
})

test('a shutdown that has time waits for a superseded turn; one without time does not', async () => {
  for (const hasTime of [true, false]) {
    const scene = new Scene()
    await scene.say('a')
    await scene.sessions.cancel(KEY)
    const deadline = new AbortController()
    if (!hasTime) deadline.abort()
    let isDrained = false
    const draining = scene.sessions.drain(deadline.signal).then(() => (isDrained = true))
    await settle()
    expect(isDrained).toBe(!hasTime)
    scene.turn('a').end.resolve(undefined)
    await draining
    await scene.sessions.close()
  }
})
