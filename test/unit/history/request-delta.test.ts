import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { stateOf } from '../../../src/history/request-delta.ts'
import {
  latestRecord,
  replayRequests,
  REQUEST_ENTRY_TYPE,
  requestRecords,
  sizeOfHistory,
  storedForm,
} from '../../../src/history/request-record.ts'
import { converse } from '../../support/recorded-conversation.ts'

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const bytesOf = (entry: Entry | undefined): number => JSON.stringify(entry).length

describe('request records as differences', () => {
  const SEED = 20_261_117
  it.each([
    [1, 0],
    [2, 0],
    [3, 8],
    [4, 20],
  ])(`give back every whole record, whatever changes between requests (seed ${SEED} + %i, limit %i)`, (more, limit) => {
    const { entries, whole } = converse(90, SEED + more, true, limit)
    const read = [...replayRequests(entries)].map(({ at }) => entries[at]?.id)
    expect(read).toEqual([...whole.keys()])
    expect(asJson(requestRecords(entries))).toEqual(asJson([...whole.values()]))
    expect(asJson(latestRecord(entries))).toEqual(asJson([...whole.values()].at(-1)))
  })

  it('stay small however long a conversation gets, and whole ones are few', () => {
    const { entries } = converse(400, SEED, false)
    const records = entries.filter((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
    const wholes = records.filter((entry) => entry.type === 'custom' && !JSON.stringify(entry.data).includes('"base"'))
    expect(wholes.length).toBeLessThan(8)
    expect(wholes.length).toBeGreaterThan(1)
    expect(bytesOf(records[398])).toBeLessThan(500)
    const text = entries.reduce((sum, entry) => sum + (entry.type === 'message' ? bytesOf(entry) : 0), 0)
    const all = records.reduce((sum, entry) => sum + bytesOf(entry), 0)
    console.info(`400 requests: ${all} bytes of records, ${wholes.length} whole, beside ${text} bytes of messages`)
    expect(all).toBeLessThan(2 * text)
  })

  it('stay small while the model sees a window of turns that slides', () => {
    const { entries, whole } = converse(400, SEED, false, 50)
    const records = entries.filter((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
    const all = records.reduce((sum, entry) => sum + bytesOf(entry), 0)
    console.info(`400 requests of 50 turns each: ${all} bytes of records`)
    expect(all).toBeLessThan(200_000)
    expect(asJson(requestRecords(entries))).toEqual(asJson([...whole.values()]))
    // What a request shares with the one before is where the window has not moved yet.
    expect(Array.from(replayRequests(entries), ({ kept }) => kept).slice(60)).toEqual(Array(340).fill(0))
  })

  it('are written whole when what they would differ from is not in view, and passed over when it is lost', () => {
    const { entries } = converse(5, SEED, false)
    const at = entries.findIndex((entry) => entry.type === 'custom')
    const cut = entries.slice(at + 1)
    expect(requestRecords(cut)).toEqual([])
    expect(latestRecord(cut)).toBeUndefined()
    expect(sizeOfHistory(cut).messages).toBeGreaterThan(0)
    const [first] = requestRecords(entries)
    expect(first).toBeDefined()
    const state = first === undefined ? undefined : stateOf(first)
    if (state === undefined) throw new Error('the record cannot be taken apart')
    const { record, reasons, messages, rows } = state
    const next = { record, reasons, messages: [messages.items], rows: rows.map(({ items }) => [items]) }
    expect(storedForm(cut, next)).toEqual(first)
  })
})
