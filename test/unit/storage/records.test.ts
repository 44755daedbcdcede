import { describe, expect, it } from 'vitest'
import type { JournalTopic } from '../../../src/base/journal.ts'
import { NOTHING_SPENT, SPENT_FIELDS } from '../../../src/core/spent.ts'
import { silentLog } from '../../../src/base/log.ts'
import { HomeTables } from '../../../src/storage/files/home-tables.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

/** Every kind of record in the journal of a home, by topic; each as it is written today. */
const spent = SPENT_FIELDS.map((field) => NOTHING_SPENT[field])
const totals = { steps: 1, messages: 2, tokensSaved: 3, netTokensSaved: -4, netBasis: 'measured' }
const row = { sessionId: 'sess_1', updatedAt: 5 }
const message = {
  run: 'run_1',
  key: 'k',
  channel: 'webhook',
  account: 'ann',
  messageId: 'm',
  text: 'hi',
  attachments: [],
  route: {},
  replyTo: {},
  acceptedAt: 1,
}
const content = { kind: 'complete', text: 'hello' }
const KINDS: Readonly<Record<string, readonly unknown[]>> = {
  index: [
    ['k', row],
    ['k', null],
    ['k', null, 5],
    ['k', { updatedAt: 5 }, 'sess_1', 'ann'],
    ['k', { updatedAt: 5 }, null, ['title']],
  ],
  delivery: [
    { do: 'accept', message, fingerprint: 'f' },
    { do: 'answer', run: 'run_1', seq: 1, content, at: 1 },
    { do: 'state', run: 'run_1', state: 'delivered' },
    { do: 'reset-done', run: 'run_1' },
    { do: 'life-began', deaths: [['run_1', 1]] },
    { do: 'resumed', run: 'run_1' },
    { do: 'paused', run: 'run_1' },
    { do: 'life-ended' },
    { do: 'forget', runs: ['run_1'] },
    { do: 'seq', account: 'ann', upTo: 7 },
    { do: 'run', run: { message, fingerprint: 'f', state: 'delivered', seq: 1, content } },
    { do: 'seq-floor', upTo: 7 },
    { do: 'life', isLiving: true },
  ],
  usage: [
    { session: 'sess_1', spent },
    { session: 'sess_1', spent: null },
    { day: '2026-11-16', spent },
    { hour: 9, model: 'demo', channel: 'webhook', spent },
    { hour: 9, session: 'sess_1', spent },
    [
      { day: '2026-11-16', spent },
      { hour: 9, session: 'sess_1', spent },
    ],
  ],
  cleanups: [
    { session: 'sess_1', totals },
    { session: 'sess_1', totals: null },
  ],
  xiaoyi: [{ section: 'pins', key: 'host', value: 'aa' }],
  windows: [{ model: 'demo', tokens: 1 }],
  state: [['section', 'key', 1]],
  'index-export': [['0f0f', '1:2 3 4', true]],
  rows: [{ generation: 2, end: 300 }],
  transcript: [
    { s: 'sess_1', o: 0, h: { type: 'session' }, e: [{ id: 'a' }] },
    { s: 'sess_1', z: 10 },
    { s: 'sess_1', gone: true },
  ],
}

/** The same with one thing of another type; what is left must not be taken for the record. */
const SPOILT: Readonly<Record<string, readonly unknown[]>> = {
  index: [
    [7, row],
    ['k', 'row'],
    ['k', { updatedAt: 5 }],
    ['k', { ...row, updatedAt: 'now' }],
    ['k', row, 7],
  ],
  delivery: [
    { do: 'accept', message: { ...message, account: 1 }, fingerprint: 'f' },
    { do: 'answer', run: 'run_1', seq: 1, content: { kind: 'complete' } },
    { do: 'answer', run: 1, seq: 1, content },
    { do: 'state', run: 'run_1', state: 'lost' },
    { do: 'life-began', deaths: 'run_1' },
    { do: 'seq', account: 'ann', upTo: 'seven' },
    { do: 'run', run: { message, fingerprint: 'f', state: 'open', seq: 1, content } },
    { do: 'something else' },
  ],
  usage: [
    { session: 'sess_1', spent: 'much' },
    { spent },
    { hour: 9, model: 'demo', spent },
    [{ day: '2026-11-16', spent }, { spent }],
  ],
  cleanups: [{ session: 'sess_1', totals: { ...totals, steps: 'one' } }, { totals }],
  xiaoyi: [{ section: 'pins', key: 'host', value: 1 }],
  windows: [{ tokens: 1 }],
  state: [['section', 'key'], { section: 'key' }],
  'index-export': [['0f0f']],
  rows: [{ generation: 1 }, { end: 1 }],
  transcript: [
    { s: 'sess_1', e: [] },
    { o: 0, e: [] },
    { s: 'sess_1', o: '0', e: [] },
  ],
}

const tables = await HomeTables.open({
  clock: new ManualClock(),
  log: silentLog,
  files: new MemoryFiles(),
  ids: new SeededIds(),
  paths: { rows: '/home/rows' },
})
const topics = new Map<string, JournalTopic>([...tables.topics, tables.kept].map((topic) => [topic.name, topic]))

describe('records of the journal', () => {
  it('are listed here by topic', () => {
    expect(Object.keys(KINDS).toSorted()).toEqual([...topics.keys()].toSorted())
    expect(Object.keys(SPOILT).toSorted()).toEqual([...topics.keys()].toSorted())
  })

  it.each([...topics.values()].map((topic) => [topic.name, topic] as const))(
    'of %s are read as written',
    (name, topic) => {
      for (const data of KINDS[name] ?? []) {
        const read = topic.read(JSON.parse(JSON.stringify(data)))
        expect(JSON.parse(JSON.stringify(read))).toEqual(data)
        expect(() => topic.apply(read)).not.toThrow()
      }
      for (const data of topic.snapshot()) expect(topic.read(JSON.parse(JSON.stringify(data)))).toBeDefined()
    },
  )

  it.each([...topics.values()].map((topic) => [topic.name, topic] as const))(
    'of %s are refused when spoilt',
    (name, topic) => {
      for (const data of [...(SPOILT[name] ?? []), null, 7, {}, []])
        expect(topic.read(data), JSON.stringify(data)).toBeUndefined()
    },
  )
})
