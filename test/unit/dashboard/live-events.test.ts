import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { LIVE_LIMITS, LiveEvents, type StreamOptions } from '../../../src/dashboard/live-events.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'

const join = (waiting: JsonObject, added: JsonObject): JsonObject => ({
  text: `${String(waiting['text'])}${String(added['text'])}`,
})

interface Told {
  readonly id: number
  readonly name: string
  readonly data: JsonObject
}

/** A stream that is read only when asked, as a page on a slow line reads. */
class SlowReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #text = ''
  /** A read that waits for the next piece. */
  #waiting: ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']> | undefined

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader()
  }

  /** Everything that is there; `ended` once the stream has ended. */
  async read(): Promise<{ readonly events: readonly Told[]; readonly ended: boolean }> {
    let ended = false
    for (;;) {
      this.#waiting ??= this.#reader.read()
      const piece = await Promise.race([this.#waiting, settle().then(() => undefined)])
      if (piece === undefined) break
      this.#waiting = undefined
      if (piece.done) {
        ended = true
        break
      }
      this.#text += new TextDecoder().decode(piece.value)
    }
    return { events: eventsIn(this.#text), ended }
  }
}

function eventsIn(text: string): readonly Told[] {
  return text.split('\n\n').flatMap((block) => {
    const found = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/u.exec(block)
    return found === null
      ? []
      : [{ id: Number(found[1]), name: found[2] ?? '', data: JSON.parse(found[3] ?? '') as JsonObject }]
  })
}

function world(limits: Partial<typeof LIVE_LIMITS> = {}) {
  const clock = new ManualClock()
  const live = new LiveEvents({ clock, heartbeat: async () => ({ beat: true }) }, { ...LIVE_LIMITS, ...limits })
  const open = (options: Partial<StreamOptions> = {}) =>
    live.open({ session: 's', logs: false, admin: true, maySee: () => true, ...options }, [])
  /** What a reader that opens now and goes at once is sent. */
  const told = async (options: Partial<StreamOptions> = {}): Promise<readonly Told[]> => {
    const stream = open(options)
    const reader = stream.getReader()
    let text = ''
    for (;;) {
      const piece = await Promise.race([reader.read(), settle().then(() => undefined)])
      if (piece?.value === undefined) break
      text += new TextDecoder().decode(piece.value)
    }
    await reader.cancel()
    return eventsIn(text)
  }
  return { clock, live, open, told }
}

const numbers = (events: readonly Told[]): readonly unknown[] => events.map(({ data }) => data['n'])

describe('the event stream', () => {
  it('sends the text of a turn before its end, once', async () => {
    const { clock, live, open } = world()
    const stream = open()
    live.emitDelta('s', { text: 'one ' }, join)
    live.emitDelta('s', { text: 'two' }, join)
    live.emit('turn', { end: true }, 's')
    await clock.advance(1_000)
    live.close()
    expect(eventsIn(await new Response(stream).text()).map(({ data }) => data)).toEqual([
      { text: 'one two' },
      { end: true },
    ])
  })

  it('numbers everything it sends, and the numbers only rise', async () => {
    const { clock, live, open } = world()
    const stream = open()
    for (let n = 0; n < 5; n++) {
      live.emit('turn', { n }, 's')
      live.emitDelta('s', { text: String(n) }, join)
      await clock.advance(60)
      live.emitStatus({ n })
    }
    live.close()
    const ids = eventsIn(await new Response(stream).text()).map(({ id }) => id)
    expect(ids).toHaveLength(15)
    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? 0))).toBe(true)
  })

  it('goes on behind `since` with what happened while nobody read, deltas aside', async () => {
    const { live, told } = world()
    live.emit('turn', { n: 1 }, 's')
    const [first] = await told({ since: 0 })
    live.emit('turn', { n: 2 }, 's')
    live.emitDelta('s', { text: 'lost' }, join)
    live.emit('session', { n: 3 }, 's')
    expect(numbers(await told({ since: first?.id ?? -1 }))).toEqual([2, 3])
    expect(numbers(await told({ since: 0 }))).toEqual([1, 2, 3])
    expect(await told()).toEqual([])
  })

  it('goes on behind a delta too', async () => {
    const { clock, live, open, told } = world()
    const reader = new SlowReader(open())
    live.emit('turn', { n: 1 }, 's')
    live.emitDelta('s', { text: 'a' }, join)
    await clock.advance(60)
    const last = (await reader.read()).events.at(-1)
    expect(last?.data).toEqual({ text: 'a' })
    live.emit('turn', { n: 2 }, 's')
    expect(numbers(await told({ since: last?.id ?? 0 }))).toEqual([2])
  })

  it('says `reset` for a number too old, one above the newest, and one of an earlier life', async () => {
    const { clock, live, told } = world({ remembered: 3 })
    for (let n = 1; n <= 3; n++) live.emit('turn', { n }, 's')
    const [first] = await told({ since: 0 })
    const since = first?.id ?? 0
    live.emit('turn', { n: 4 }, 's')
    expect(numbers(await told({ since }))).toEqual([2, 3, 4])
    live.emit('turn', { n: 5 }, 's')
    for (const old of [since, 0, 1, 999_999_999_999_999])
      expect((await told({ since: old })).map(({ name }) => name)).toEqual(['reset'])
    await clock.advance(60_000)
    const next = new LiveEvents({ clock, heartbeat: async () => ({}) })
    for (let n = 1; n <= 9; n++) next.emit('turn', { n }, 's')
    const stream = next.open({ since: since + 1, logs: false, admin: true, maySee: () => true }, [])
    next.close()
    expect(eventsIn(await new Response(stream).text()).map(({ name }) => name)).toEqual(['reset'])
  })

  it('forgets by size as well', async () => {
    const { live, told } = world({ rememberedBytes: 1_000 })
    for (let n = 1; n <= 10; n++) live.emit('turn', { n, text: 'x'.repeat(200) }, 's')
    expect((await told({ since: 0 })).map(({ name }) => name)).toEqual(['reset'])
    const last = await told({ since: (await told({ since: 0 }))[0]?.id ?? 0 })
    expect(last).toEqual([])
  })

  it('lets a slow reader go without deltas first, then ends its stream; a quick one notices nothing', async () => {
    const { clock, live, open } = world({ bufferedBytes: 2_000 })
    const slow = new SlowReader(open())
    const quick = new SlowReader(open())
    for (let n = 1; n <= 6; n++) {
      live.emit('turn', { n, text: 'x'.repeat(200) }, 's')
      await quick.read()
    }
    live.emitDelta('s', { text: 'delta' }, join)
    await clock.advance(60)
    await quick.read()
    expect(live.streams).toBe(2)
    for (let n = 7; n <= 12; n++) {
      live.emit('turn', { n, text: 'x'.repeat(200) }, 's')
      await quick.read()
    }
    expect(live.streams).toBe(1)
    const read = await slow.read()
    expect(read.ended).toBe(true)
    const seen = numbers(read.events)
    expect(seen).toEqual(Array.from({ length: seen.length }, (_, at) => at + 1))
    const all = await quick.read()
    expect(all.ended).toBe(false)
    expect(numbers(all.events)).toEqual([1, 2, 3, 4, 5, 6, undefined, 7, 8, 9, 10, 11, 12])
  })

  it('tells only admins of status and links, and each reader only of conversations it may see', async () => {
    const { live, open } = world()
    const stream = open({ admin: false, maySee: (key) => key === 'mine' })
    live.emit('turn', { n: 1 }, 'theirs')
    live.emit('turn', { n: 2 }, 'mine')
    live.emit('link', { n: 3 })
    live.emit('log', { n: 4 })
    live.emitStatus({ turns: ['theirs'] })
    live.close()
    const events = eventsIn(await new Response(stream).text())
    expect(events.map(({ name, data }) => [name, data])).toEqual([
      ['turn', { n: 2 }],
      ['status', {}],
    ])
  })

  it('shows a sign of life every fifteen seconds', async () => {
    const { clock, live, open } = world()
    const reader = new SlowReader(open())
    await clock.advance(31_000)
    expect((await reader.read()).events.map(({ name }) => name)).toEqual(['status', 'status'])
    live.close()
    expect((await reader.read()).ended).toBe(true)
  })
})
