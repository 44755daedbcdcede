import { describe, expect, it } from 'vitest'
import { TurnPlace, TurnSlots, type TurnLimits } from '../../../src/session/turn-slots.ts'
import { deferred } from '../../../src/base/async.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'

const LIMITS: TurnLimits = { total: 4, perProvider: 3, perAccount: 2 }

/** Turns by name, `provider/account/number`, in the order they were admitted. */
class Scene {
  readonly clock = new ManualClock()
  readonly slots: TurnSlots
  readonly admitted: string[] = []
  readonly #releases = new Map<string, () => void>()

  constructor(limits: TurnLimits = LIMITS) {
    this.slots = new TurnSlots(this.clock, limits)
  }

  async claim(name: string, signal = new AbortController().signal): Promise<void> {
    const [provider = '', account = ''] = name.split('/')
    const claiming = this.slots.acquire({ provider, account }, signal).then(
      (release) => {
        this.admitted.push(name)
        this.#releases.set(name, release)
      },
      () => undefined,
    )
    void claiming
    await settle()
  }

  async end(name: string): Promise<void> {
    this.#releases.get(name)?.()
    await settle()
  }
}

describe('turn slots', () => {
  it('let a provider that hangs hold no more than its share', async () => {
    const scene = new Scene({ total: 4, perProvider: 3, perAccount: 4 })
    for (let turn = 1; turn <= 6; turn++) await scene.claim(`hung/a/${turn}`)
    expect(scene.admitted).toHaveLength(3)
    await scene.claim('well/a/1')
    expect(scene.admitted.at(-1)).toBe('well/a/1')
    await scene.end('well/a/1')
    expect(scene.admitted).toHaveLength(4)
  })

  it('let one account hold no more than its share, however many sessions it has', async () => {
    const scene = new Scene()
    for (let turn = 1; turn <= 4; turn++) await scene.claim(`p/busy/${turn}`)
    await scene.claim('p/other/1')
    expect(scene.admitted).toEqual(['p/busy/1', 'p/busy/2', 'p/other/1'])
  })

  it('give a free place to the account with the fewest running turns, then to the one that came first', async () => {
    const scene = new Scene({ total: 2, perProvider: 2, perAccount: 2 })
    await scene.claim('p/a/1')
    await scene.claim('p/a/2')
    for (const name of ['p/a/3', 'p/b/1', 'p/c/1']) await scene.claim(name)
    await scene.end('p/a/1')
    expect(scene.admitted.at(-1)).toBe('p/b/1')
    await scene.end('p/b/1')
    expect(scene.admitted.at(-1)).toBe('p/c/1')
    await scene.end('p/a/2')
    expect(scene.admitted.at(-1)).toBe('p/a/3')
  })

  it('never exceed the total, and one release can admit two that waited for different shares', async () => {
    const scene = new Scene({ total: 4, perProvider: 2, perAccount: 2 })
    for (const name of ['p/a/1', 'p/b/1', 'q/a/1']) await scene.claim(name)
    await scene.claim('p/c/1')
    await scene.claim('r/a/1')
    expect(scene.slots.waiting).toBe(2)
    await scene.end('p/a/1')
    expect(scene.slots.waiting).toBe(0)
    expect(scene.admitted).toEqual(['p/a/1', 'p/b/1', 'q/a/1', 'p/c/1', 'r/a/1'])
    await scene.claim('s/d/1')
    expect(scene.slots.waiting).toBe(1)
  })

  it('forget a waiter that was stopped, and take a second release for nothing', async () => {
    const scene = new Scene({ total: 1, perProvider: 1, perAccount: 1 })
    await scene.claim('p/a/1')
    const stop = new AbortController()
    await scene.claim('p/b/1', stop.signal)
    stop.abort()
    await settle()
    expect(scene.slots.waiting).toBe(0)
    await scene.end('p/a/1')
    await scene.end('p/a/1')
    await scene.claim('p/c/1')
    await scene.claim('p/c/2')
    expect(scene.admitted).toEqual(['p/a/1', 'p/c/1'])
  })

  it('say what runs and waits at each provider, and how old the oldest turn is', async () => {
    const scene = new Scene({ total: 2, perProvider: 1, perAccount: 2 })
    await scene.claim('slow/a/1')
    await scene.clock.advance(5_000)
    await scene.claim('slow/b/1')
    await scene.claim('fast/b/1')
    await scene.clock.advance(1_000)
    expect(Object.fromEntries(scene.slots.load())).toEqual({
      slow: { running: 1, waiting: 1, slowestMs: 6_000 },
      fast: { running: 1, waiting: 0, slowestMs: 1_000 },
    })
    expect(scene.slots.longestWaitMs).toBe(1_000)
  })
})

describe('the place of a turn', () => {
  it('is one, also when a second wait begins and ends before the place was given back', async () => {
    const scene = new Scene({ total: 1, perProvider: 1, perAccount: 1 })
    const { signal } = new AbortController()
    const place = await TurnPlace.take(
      () => scene.slots.acquire({ provider: 'p', account: 'asking' }, signal),
      () => undefined,
    )
    const [first, second] = [deferred(), deferred()]
    const waitingFirst = place.whileWaiting(() => first.promise)
    await scene.claim('p/other/1')
    first.resolve()
    await settle()
    const waitingSecond = place.whileWaiting(() => second.promise)
    second.resolve()
    await settle()
    await scene.end('p/other/1')
    expect([scene.slots.inUse, scene.slots.waiting]).toEqual([1, 0])
    await Promise.all([waitingFirst, waitingSecond])
    place.release()
    expect([scene.slots.inUse, scene.slots.waiting]).toEqual([0, 0])
  })
})
