import { describe, expect, it } from 'vitest'
import { isRecord } from '../../../src/base/json.ts'
import type { Entry } from '../../../src/core/entry.ts'
import { requestDetail, requestRows } from '../../../src/dashboard/request-views.ts'
import {
  calibrationFrom,
  inputOfRecord,
  latestRecord,
  providerOfRecord,
  requestRecords,
  sizeOfHistory,
  budgetOfRecord,
} from '../../../src/history/request-record.ts'
import { decodeReport, renderReport } from '../../../src/history/report.ts'
import { latestSetup } from '../../../src/turn/setup.ts'
import { withRequests } from '../../support/file-fuzz/requests.ts'
import { generateEntries } from '../../support/fuzz/generate.ts'
import { createRandom } from '../../support/fuzz/random.ts'

/** A short conversation with two requests: the first stored whole, the second as a difference. */
function conversation(): readonly Entry[] {
  for (let seed = 1; ; seed++) {
    const random = createRandom(seed)
    const entries = withRequests(generateEntries(random, 1), random)
    const hasDifference = entries.some(
      (entry) => entry.type === 'custom' && isRecord(entry.data) && 'base' in entry.data,
    )
    if (hasDifference && entries.length < 10) return entries
  }
}

const ENTRIES = conversation()
const ODD: readonly unknown[] = [
  undefined,
  null,
  -1,
  7.5,
  1e308,
  true,
  '',
  'text',
  {},
  [],
  [null],
  { toString: 1, then: 'x', length: -1 },
]

const REBUILD = { sessionId: 's', find: () => ({ encode: () => ({ body: '{}' }) }) as never, withBody: true }

/** The value once for every place in it, with something odd there. */
function* damaged(value: unknown, odd: unknown): Generator {
  yield odd
  if (Array.isArray(value)) {
    for (const [at, inner] of value.entries()) for (const other of damaged(inner, odd)) yield value.with(at, other)
  } else if (isRecord(value)) {
    for (const [key, inner] of Object.entries(value))
      for (const other of damaged(inner, odd)) yield { ...value, [key]: other }
  }
}

function readEverything(entries: readonly Entry[]): void {
  sizeOfHistory(entries)
  latestSetup(entries)
  latestRecord(entries)
  calibrationFrom(entries, { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5' })
  for (const record of requestRecords(entries)) {
    const report = decodeReport(record.report)
    if (report !== undefined) renderReport(report)
    inputOfRecord(record, entries)
    providerOfRecord(record)
    budgetOfRecord(record)
  }
  JSON.stringify(requestRows(entries, { after: 0, limit: 100 }))
  for (const { n } of requestRecords(entries).slice(-1)) requestDetail(entries, n, REBUILD)
}

describe('records of requests and setups', () => {
  it.each(ODD)('can be read when any value in them is %j', (odd) => {
    const failures: unknown[] = []
    for (const [at, entry] of ENTRIES.entries()) {
      if (entry.type !== 'custom' || !['clew.request', 'clew.setup'].includes(entry.customType)) continue
      for (const data of damaged(entry.data, odd)) {
        try {
          readEverything(ENTRIES.with(at, { ...entry, data }))
        } catch (error) {
          failures.push([JSON.stringify(data).slice(0, 200), error])
        }
      }
    }
    expect(failures.slice(0, 3)).toEqual([])
  })
})

describe('a report', () => {
  it('takes no word for a message that is none', () => {
    const words = 'huge '.repeat(20_000)
    expect(decodeReport({ v: 1, reasons: [], m: `${words}u5:e1`, c: [] })?.messages).toEqual([
      { role: 'user', kind: 'user', tokens: 5, entries: ['e1'] },
    ])
  })
})
