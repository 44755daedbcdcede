import { expect, test } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import type { EntryDraft } from '../../../src/core/entry.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import type { RunId } from '../../../src/core/ids.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { KEY, message, OLD, SessionScene } from '../../support/session-scene.ts'

const SAID: EntryDraft = { type: 'custom', customType: 'test.said', data: {} }
const UNSAID: EntryDraft = { type: 'custom', customType: 'test.unsaid', data: {} }

test.each(['cancel', 'reset', 'delete'] as const)(
  'after a %s the storage refuses what the old turn still writes, and the next turn does not wait for it',
  async (what) => {
    const scene = new SessionScene(new ManualClock())
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
    const scene = new SessionScene(new ManualClock())
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
  const scene = new SessionScene(new ManualClock())
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

test.each(['under way', 'left to the stop'])(
  'a conversation whose first words are %s when a reset comes is archived, and a delete takes it along',
  async (which) => {
    const scene = new SessionScene(new ManualClock())
    await scene.say('a')
    const { transcript } = scene.turn('a')
    if (which === 'under way') void transcript.append([SAID]).catch(() => undefined)
    else transcript.ifStopped(() => ({ drafts: [UNSAID], changes: [] }))
    await scene.sessions.reset(KEY)
    const [archived, ...others] = (await scene.storage.sessions.get(KEY))?.archived ?? []
    expect(archived?.sessionId).toBe(OLD)
    expect(others).toEqual([])
    await scene.sessions.delete(KEY)
    expect(await scene.storage.transcripts.exists(OLD)).toBe(false)
  },
)

test('a turn whose answer stands keeps it: a cancel stores it at once, the turn tidies up in its own right', async () => {
  const scene = new SessionScene(new ManualClock())
  await scene.say('a', 'b')
  const { transcript, context, end } = scene.turn('a')
  context.setAnswer({ kind: 'complete', text: 'done' })
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
  const clock = new ManualClock()
  const real = createMemoryStorage({ clock, ids: new SeededIds(1) })
  const full = (): Storage => {
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
  }
  const scene = new SessionScene(clock, full())
  await scene.say('a', 'b')
  isFull = true
  await expect(scene.sessions.reset(KEY)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
  await scene.say('c')
  // No turn of the session begins before the end of the old one is durable.
  expect([...scene.turns.keys()]).toEqual(['a'])
  isFull = false
  await clock.advance(5_000)
  expect(scene.replies).toEqual(['a cancelled by reset', 'b cancelled by reset'])
  expect([...scene.turns.keys()]).toEqual(['a', 'c'])
})

test('a newer message ends what came before it, whatever that does, and runs next', async () => {
  const scene = new SessionScene(new ManualClock())
  scene.queueMode = 'interrupt'
  await scene.say('a', 'b')
  expect(scene.replies).toEqual(['a cancelled by newer-message'])
  expect([...scene.turns.keys()]).toEqual(['a', 'b'])
  expect(scene.sessions.activity()).toMatchObject({ running: 1, queued: 0 })
})

test('a stop finds what was accepted before it in a session that is still being taken, and spares what comes later', async () => {
  const scene = new SessionScene(new ManualClock())
  await scene.store('a')
  scene.sessions.arrive(message('a'), { mine: false })
  const cancelling = scene.sessions.cancel(KEY)
  const over = scene.sessions.expect('b' as RunId)
  await scene.store('b')
  scene.sessions.arrive(message('b'), { mine: false })
  over()
  expect(await cancelling).toBe(1)
  await settle()
  expect(scene.replies).toEqual(['a cancelled by user'])
  expect([...scene.turns.keys()]).toEqual(['b'])
})

test('a message whose turn finds its session elsewhere while a stop ends it is answered once', async () => {
  const clock = new ManualClock()
  const real = createMemoryStorage({ clock, ids: new SeededIds(1) })
  const claimed = deferred<undefined>()
  const storage = new Proxy<Storage>(real, {
    get(target, property) {
      if (property === 'ownership') return { ...target.ownership, claim: () => claimed.promise }
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value
    },
  })
  const scene = new SessionScene(clock, storage)
  await scene.say('a', 'b')
  const resetting = scene.sessions.reset(KEY)
  claimed.resolve(undefined)
  await resetting
  expect(scene.replies).toEqual(['a cancelled by reset', 'b cancelled by reset'])
})

test('a shutdown that has time waits for a superseded turn; one without time does not', async () => {
  for (const hasTime of [true, false]) {
    const scene = new SessionScene(new ManualClock())
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

test('a stop does not send again what the message was answered with before', async () => {
  const scene = new SessionScene(new ManualClock())
  await scene.say('a')
  const { transcript } = scene.turn('a')
  transcript.ifStopped(() => ({ drafts: [UNSAID], changes: [] }))
  await scene.storage.transact([{ kind: 'answer', run: 'a' as RunId, content: { kind: 'complete', text: 'before' } }])
  await scene.sessions.cancel(KEY)
  expect(scene.replies).toEqual([])
  expect(await scene.types()).toEqual(['test.unsaid'])
})

test.each(['cancel', 'reset', 'delete'] as const)(
  'a %s that comes while a shutdown goes on means the message whose turn it interrupted too',
  async (what) => {
    const scene = new SessionScene(new ManualClock())
    await scene.say('a', 'b')
    const over = scene.sessions.drain(AbortSignal.abort())
    scene.turn('a').end.resolve(undefined)
    await over
    await scene.sessions[what](KEY)
    const by = what === 'cancel' ? 'user' : what
    expect(scene.replies.toSorted()).toEqual([`a cancelled by ${by}`, `b cancelled by ${by}`])
    expect(await scene.storage.inbox.openCount()).toBe(0)
  },
)

test('a message whose turn cannot get its place is not said to be cancelled by its user', async () => {
  const scene = new SessionScene(new ManualClock())
  scene.modelFailures.push(new Error('a row cannot be read'))
  await scene.say('a')
  expect(scene.replies).toEqual(['a error'])
  scene.modelFailures.push(new GatewayError('STORAGE_UNAVAILABLE', 'the database is away', {}))
  await scene.say('b', 'c')
  scene.turn('b').end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  scene.turn('c').end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  expect(scene.replies).toEqual(['a error', 'b done', 'c done'])
})

test('a message that has joined a turn is worked on, and a cancel of it ends the turn: they have one answer', async () => {
  const scene = new SessionScene(new ManualClock())
  scene.queueMode = 'steer'
  await scene.say('a')
  await scene.say('b')
  const { context } = scene.turn('a')
  const isWorkedOn = (run: string): boolean => scene.sessions.isWorkingOn(KEY, run as RunId)
  expect([isWorkedOn('a'), isWorkedOn('b')]).toEqual([true, false])
  expect(context.takeQueued().map(({ run }) => run)).toEqual(['b'])
  expect([isWorkedOn('a'), isWorkedOn('b')]).toEqual([true, true])
  await scene.say('c')
  expect(await scene.sessions.cancel(KEY, 'b' as RunId)).toBe(1)
  expect(scene.replies).toEqual(['a cancelled by user', 'b cancelled by user'])
  expect(context.signal.aborted).toBe(true)
  await settle()
  expect(scene.turns.has('c')).toBe(true)
})

test('a session that nothing runs or waits in is not held: memory does not grow with every session there was', async () => {
  const scene = new SessionScene(new ManualClock())
  const { ownership } = scene.storage
  await scene.say('a', 'b')
  const { owner } = scene.turn('a').context
  scene.turn('a').end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  expect(ownership.isCurrent(owner)).toBe(true)
  scene.turn('b').end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  expect(ownership.isCurrent(owner)).toBe(false)
  await scene.say('c')
  const next = scene.turn('c').context.owner
  expect(next.epoch).toBeGreaterThan(owner.epoch)
  await scene.sessions.delete(KEY)
  await settle()
  expect(ownership.isCurrent(next)).toBe(false)
  expect(scene.replies).toEqual(['a done', 'b done', 'c cancelled by delete'])
})
