import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import * as views from '../../../src/dashboard/request-views.ts'
import type { Slices } from '../../../src/base/loop-work.ts'
import { estimateStoredTokens } from '../../../src/dashboard/stored-tokens.ts'
import { decodeReport } from '../../../src/history/report.ts'
import { requestRecords } from '../../../src/history/request-record.ts'
import { processorMs } from '../../support/processor-time.ts'
import { converse } from '../../support/recorded-conversation.ts'

const SEED = 20_261_118
const ALL = { after: 0, limit: 1_000_000 }
const NOWHERE = {
  sessionId: 's',
  find: () => ({ encode: () => ({ model: 'm', body: '' }) }),
  withBody: false,
}

/** All slices of it at once. */
function whole<T>(slices: Slices<T>): T {
  for (;;) {
    const step = slices.next()
    if (step.done === true) return step.value
  }
}

const requestRows = (...query: Parameters<typeof views.requestRows>) => whole(views.requestRows(...query))
const requestDetail = (...query: Parameters<typeof views.requestDetail>) => whole(views.requestDetail(...query))

/** Each row by itself, from its whole record. */
function plainRows(entries: readonly Entry[]) {
  return requestRecords(entries).map((record) => {
    const messages = decodeReport(record.report)?.messages ?? []
    const sent = new Set(messages.flatMap((message) => message.entries))
    const end = entries.findIndex(({ id }) => id === record.leaf) + 1
    const left = entries
      .slice(0, end)
      .flatMap((entry) => (entry.type === 'message' && !sent.has(entry.id) ? entry : []))
    const tokens = left.reduce((sum, entry) => sum + estimateStoredTokens(entry), 0)
    return { n: record.n, messages: messages.length, leftOut: { messages: left.length, tokens } }
  })
}

describe('the rows of past requests', () => {
  it.each([1, 2, 3, 4])(`say of each what it held and what it left out (seed ${SEED} + %i)`, (more) => {
    const { entries } = converse(90, SEED + more, true)
    const plain = plainRows(entries)
    expect(requestRows(entries, ALL)['requests']).toMatchObject(plain)
    expect(plain.some((row) => JSON.stringify(row).includes('"messages":0'))).toBe(true)
    for (const n of [1, 40, 90]) {
      const { leftOut, messages } = plain[n - 1] ?? {}
      expect(requestDetail(entries, n, NOWHERE)).toMatchObject({ n, leftOut, messages: { length: messages } })
    }
  })

  it('leave out nothing that a damaged record names before it was said', () => {
    const { entries } = converse(8, SEED, false)
    const text = JSON.stringify(entries)
    const late = entries.findLast((entry) => entry.type === 'message')?.id ?? ''
    const damaged = JSON.parse(text.replace('u7:e0"', `u7:${late}"`)) as Entry[]
    expect(JSON.stringify(damaged)).not.toBe(text)
    expect(requestRows(damaged, ALL)['requests']).toMatchObject(plainRows(damaged))
  })

  it('come in pages', () => {
    const { entries } = converse(10, SEED, false)
    const first = requestRows(entries, { after: 0, limit: 4 })
    expect(first['nextCursor']).toBe('4')
    const all = requestRows(entries, ALL)
    expect(all).not.toHaveProperty('nextCursor')
    const rest = requestRows(entries, { after: 4, limit: 6 })
    expect(rest).not.toHaveProperty('nextCursor')
    expect([first['requests'], rest['requests']].flat()).toEqual(all['requests'])
  })

  it('are read in slices of some milliseconds, from the first request to the last', () => {
    const { entries } = converse(900, SEED, false)
    const slices = views.requestRows(entries, ALL)
    let longest = 0
    let count = 0
    for (let isDone = false; !isDone; count++)
      longest = Math.max(
        longest,
        processorMs(() => (isDone = slices.next().done === true), 1),
      )
    expect(count).toBe(5)
    console.info(`longest slice of 900 requests: ${longest.toFixed(1)} ms of processor time`)
    const detail = views.requestDetail(entries, 900, NOWHERE)
    let steps = 1
    while (detail.next().done !== true) steps++
    expect(steps).toBeGreaterThan(8)
  })

  it('read what is stored of them a constant number of times, not its square', () => {
    const { entries } = converse(800, SEED, false)
    const [few, many] = [entries.slice(0, entries.length / 4), entries].map((part) => {
      const counted = countReads(part)
      requestRows(counted.entries, ALL)
      return counted.reads()
    })
    console.info(`fields read for 200 requests: ${few}, for 800: ${many}`)
    // The square would be sixteen times.
    expect(many).toBeLessThan(5 * (few ?? 0))
  })
})

/** The same entries, which count how often a field of theirs is read. */
function countReads(entries: readonly Entry[]): { readonly entries: readonly Entry[]; reads(): number } {
  let reads = 0
  const known = new WeakMap<object, object>()
  const counted = <T>(value: T): T => {
    if (typeof value !== 'object' || value === null) return value
    const watched =
      known.get(value) ??
      new Proxy(value, {
        get(target, name) {
          reads++
          return counted(Reflect.get(target, name) as unknown)
        },
      })
    known.set(value, watched)
    return watched as T
  }
  return { entries: entries.map((entry) => counted(structuredClone(entry))), reads: () => reads }
}
