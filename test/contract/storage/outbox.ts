import assert from 'node:assert/strict'
import { NEVER } from '../../../src/base/async.ts'
import type { RunId, SessionId } from '../../../src/core/ids.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { accept, answer, begin, KEY, OTHER_KEY, over, overRestart, type StorageSuite } from './given.ts'

const run = (name: string): RunId => name as RunId
const answerOf = (name: string, text: string) =>
  ({ kind: 'answer', run: run(name), content: { kind: 'complete', text } }) as const

async function undelivered(storage: Storage): Promise<readonly string[]> {
  return (await storage.outbox.undelivered({ channel: 'webhook', account: 'ann' })).map(({ message }) => message.run)
}

/** What every storage promises about answers and their delivery. */
export const describeOutbox: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: outbox`, () => {
    it(
      'gives a message one answer: the first',
      over(open, async (storage) => {
        await accept(storage, 'one')
        const both = await Promise.all([
          storage.transact([answerOf('one', 'first')]),
          storage.transact([answerOf('one', 'second'), answerOf('unknown', 'none')]),
        ])
        assert.deepEqual(
          both.map(({ answered }) => answered.map(({ content }) => content)),
          [[{ kind: 'complete', text: 'first' }], []],
        )
        const found = await storage.inbox.find(run('one'))
        assert.deepEqual([found?.content, found?.state], [{ kind: 'complete', text: 'first' }, 'unknown'])
        assert.equal(found?.message.text, '')
      }),
    )

    it(
      'tells each append which messages its changes gave their answer',
      over(open, async (storage) => {
        for (const one of ['one', 'two', 'three']) await accept(storage, one)
        await answer(storage, 'one')
        const transcript = await storage.transcripts.open('sess_1' as SessionId, NEVER)
        const answered: string[][] = []
        const append = async (text: string, ...runs: readonly string[]): Promise<void> => {
          const at = answered.push([]) - 1
          await transcript.append([{ type: 'message', message: { role: 'user', content: text, timestamp: 1 } }], {
            changes: runs.map((one) => answerOf(one, text)),
            onAnswered: (those) => void answered[at]?.push(...those),
          })
        }
        await Promise.all([append('a', 'one', 'two'), append('b', 'two', 'three'), append('c')])
        await append('d', 'three')
        assert.deepEqual(answered, [['two'], ['three'], [], []])
        assert.deepEqual((await storage.inbox.find(run('two')))?.content, { kind: 'complete', text: 'a' })
        await transcript.close()
      }),
    )

    it(
      'hands out what an account may miss, in the order of the answers, until it is delivered',
      over(open, async (storage) => {
        for (const one of ['one', 'two', 'three']) await accept(storage, one)
        await accept(storage, 'other', { account: 'bob' })
        for (const one of ['two', 'one', 'other', 'three']) await answer(storage, one)
        assert.deepEqual(await undelivered(storage), ['two', 'one', 'three'])
        assert.equal((await storage.outbox.undelivered({ channel: 'webhook' })).length, 4)
        for (const one of ['one', 'two'])
          await storage.transact([{ kind: 'delivery', run: run(one), state: 'waiting' }])
        assert.deepEqual(await undelivered(storage), ['two', 'one', 'three'])
        await storage.outbox.take(run('two'))
        assert.deepEqual(await undelivered(storage), ['two', 'one', 'three'])
        await storage.transact([{ kind: 'delivery', run: run('one'), state: 'delivered' }])
        assert.deepEqual(await undelivered(storage), ['two', 'three'])
        const ofSession = (await storage.outbox.undeliveredOf(KEY)).map(({ message }) => message.run)
        assert.deepEqual(ofSession.toSorted(), ['other', 'three', 'two'])
        assert.deepEqual(await storage.outbox.undeliveredOf(OTHER_KEY), [])
        const counts = await storage.outbox.counts()
        assert.deepEqual(counts, { open: 0, waiting: 0, unknown: 3, delivered: 1 })
      }),
    )

    it(
      'numbers replies and frames of an account upwards, never twice',
      over(open, async (storage) => {
        for (const one of ['one', 'two']) await accept(storage, one)
        const numbers = [await storage.outbox.nextSeq('webhook', 'ann')]
        await answer(storage, 'one')
        numbers.push((await storage.inbox.find(run('one')))?.seq ?? 0)
        const many = Array.from({ length: 50 }, () => storage.outbox.nextSeq('webhook', 'ann'))
        numbers.push(...(await Promise.all(many)))
        await answer(storage, 'two')
        numbers.push((await storage.inbox.find(run('two')))?.seq ?? 0)
        assert.equal(new Set(numbers).size, numbers.length)
        assert.ok((numbers.at(-1) ?? 0) > Math.max(...numbers.slice(0, -1)))
        assert.equal(await storage.outbox.nextSeq('webhook', 'anon-1'), 1)
        assert.equal(await storage.outbox.nextSeq('webhook', 'anon-1'), 2)
      }),
    )

    it(
      'finds answers by number, for an acknowledgement and for a resume',
      over(open, async (storage) => {
        for (const one of ['one', 'two', 'three']) await accept(storage, one)
        for (const one of ['one', 'two', 'three']) await answer(storage, one)
        const seq = (await storage.inbox.find(run('two')))?.seq ?? 0
        assert.equal((await storage.outbox.bySeq('webhook', 'ann', seq))?.message.run, 'two')
        await storage.transact([{ kind: 'delivery', run: run('two'), state: 'delivered' }])
        assert.equal(await storage.outbox.bySeq('webhook', 'ann', seq), undefined)
        const runs = (await storage.outbox.answeredAfter('webhook', 'ann', seq - 1)).map(({ message }) => message.run)
        assert.deepEqual(runs, ['two', 'three'])
      }),
    )

    it(
      'lets one caller take a waiting answer',
      over(open, async (storage) => {
        await accept(storage, 'one')
        await answer(storage, 'one')
        assert.equal(await storage.outbox.take(run('one')), false)
        await storage.transact([{ kind: 'delivery', run: run('one'), state: 'waiting' }])
        const taken = await Promise.all([storage.outbox.take(run('one')), storage.outbox.take(run('one'))])
        assert.deepEqual(taken.toSorted(), [false, true])
        assert.equal((await storage.inbox.find(run('one')))?.state, 'unknown')
      }),
    )

    it(
      'sends an answer where its sender is now, and nothing to a client that ended with its connection',
      over(open, async (storage) => {
        await accept(storage, 'one')
        await storage.outbox.redirect(run('one'), { account: 'ann', replyTo: { socket: 2 } })
        await answer(storage, 'one')
        assert.deepEqual((await storage.inbox.find(run('one')))?.message.replyTo, { socket: 2 })
        await accept(storage, 'two', { account: 'anon-1' })
        await answer(storage, 'two')
        await storage.outbox.abandon('webhook', 'anon-1')
        assert.deepEqual(await storage.outbox.undelivered({ channel: 'webhook', account: 'anon-1' }), [])
        const ofSession = (await storage.outbox.undeliveredOf(KEY)).map(({ message }) => message.run)
        assert.deepEqual(ofSession, ['one'])
      }),
    )

    it(
      'forgets the answers of a deleted session, and lists those that failed',
      over(open, async (storage) => {
        await storage.transact([begin(KEY, 'sess_1')])
        await accept(storage, 'one')
        await accept(storage, 'two')
        const content = { kind: 'error', code: 'MESSAGE_POISONED', message: 'no', partialText: '' } as const
        await storage.transact([{ kind: 'answer', run: run('one'), content }])
        const failed = await storage.outbox.failedWith('MESSAGE_POISONED')
        assert.deepEqual(
          failed.map(({ message }) => message.run),
          ['one'],
        )
        await storage.transact([{ kind: 'delete-session', key: KEY }])
        assert.equal(await storage.inbox.find(run('one')), undefined)
        assert.equal((await storage.inbox.find(run('two')))?.state, 'open')
      }),
    )

    it(
      'tells that an answer is there',
      over(open, async (storage) => {
        await accept(storage, 'one')
        const heard: string[] = []
        storage.watch((notice) => {
          if (notice.kind === 'reply') heard.push(`${notice.channel} ${notice.account} ${notice.run}`)
        })
        await answer(storage, 'one')
        assert.deepEqual(heard, ['webhook ann one'])
      }),
    )

    it(
      'has after a kill every answer with its state, and gives no number again',
      overRestart(
        open,
        async (storage) => {
          for (const one of ['one', 'two', 'three']) await accept(storage, one)
          for (const one of ['one', 'two']) await answer(storage, one)
          await storage.transact([{ kind: 'delivery', run: run('one'), state: 'delivered' }])
          await storage.transact([{ kind: 'reset-done', run: run('three') }])
        },
        async (storage) => {
          assert.deepEqual(await undelivered(storage), ['two'])
          assert.equal((await storage.inbox.find(run('three')))?.resetDone, true)
          const before = (await storage.inbox.find(run('two')))?.seq ?? 0
          assert.ok((await storage.outbox.nextSeq('webhook', 'ann')) > before)
        },
      ),
    )
  })
}
