import assert from 'node:assert/strict'
import type { Change } from '../../../src/core/change.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import { NOTHING_SPENT } from '../../../src/core/spent.ts'
import { over, overRestart, type StorageSuite } from './given.ts'

const ONE = 'sess_1' as SessionId
const TWO = 'sess_2' as SessionId

function spend(sessionId: SessionId, tokens: number, model = 'p/m', channel = 'webhook'): Change {
  return { kind: 'spend', sessionId, model, channel, spent: { ...NOTHING_SPENT, requests: 1, tokens, input: tokens } }
}

function save(steps: number, netBasis: 'measured' | 'estimated'): Change {
  return {
    kind: 'save',
    sessionId: ONE,
    steps,
    messages: 2 * steps,
    tokensSaved: 10 * steps,
    netTokensSaved: 5,
    netBasis,
  }
}

const ALL_TIME = { from: 0, to: Number.MAX_SAFE_INTEGER } as const

/** What every storage promises about costs and savings. */
export const describeUsage: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: usage`, () => {
    it(
      'adds up what is spent, also at the same time and twice in one transaction',
      over(open, async (storage) => {
        await Promise.all([
          storage.transact([spend(ONE, 10), spend(ONE, 1)]),
          storage.transact([spend(TWO, 20, 'p/other', 'http')]),
          storage.transact([spend(ONE, 5)]),
        ])
        const { tokens, requests } = await storage.usage.ofSession(ONE)
        assert.deepEqual([tokens, requests], [16, 3])
        assert.equal((await storage.usage.today()).tokens, 36)
        const grouped = async (by: 'model' | 'channel' | 'session') =>
          (await storage.usage.report({ ...ALL_TIME, by, bucket: 'day' })).map(({ group, input }) => [group, input])
        assert.deepEqual(await grouped('model'), [
          ['p/m', 16],
          ['p/other', 20],
        ])
        assert.deepEqual(await grouped('channel'), [
          ['http', 20],
          ['webhook', 16],
        ])
        assert.deepEqual(await grouped('session'), [
          ['sess_1', 16],
          ['sess_2', 20],
        ])
        assert.deepEqual(await storage.usage.ofSession('sess_9' as SessionId), NOTHING_SPENT)
      }),
    )

    it(
      'adds up what cleanups save, measured only while everything was',
      over(open, async (storage) => {
        await Promise.all([storage.transact([save(1, 'measured')]), storage.transact([save(2, 'measured')])])
        assert.deepEqual(await storage.usage.savedBy(ONE), {
          steps: 3,
          messages: 6,
          tokensSaved: 30,
          netTokensSaved: 10,
          netBasis: 'measured',
        })
        await storage.transact([save(-3, 'estimated')])
        assert.deepEqual(await storage.usage.savedInAll(), {
          steps: 0,
          messages: 0,
          tokensSaved: 0,
          netTokensSaved: 15,
          netBasis: 'estimated',
        })
      }),
    )

    it(
      'forgets a session and keeps its hours and days',
      over(open, async (storage) => {
        await storage.transact([spend(ONE, 10), save(1, 'measured')])
        await storage.transact([{ kind: 'forget-usage', sessionId: ONE }])
        assert.equal((await storage.usage.ofSession(ONE)).tokens, 0)
        assert.equal((await storage.usage.savedBy(ONE)).steps, 0)
        assert.equal((await storage.usage.today()).tokens, 10)
      }),
    )

    it(
      'survives a restart',
      overRestart(
        open,
        async (storage) => {
          await storage.transact([spend(ONE, 10), save(1, 'estimated')])
          await storage.transact([spend(ONE, 7)])
        },
        async (storage) => {
          assert.equal((await storage.usage.ofSession(ONE)).tokens, 17)
          assert.equal((await storage.usage.savedBy(ONE)).steps, 1)
          const rows = await storage.usage.report({ ...ALL_TIME, by: 'session', bucket: 'hour' })
          assert.deepEqual(
            rows.map(({ group, input }) => [group, input]),
            [['sess_1', 17]],
          )
        },
      ),
    )
  })
}
