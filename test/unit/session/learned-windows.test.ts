import { describe, expect, it } from 'vitest'
import { NO_PRICES } from '../../../src/provider/usage.ts'
import { DEFAULT_LEARNED_WINDOWS, LearnedWindows } from '../../../src/session/learned-windows.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import type { TurnModel } from '../../../src/turn/parts.ts'

const DAY_MS = 24 * 60 * 60 * 1000

function modelOf(source: TurnModel['window']['source'], tokens = 32_768, name = 'local/tiny'): TurnModel {
  const provider = { name: 'local', api: 'demo' } as TurnModel['provider']
  const sizes = { contextWindow: tokens, maxOutputTokens: 4_096, window: { tokens, source } }
  return { name, provider, model: 'tiny', acceptsImages: false, isPriced: false, prices: NO_PRICES, ...sizes }
}

function commit(windows: LearnedWindows, records: readonly { readonly data: unknown }[]): void {
  for (const { data } of records) windows.apply(JSON.parse(JSON.stringify(data)))
}

describe('learned windows', () => {
  it('count once they are committed, and the answer asked for leaves room for a prompt', () => {
    const windows = new LearnedWindows(new ManualClock())
    const model = modelOf('guess')
    const records = windows.told(model, 4_096)
    expect(windows.applyTo(model)).toBe(model)
    commit(windows, records)
    expect(windows.applyTo(model)).toMatchObject({
      contextWindow: 4_096,
      maxOutputTokens: 1_024,
      window: { tokens: 32_768, source: 'guess', learned: 'told' },
    })
    expect(windows.applyTo(windows.applyTo(model))).toEqual(windows.applyTo(model))
  })

  it('are void when configuration or catalogue say something else than before', () => {
    const windows = new LearnedWindows(new ManualClock())
    commit(windows, windows.told(modelOf('guess'), 4_096))
    const changed = modelOf('configuration', 16_384)
    expect(windows.applyTo(changed)).toBe(changed)
  })

  it('survive in a snapshot', () => {
    const windows = new LearnedWindows(new ManualClock())
    const model = modelOf('guess')
    commit(windows, windows.told(model, 4_096))
    const next = new LearnedWindows(new ManualClock())
    for (const data of windows.snapshot()) next.apply(JSON.parse(JSON.stringify(data)))
    expect(next.applyTo(model).contextWindow).toBe(4_096)
  })

  it('found by halving count at once, are kept when a request fitted, and forgotten when none did', () => {
    const windows = new LearnedWindows(new ManualClock())
    const model = modelOf('guess')
    windows.tryHalf(model, 16_384)
    expect(windows.applyTo(model).contextWindow).toBe(16_384)
    expect([...windows.snapshot()]).toEqual([])
    windows.giveUp(model)
    expect(windows.applyTo(model)).toBe(model)
    windows.tryHalf(model, 8_192)
    commit(windows, windows.confirm(model))
    expect([...windows.snapshot()]).toHaveLength(1)
    expect(windows.confirm(model)).toEqual([])
  })

  it('of a catalogued model without a number are not kept: its number is the provider’s own', async () => {
    const clock = new ManualClock()
    const windows = new LearnedWindows(clock)
    const model = modelOf('catalogue', 200_000)
    windows.tryHalf(model, 100_000)
    expect(windows.confirm(model)).toEqual([])
    expect(windows.applyTo(model).contextWindow).toBe(100_000)
    await clock.advance(DEFAULT_LEARNED_WINDOWS.catalogueMs)
    expect(windows.applyTo(model)).toBe(model)
  })

  it('expire, told ones after 30 days and halved ones after one', () => {
    const clock = new ManualClock()
    const told = new LearnedWindows(clock)
    const model = modelOf('guess')
    commit(told, told.told(model, 4_096))
    const later = (days: number): LearnedWindows => {
      const windows = new LearnedWindows(new ManualClock(clock.now() + days * DAY_MS))
      for (const data of told.snapshot()) windows.apply(data)
      return windows
    }
    expect(later(29).applyTo(model).contextWindow).toBe(4_096)
    expect(later(30).applyTo(model)).toBe(model)
    expect(later(30).list()).toEqual([])
    told.tryHalf(model, 2_048)
    commit(told, told.confirm(model))
    expect(later(0.9).applyTo(model).contextWindow).toBe(2_048)
    expect(later(1).applyTo(model)).toBe(model)
  })

  it('are bounded: the model learned about longest ago is forgotten first', () => {
    const windows = new LearnedWindows(new ManualClock(), { ...DEFAULT_LEARNED_WINDOWS, models: 2 })
    for (const name of ['a/x', 'b/x', 'c/x']) commit(windows, windows.told(modelOf('guess', 32_768, name), 4_096))
    expect(windows.list().map(({ model }) => model)).toEqual(['b/x', 'c/x'])
  })

  it('ignore what is no record of theirs', () => {
    const windows = new LearnedWindows(new ManualClock())
    for (const data of [null, 1, {}, { model: 'a/x', contextWindow: 'many' }, { model: 'a/x', contextWindow: -1 }])
      windows.apply(data)
    expect(windows.list()).toEqual([])
  })
})
