import { afterEach, expect, test } from 'vitest'
import type { EntryDraft } from '../../../src/core/entry.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import type { RunId, SessionId } from '../../../src/core/ids.ts'
import { systemClock } from '../../../src/platform/system.ts'
import type { PostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { openTestNode } from '../../support/postgres-storage.ts'
import { KEY, message, OLD, SessionScene } from '../../support/session-scene.ts'
import { freshSchema } from '../../support/test-database.ts'

const closing: { close(): Promise<void> }[] = []
const SAID: EntryDraft = { type: 'custom', customType: 'test.said', data: {} }

afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

async function twoNodes(): Promise<readonly [PostgresStorage, PostgresStorage]> {
  const schema = freshSchema()
  const nodes = [await openTestNode(schema), await openTestNode(schema)] as const
  for (const node of nodes) {
    closing.push(node)
    await node.start()
  }
  return nodes
}

/** The storage, as it is asked for `step` for the first time something else happens first. */
function interrupted(storage: PostgresStorage, step: 'exists' | 'open', meanwhile: () => Promise<void>): Storage {
  let isFirst = true
  const once = async (): Promise<void> => {
    if (!isFirst) return
    isFirst = false
    await meanwhile()
  }
  const wrap = <T extends object>(inner: T, name: keyof T, after: boolean): T =>
    new Proxy(inner, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          if (property === name && !after) await once()
          const result: unknown = await (value as (...all: unknown[]) => unknown).apply(target, given)
          if (property === name && after) await once()
          return result
        }
      },
    })
  return new Proxy<Storage>(storage, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (property === 'transcripts' && step === 'exists') return wrap(target.transcripts, 'exists', false)
      if (property === 'inbox' && step === 'open') return wrap(target.inbox, 'open', true)
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value
    },
  })
}

/** What another node does with a message that it accepts: it takes the session and writes, when it may. */
async function beginOn(storage: PostgresStorage, run: string): Promise<void> {
  await storage.inbox.accept(message(run), { fingerprint: run })
  const claim = await storage.ownership.claim(KEY)
  const record = await storage.sessions.get(KEY)
  if (claim === undefined || record === undefined) return
  const transcript = await storage.transcripts.open(record.sessionId, new AbortController().signal)
  await transcript.append([SAID], { owner: claim.owner }).catch(() => undefined)
  await transcript.close()
}

async function begunIn(storage: Storage, sessionId: SessionId): Promise<number> {
  const transcript = await storage.transcripts.open(sessionId, new AbortController().signal)
  const { length } = await transcript.branch()
  await transcript.close()
  return length
}

test.each(['exists', 'open'] as const)(
  'what another node accepts and begins while a reset looks things up (%s) stands in one conversation',
  async (step) => {
    const [a, b] = await twoNodes()
    const scene = new SessionScene(
      systemClock,
      interrupted(b, step, () => beginOn(a, 'late')),
    )
    await a.inbox.accept(message('first'), {
      fingerprint: 'first',
      session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
    })
    await a.transact([{ kind: 'answer', run: 'first' as RunId, content: { kind: 'complete', text: 'yes' } }])
    await scene.sessions.reset(KEY)
    const late = await b.inbox.find('late' as RunId)
    // The reset may have answered it; one that it leaves open must begin in the new conversation only.
    expect(late?.state === 'open' ? await begunIn(b, OLD) : 0).toBe(0)
    await scene.sessions.close()
  },
)

test('a reset is done again when the session was lost before it could be stored', async () => {
  const [a, b] = await twoNodes()
  let taken = 0
  const scene = new SessionScene(
    systemClock,
    interrupted(b, 'exists', async () => {
      taken++
      await a.ownership.takeOver(KEY)
    }),
  )
  await a.inbox.accept(message('first'), {
    fingerprint: 'first',
    session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
  })
  await scene.sessions.reset(KEY)
  expect(taken).toBe(1)
  expect((await b.inbox.find('first' as RunId))?.content).toEqual({ kind: 'cancelled', by: 'reset' })
  expect((await a.sessions.resolve(KEY))?.record.sessionId).not.toBe(OLD)
  await scene.sessions.close()
})

test('a turn of a message that began with /new is taken up again by the node that lost it', async () => {
  const [a] = await twoNodes()
  const scene = new SessionScene(systemClock, a)
  const asked = { ...message('asked'), text: '/new hello' }
  await a.inbox.accept(asked, {
    fingerprint: 'asked',
    session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
  })
  await a.transact([{ kind: 'reset-done', run: asked.run }])
  await scene.sessions.take(KEY)
  await scene.started('asked')
  scene.turn('asked').end.resolve({ kind: 'complete', text: 'hi' })
  await scene.sessions.close()
})

test('a /new that another node has done stops nothing that was accepted there after it', async () => {
  const [a, b] = await twoNodes()
  const scene = new SessionScene(systemClock, b)
  const asked = { ...message('asked'), text: '/new hello' }
  await a.inbox.accept(asked, {
    fingerprint: 'asked',
    session: { kind: 'begin-session', key: KEY, sessionId: OLD, owner: 'u', touched: true },
  })
  await a.transact([{ kind: 'reset-done', run: asked.run }])
  await a.inbox.accept(message('late'), { fingerprint: 'late' })
  // It came here before the other node had done it.
  scene.sessions.arrive(asked, { mine: true })
  await scene.started('asked')
  scene.turn('asked').end.resolve({ kind: 'complete', text: 'hi' })
  await scene.sessions.close()
  expect((await a.inbox.find('late' as RunId))?.state).toBe('open')
})

test('a message that another node answered while it waited here is not worked on any more', async () => {
  const [a, b] = await twoNodes()
  const scene = new SessionScene(systemClock, b)
  const accepted = await scene.store('late')
  if (accepted.kind !== 'fresh') throw new Error('it is new')
  const owner = await a.ownership.takeOver(KEY)
  const heard = new Promise<void>((resolve) => b.watch(({ kind }) => kind === 'session' && resolve()))
  const answer = { kind: 'answer', run: 'late' as RunId, content: { kind: 'cancelled', by: 'reset' } } as const
  await a.transact([answer, { kind: 'raise-epoch', key: KEY }], owner)
  await heard
  scene.sessions.arrive(message('late'), accepted)
  await scene.sessions.drain(new AbortController().signal)
  expect(scene.sessions.activity()).toMatchObject({ running: 0, queued: 0 })
  expect(scene.turns.size).toBe(0)
  await scene.sessions.close()
})

test('a command that was accepted is done when the database is back', async () => {
  const [a] = await twoNodes()
  let isAway = true
  const storage = new Proxy<Storage>(a, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (property !== 'ownership') return typeof value === 'function' ? (value as () => unknown).bind(target) : value
      const takeOver: Storage['ownership']['takeOver'] = async (key) => {
        if (!isAway) return a.ownership.takeOver(key)
        isAway = false
        throw new GatewayError('STORAGE_UNAVAILABLE', 'away', {})
      }
      return { ...a.ownership, takeOver }
    },
  })
  const scene = new SessionScene(systemClock, storage)
  await scene.store('first')
  const asked = { ...message('asked'), text: '/new hello' }
  await a.inbox.accept(asked, { fingerprint: 'asked' })
  scene.sessions.arrive(asked, { mine: true })
  await scene.started('asked')
  expect((await a.inbox.find('asked' as RunId))?.resetDone).toBe(true)
  expect((await a.sessions.get(KEY))?.sessionId).not.toBe(OLD)
  scene.turn('asked').end.resolve({ kind: 'complete', text: 'hi' })
  await scene.sessions.close()
})

test('a turn that the absence of the database ended is begun again', async () => {
  const [a] = await twoNodes()
  const scene = new SessionScene(systemClock, a)
  await scene.say('one')
  await scene.started('one')
  const first = scene.turn('one')
  first.end.reject(new GatewayError('STORAGE_UNAVAILABLE', 'away', {}))
  await expect.poll(() => scene.turn('one') === first).toBe(false)
  expect(scene.replies).toEqual([])
  scene.turn('one').end.resolve({ kind: 'complete', text: 'hi' })
  await expect.poll(() => scene.replies).toEqual(['one hi'])
  await scene.sessions.close()
})
