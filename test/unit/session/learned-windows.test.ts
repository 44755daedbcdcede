import { describe, expect, it } from 'vitest'
import { NO_PRICES } from '../../../src/provider/usage.ts'
import { DEFAULT_LEARNED_WINDOWS, LearnedWindows } from '../../../src/session/learned-models.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import type { Notice, Storage } from '../../../src/storage/storage.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { TurnModel } from '../../../src/turn/deps.ts'

const DAY_MS = 24 * 60 * 60 * 1000

function modelOf(source: TurnModel['window']['source'], tokens = 32_768, name = 'local/tiny'): TurnModel {
  const provider = { name: 'local', api: 'demo' } as TurnModel['provider']
  const sizes = { contextWindow: tokens, maxOutputTokens: 4_096, window: { tokens, source } }
  return { name, provider, model: 'tiny', acceptsImages: false, isPriced: false, prices: NO_PRICES, ...sizes }
}

interface Opened {
  readonly windows: LearnedWindows
  readonly storage: Storage
}

async function open(clock = new ManualClock(), limits = DEFAULT_LEARNED_WINDOWS): Promise<Opened> {
  const storage = createMemoryStorage({ clock, ids: new SeededIds() })
  return { storage, windows: await reopen(storage, clock, limits) }
}

async function reopen(storage: Storage, clock: ManualClock, limits = DEFAULT_LEARNED_WINDOWS): Promise<LearnedWindows> {
  const windows = new LearnedWindows(clock, limits)
  await windows.load(storage)
  return windows
}

describe('learned windows', () => {
  it('count once they are committed, and the answer asked for leaves room for a prompt', async () => {
    const { windows, storage } = await open()
    const model = modelOf('guess')
    const records = windows.told(model, 4_096)
    expect(windows.applyTo(model)).toBe(model)
    await storage.transact(records)
    expect(windows.applyTo(model)).toMatchObject({
      contextWindow: 4_096,
      maxOutputTokens: 1_024,
      window: { tokens: 32_768, source: 'guess', learned: 'told' },
    })
    expect(windows.applyTo(windows.applyTo(model))).toEqual(windows.applyTo(model))
  })

  it('are void when configuration or catalogue say something else than before', async () => {
    const { windows, storage } = await open()
    await storage.transact(windows.told(modelOf('guess'), 4_096))
    const changed = modelOf('configuration', 16_384)
    expect(windows.applyTo(changed)).toBe(changed)
  })

  it('survive in a snapshot', async () => {
    const { windows, storage } = await open()
    const model = modelOf('guess')
    await storage.transact(windows.told(model, 4_096))
    const next = await reopen(storage, new ManualClock())
    expect(next.applyTo(model).contextWindow).toBe(4_096)
  })

  it('found by halving count at once, are kept when a request fitted, and forgotten when none did', async () => {
    const { windows, storage } = await open()
    const model = modelOf('guess')
    windows.tryHalf(model, 16_384)
    expect(windows.applyTo(model).contextWindow).toBe(16_384)
    expect(await storage.state.entries('windows')).toEqual([])
    windows.giveUp(model)
    expect(windows.applyTo(model)).toBe(model)
    windows.tryHalf(model, 8_192)
    await storage.transact(windows.confirm(model))
    expect(await storage.state.entries('windows')).toHaveLength(1)
    expect(windows.confirm(model)).toEqual([])
  })

  it('of a catalogued model without a number are not kept: its number is the provider’s own', async () => {
    const clock = new ManualClock()
    const { windows } = await open(clock)
    const model = modelOf('catalogue', 200_000)
    windows.tryHalf(model, 100_000)
    expect(windows.confirm(model)).toEqual([])
    expect(windows.applyTo(model).contextWindow).toBe(100_000)
    await clock.advance(DEFAULT_LEARNED_WINDOWS.catalogueMs)
    expect(windows.applyTo(model)).toBe(model)
  })

  it('expire, told ones after 30 days and halved ones after one', async () => {
    const clock = new ManualClock()
    const { windows: told, storage } = await open(clock)
    const model = modelOf('guess')
    await storage.transact(told.told(model, 4_096))
    const later = (days: number): Promise<LearnedWindows> =>
      reopen(storage, new ManualClock(clock.now() + days * DAY_MS))
    expect((await later(29)).applyTo(model).contextWindow).toBe(4_096)
    expect((await later(30)).applyTo(model)).toBe(model)
    expect((await later(30)).list()).toEqual([])
    told.tryHalf(model, 2_048)
    await storage.transact(told.confirm(model))
    expect((await later(0.9)).applyTo(model).contextWindow).toBe(2_048)
    expect((await later(1)).applyTo(model)).toBe(model)
  })

  it('are bounded: the model learned about longest ago is forgotten first', async () => {
    const { windows, storage } = await open(new ManualClock(), { ...DEFAULT_LEARNED_WINDOWS, models: 2 })
    for (const name of ['a/x', 'b/x', 'c/x'])
      await storage.transact(windows.told(modelOf('guess', 32_768, name), 4_096))
    expect(windows.list().map(({ model }) => model)).toEqual(['b/x', 'c/x'])
  })

  it('ignore what is no record of theirs', async () => {
    const { windows, storage } = await open()
    for (const value of [1, {}, { model: 'a/x', contextWindow: 'many' }, { model: 'a/x', contextWindow: -1 }])
      await storage.transact([{ kind: 'set-state', section: 'windows', key: 'a/x', value }])
    expect(windows.list()).toEqual([])
  })
})

it('what another node learned while it cannot be looked up ends nothing', async () => {
  const windows = new LearnedWindows(new ManualClock(0))
  let hear: (notice: Notice) => void = () => undefined
  await windows.load({
    state: { entries: async () => [], get: () => Promise.reject(new Error('the database is away')) },
    watch: (listener) => {
      hear = listener
      return () => undefined
    },
  })
  hear({ kind: 'state', section: 'windows', key: 'test/m' })
  await settle()
  expect(windows.list()).toEqual([])
})
