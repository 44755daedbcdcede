import assert from 'node:assert/strict'
import type { Change } from '../../../src/core/change.ts'
import type { JsonValue } from '../../../src/base/json.ts'
import { over, overRestart, type StorageSuite } from './given.ts'

function set(section: string, key: string, value: JsonValue | null): Change {
  return { kind: 'set-state', section, key, value }
}

/** What every storage promises about small remembered things. */
export const describeState: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: state`, () => {
    it(
      'keeps values by section and key, changed longest ago first',
      over(open, async (storage) => {
        await storage.transact([set('a', 'x', 1), set('a', 'y', { deep: [true] }), set('b', 'x', 'other')])
        await storage.transact([set('a', 'x', 2)])
        assert.deepEqual(await storage.state.entries('a'), [
          ['y', { deep: [true] }],
          ['x', 2],
        ])
        assert.equal(await storage.state.get('b', 'x'), 'other')
        await storage.transact([set('a', 'y', null)])
        assert.equal(await storage.state.get('a', 'y'), undefined)
        assert.deepEqual(await storage.state.entries('none'), [])
      }),
    )

    it(
      'forgets of a full section what was changed longest ago',
      over(open, async (storage) => {
        await storage.transact(Array.from({ length: 2_001 }, (_, at) => set('full', `k${at}`, at)))
        const entries = await storage.state.entries('full')
        assert.equal(entries.length, 2_000)
        assert.deepEqual(entries[0], ['k1', 1])
      }),
    )

    it(
      'tells of a change',
      over(open, async (storage) => {
        const heard: unknown[] = []
        storage.watch((notice) => {
          if (notice.kind === 'state') heard.push([notice.section, notice.key])
        })
        await storage.transact([set('a', 'x', 1)])
        assert.deepEqual(heard, [['a', 'x']])
      }),
    )

    it(
      'survives a restart, whatever the section',
      overRestart(
        open,
        async (storage) => {
          const window = { model: 'p/m', contextWindow: 10, by: 'told', instead: 20, at: 1 }
          await storage.transact([set('xiaoyi.pins', 'wss://one', 'A'), set('windows', 'p/m', window)])
          await storage.transact([
            set('chosen', 's', { modelOverride: 'm' }),
            set('chosen', 't', { modelOverride: 'n' }),
          ])
          await storage.transact([set('chosen', 't', null)])
        },
        async (storage) => {
          assert.equal(await storage.state.get('xiaoyi.pins', 'wss://one'), 'A')
          const kept = await storage.state.get('windows', 'p/m')
          assert.deepEqual(kept, { model: 'p/m', contextWindow: 10, by: 'told', instead: 20, at: 1 })
          assert.deepEqual(await storage.state.entries('chosen'), [['s', { modelOverride: 'm' }]])
        },
      ),
    )
  })
}
