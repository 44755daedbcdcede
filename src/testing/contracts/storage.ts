import assert from 'node:assert/strict'
import type { Change } from '../../core/change.ts'
import type { RunId, SessionId, SessionKey } from '../../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../../core/inbound.ts'
import { NOTHING_SPENT } from '../../core/spent.ts'
import type { Acceptance, Notice, Storage } from '../../storage/storage.ts'
import type { ContractRunner } from './runner.ts'

/** A storage and how to open it again, for the suite. */
export interface StorageUnderTest {
  readonly storage: Storage
  /** The same data after the first was closed. Leave out when nothing outlives the storage. */
  reopen?(): Promise<Storage>
  close?(): Promise<void>
  /** The wall clock that the storage compares times with. */
  now?(): number
}

const KEY = 'agent:main:one' as SessionKey
const OTHER = 'agent:main:two' as SessionKey
const DONE: ReplyContent = { kind: 'complete', text: 'done' }
const HOSTILE = 'nul \u0000, half \ud800, mark \uf8ff0000, 界 😀'

/** Of the messages of the test under way. */
let acceptedAt = 0

/** What every `Storage` promises. Run it over your own: `describeStorage('mine', vitest, create)`. */
export function describeStorage(
  name: string,
  { describe, it }: ContractRunner,
  create: () => Promise<StorageUnderTest>,
): void {
  const using =
    (body: (storage: Storage, again: () => Promise<Storage>) => Promise<void>): (() => Promise<void>) =>
    async () => {
      const under = await create()
      let storage = under.storage
      acceptedAt = under.now?.() ?? Date.now()
      const again = async (): Promise<Storage> => {
        if (under.reopen === undefined) return storage
        await storage.close()
        storage = await under.reopen()
        await storage.start()
        return storage
      }
      await storage.start()
      try {
        await body(storage, again)
      } finally {
        await storage.close()
        await under.close?.()
      }
    }

  describe(`${name}: sessions`, () => {
    it(
      'begins a session once, and later messages only change its row',
      using(async (storage, again) => {
        await storage.transact([begin(KEY, 'sess_a', 'ann', { title: 'first' })])
        await storage.transact([begin(KEY, 'sess_b', 'bob', { preview: 'later' })])
        const row = await (await again()).sessions.get(KEY)
        assert.equal(row?.sessionId, 'sess_a')
        assert.equal(row?.owner, 'ann')
        assert.equal(row?.title, 'first')
        assert.equal(row?.preview, 'later')
      }),
    )
    it(
      'sets defaults where nothing is, adds to counts, removes fields, and changes nothing without a row',
      using(async (storage) => {
        await storage.transact([begin(KEY, 'sess_a', 'ann', { title: 'mine', contextTokens: 3 })])
        await storage.transact([
          {
            kind: 'change-session',
            key: KEY,
            defaults: { title: 'other', preview: 'p' },
            added: { messages: 2 },
            removed: ['contextTokens'],
          },
          { kind: 'change-session', key: KEY, added: { messages: 3 } },
          { kind: 'change-session', key: OTHER, fields: { title: 'nothing' } },
        ])
        const row = await storage.sessions.get(KEY)
        assert.deepEqual([row?.title, row?.preview, row?.messages, row?.contextTokens], ['mine', 'p', 5, undefined])
        assert.equal(await storage.sessions.get(OTHER), undefined)
        assert.equal(await storage.sessions.count(), 1)
      }),
    )
    it(
      'keeps every text of a row as it was given',
      using(async (storage, again) => {
        const key = `agent:main:${HOSTILE}` as SessionKey
        await storage.transact([
          begin(key, 'sess_a', HOSTILE, { title: HOSTILE, foreign: { [HOSTILE]: [HOSTILE, 1.5] } }),
        ])
        const row = await (await again()).sessions.get(key)
        assert.deepEqual([row?.title, row?.owner, row?.['foreign']], [HOSTILE, HOSTILE, { [HOSTILE]: [HOSTILE, 1.5] }])
      }),
    )
    it(
      'finds a session by its key in any case, and by its id',
      using(async (storage) => {
        await storage.transact([begin('Agent:Main:X' as SessionKey, 'sess_a', 'ann')])
        assert.equal((await storage.sessions.resolve(' agent:main:x '))?.key, 'Agent:Main:X')
        assert.equal((await storage.sessions.byId('sess_a'))?.key, 'Agent:Main:X')
        assert.equal(await storage.sessions.byId('sess_z'), undefined)
      }),
    )
    it(
      'lists the newest change first, page by page, within a query',
      using(async (storage) => {
        for (const n of [1, 2, 3, 4, 5])
          await storage.transact([begin(`k${n}` as SessionKey, `sess_${n}`, n % 2 === 0 ? 'even' : 'odd')])
        await storage.transact([{ kind: 'change-session', key: 'k2' as SessionKey, touched: true }])
        const first = await storage.sessions.list({ limit: 2 })
        assert.deepEqual([first.sessions.map(({ key }) => key), first.total], [['k2', 'k5'], 5])
        const cursor = first.nextCursor ?? ''
        const next = await storage.sessions.list({ limit: 9, cursor })
        assert.deepEqual([next.sessions.map(({ key }) => key), next.nextCursor], [['k4', 'k3', 'k1'], undefined])
        const own = await storage.sessions.list({ limit: 9, caller: { owner: 'even', sees: 'own' } })
        assert.deepEqual([own.sessions.map(({ key }) => key), own.total], [['k2', 'k4'], 2])
        assert.equal((await storage.sessions.list({ limit: 9, prefix: 'k3' })).total, 1)
        await assert.rejects(storage.sessions.list({ limit: 1, cursor: 'nonsense' }), { code: 'FIELD_INVALID' })
      }),
    )
    it(
      'deletes a row with its answered messages, and keeps what is open',
      using(async (storage) => {
        await accept(storage, message('run_a'), { session: begin(KEY, 'sess_a', 'ann') })
        await storage.transact([{ kind: 'answer', run: run('run_a'), content: DONE }])
        await accept(storage, message('run_b'))
        await storage.transact([{ kind: 'delete-session', key: KEY }])
        assert.equal(await storage.sessions.get(KEY), undefined)
        assert.equal(await storage.inbox.find(run('run_a')), undefined)
        assert.equal((await storage.inbox.find(run('run_b')))?.state, 'open')
      }),
    )
  })

  describe(`${name}: inbox`, () => {
    it(
      'stores a message whole until it is answered, in the order of acceptance',
      using(async (storage, again) => {
        const first = { ...message('run_a'), text: HOSTILE, replyTo: { at: HOSTILE } }
        assert.deepEqual(await accept(storage, first, { session: begin(KEY, 'sess_a', 'ann') }), { kind: 'fresh' })
        await accept(storage, message('run_b'))
        const open = await (await again()).inbox.open({ key: KEY })
        assert.deepEqual(
          open.map(({ message: stored }) => stored),
          [first, message('run_b')],
        )
      }),
    )
    it(
      'tells a copy from a new message, also when they come at once',
      using(async (storage, again) => {
        const results = await Promise.all(
          ['run_a', 'run_b', 'run_c'].map((id) => accept(storage, message(id), { fingerprint: 'same' })),
        )
        assert.deepEqual(results.map(({ kind }) => kind).toSorted(), ['duplicate', 'duplicate', 'fresh'])
        const later = await again()
        const recalled = await later.inbox.recall({ fingerprint: 'same' })
        assert.equal(recalled?.kind, 'duplicate')
        assert.equal(await later.inbox.recall({ fingerprint: 'other' }), undefined)
        assert.equal(await later.inbox.openCount(), 1)
      }),
    )
    it(
      'refuses another request under a known key',
      using(async (storage) => {
        const key = JSON.stringify(['webhook', 'ann', 'k'])
        const ask = (id: string, digest: string): ReturnType<typeof accept> =>
          accept(storage, { ...message(id), idempotency: { key: 'k', digest } }, { request: { key, digest } })
        assert.equal((await ask('run_a', 'one')).kind, 'fresh')
        assert.equal((await ask('run_b', 'one')).kind, 'duplicate')
        assert.equal((await ask('run_c', 'two')).kind, 'conflict')
      }),
    )
    it(
      'lets a message join only the rows it may join',
      using(async (storage) => {
        await storage.transact([begin(KEY, 'sess_a', 'ann')])
        const joins = (id: string, rows: Acceptance['joins']): ReturnType<typeof accept> =>
          accept(storage, message(id), rows === undefined ? {} : { joins: rows })
        assert.equal((await joins('run_a', { rows: 'none' })).kind, 'taken')
        assert.equal((await joins('run_b', { rows: 'own', owner: 'bob' })).kind, 'taken')
        assert.equal((await joins('run_c', { rows: 'own', owner: 'ann' })).kind, 'fresh')
        assert.equal((await joins('run_d', { rows: 'any' })).kind, 'fresh')
        assert.equal(await storage.inbox.openCount(), 2)
      }),
    )
  })

  describe(`${name}: outbox`, () => {
    it(
      'gives a message one answer, with a number that rises',
      using(async (storage, again) => {
        for (const id of ['run_a', 'run_b']) await accept(storage, message(id))
        const answer = (id: string, text: string): Change => ({
          kind: 'answer',
          run: run(id),
          content: { kind: 'complete', text },
        })
        const one = await storage.transact([answer('run_a', 'first'), answer('run_b', HOSTILE), answer('run_z', 'no')])
        const two = await storage.transact([answer('run_a', 'second')])
        assert.deepEqual([one.answered.map((stored) => stored.message.run), two.answered], [['run_a', 'run_b'], []])
        const later = await again()
        const known = await later.outbox.answeredAfter('webhook', 'ann', 0)
        assert.deepEqual(
          known.map(({ content, message: { text } }) => [content, text]),
          [
            [{ kind: 'complete', text: 'first' }, ''],
            [{ kind: 'complete', text: HOSTILE }, ''],
          ],
        )
        const [first = 0, second = 0] = known.map(({ seq }) => seq)
        const third = await later.outbox.nextSeq('webhook', 'ann')
        assert.ok(0 < first && first < second && second < third, 'numbers rise')
        assert.equal((await later.outbox.bySeq('webhook', 'ann', first))?.message.run, 'run_a')
      }),
    )
    it(
      'remembers what an account has not got, and hands its first attempt to one caller',
      using(async (storage) => {
        await accept(storage, message('run_a'))
        await storage.transact([{ kind: 'answer', run: run('run_a'), content: DONE }])
        await storage.transact([{ kind: 'delivery', run: run('run_a'), state: 'waiting' }])
        assert.equal((await storage.outbox.undelivered({ channel: 'webhook', account: 'ann' })).length, 1)
        const taken = await Promise.all([storage.outbox.take(run('run_a')), storage.outbox.take(run('run_a'))])
        assert.deepEqual(taken.toSorted(), [false, true])
        await storage.transact([{ kind: 'delivery', run: run('run_a'), state: 'delivered' }])
        assert.deepEqual(await storage.outbox.undelivered({ channel: 'webhook' }), [])
        assert.deepEqual(await storage.outbox.counts(), { open: 0, waiting: 0, unknown: 0, delivered: 1 })
      }),
    )
    it(
      'sends an answer to where it was redirected',
      using(async (storage) => {
        await accept(storage, message('run_a'))
        await storage.outbox.redirect(run('run_a'), { account: 'ann', replyTo: { socket: 2 } })
        const { answered } = await storage.transact([{ kind: 'answer', run: run('run_a'), content: DONE }])
        assert.deepEqual(answered[0]?.message.replyTo, { socket: 2 })
      }),
    )
    it(
      'finds messages by the error they ended with',
      using(async (storage) => {
        await accept(storage, message('run_a'))
        const content = { kind: 'error', code: 'MODEL_AUTH', message: 'm', partialText: '' } as const
        await storage.transact([{ kind: 'answer', run: run('run_a'), content }])
        assert.equal((await storage.outbox.failedWith('MODEL_AUTH')).length, 1)
        assert.equal((await storage.outbox.failedWith('INTERNAL')).length, 0)
      }),
    )
  })

  describe(`${name}: usage and state`, () => {
    it(
      'adds what is spent and saved, and forgets a session but not its hours',
      using(async (storage, again) => {
        const spent = { ...NOTHING_SPENT, requests: 1, tokens: 10, input: 7, output: 3, usd: 0.5 }
        const sessionId = 'sess_a' as SessionId
        const spend = { kind: 'spend', sessionId, model: 'p/m', channel: 'webhook', spent } as const
        const totals = { steps: 1, messages: 2, tokensSaved: 30, netTokensSaved: 4, netBasis: 'measured' } as const
        await storage.transact([spend, spend, { kind: 'save', sessionId, ...totals }])
        const later = await again()
        assert.equal((await later.usage.ofSession(sessionId)).tokens, 20)
        assert.equal((await later.usage.today()).usd, 1)
        assert.deepEqual(await later.usage.savedBy(sessionId), totals)
        assert.deepEqual(await later.usage.savedInAll(), totals)
        await later.transact([{ kind: 'forget-usage', sessionId }])
        assert.equal((await later.usage.ofSession(sessionId)).tokens, 0)
        const report = await later.usage.report({ from: 0, to: 8.64e15, by: 'model', bucket: 'day' })
        assert.deepEqual(
          report.map(({ group, requests, input }) => [group, requests, input]),
          [['p/m', 2, 14]],
        )
      }),
    )
    it(
      'remembers small things by section, the ones changed longest ago first',
      using(async (storage, again) => {
        const set = (key: string, value: string | null): Change => ({ kind: 'set-state', section: 's', key, value })
        await storage.transact([set('a', '1'), set('b', HOSTILE), set('c', '3')])
        await storage.transact([set('a', '4'), set('c', null)])
        const later = await again()
        assert.deepEqual(await later.state.entries('s'), [
          ['b', HOSTILE],
          ['a', '4'],
        ])
        assert.equal(await later.state.get('s', 'c'), undefined)
      }),
    )
  })

  describe(`${name}: ownership and transactions`, () => {
    it(
      'lets the present owner write, and no other',
      using(async (storage) => {
        await storage.transact([begin(KEY, 'sess_a', 'ann')])
        const old = (await storage.ownership.claim(KEY))?.owner
        assert.ok(old !== undefined)
        assert.deepEqual((await storage.ownership.claim(KEY))?.owner, old)
        await storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'mine' } }], old)
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        assert.equal(storage.ownership.isCurrent(old), false)
        const late = storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'late' } }], old)
        await assert.rejects(late, { code: 'OWNERSHIP_LOST' })
        assert.equal((await storage.sessions.get(KEY))?.title, 'mine')
        const now = (await storage.ownership.claim(KEY))?.owner
        assert.ok(now !== undefined && now.epoch > old.epoch && storage.ownership.isCurrent(now))
      }),
    )
    it(
      'appends to a transcript together with its changes, or neither',
      using(async (storage, again) => {
        await storage.transact([begin(KEY, 'sess_a', 'ann')])
        const owner = (await storage.ownership.claim(KEY))?.owner
        assert.ok(owner !== undefined)
        const transcript = await storage.transcripts.open('sess_a' as SessionId, new AbortController().signal)
        const draft = { type: 'custom', customType: 'x', data: {} } as const
        await transcript.append([draft], { owner, changes: [begin(KEY, 'sess_a', 'ann', { title: 'one' })] })
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        const late = transcript.append([draft], { owner, changes: [begin(KEY, 'sess_a', 'ann', { title: 'two' })] })
        await assert.rejects(late, { code: 'OWNERSHIP_LOST' })
        await transcript.close()
        const later = await again()
        const reopened = await later.transcripts.open('sess_a' as SessionId, new AbortController().signal)
        assert.equal((await reopened.branch()).length, 1)
        assert.equal((await later.sessions.get(KEY))?.title, 'one')
        await reopened.close()
      }),
    )
    it(
      'names sessions with open messages that no node holds',
      using(async (storage) => {
        await accept(storage, message('run_a'))
        await accept(storage, { ...message('run_b'), key: OTHER })
        assert.deepEqual(await storage.ownership.unclaimed(9), [KEY, OTHER])
        const claim = await storage.ownership.claim(KEY)
        assert.deepEqual(await storage.ownership.unclaimed(9), [OTHER])
        assert.ok(claim !== undefined)
        await storage.ownership.release(claim.owner)
        assert.deepEqual(await storage.ownership.unclaimed(1), [KEY])
      }),
    )
    it(
      'tells those who watch what became durable',
      using(async (storage) => {
        const heard: Notice['kind'][] = []
        const stop = storage.watch(({ kind }) => heard.push(kind))
        await accept(storage, message('run_a'))
        await storage.transact([begin(KEY, 'sess_a', 'ann'), { kind: 'answer', run: run('run_a'), content: DONE }])
        stop()
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        assert.deepEqual(new Set(heard), new Set(['message', 'session', 'reply']))
      }),
    )
  })
}

function run(id: string): RunId {
  return id as RunId
}

function begin(
  key: SessionKey,
  sessionId: string,
  owner: string,
  fields: Record<string, unknown> = {},
): Extract<Change, { kind: 'begin-session' }> {
  return { kind: 'begin-session', key, sessionId: sessionId as SessionId, owner, fields, touched: true }
}

function message(id: string): AcceptedMessage {
  return {
    run: run(id),
    key: KEY,
    acceptedAt,
    channel: 'webhook',
    account: 'ann',
    messageId: id,
    text: `text of ${id}`,
    attachments: [],
    route: {},
    replyTo: { socket: 1 },
  }
}

function accept(
  storage: Storage,
  sent: AcceptedMessage,
  more: Partial<Acceptance> = {},
): ReturnType<Storage['inbox']['accept']> {
  return storage.inbox.accept(sent, { fingerprint: sent.run, ...more })
}
