import { describe, expect, it } from 'vitest'
import { decodeDeliveryRecord } from '../../../src/storage/local/delivery-record.ts'

const MESSAGE = {
  run: 'run_1',
  key: 'k',
  channel: 'webhook',
  account: 'u',
  messageId: '1',
  text: 'hi',
  attachments: [{ name: 'a', mimeType: 'm', path: '/p', bytes: 1 }],
  route: {},
  replyTo: {},
  acceptedAt: 1,
}
const CONTENT = { kind: 'complete', text: 'done' }
const RECORDS = [
  { do: 'accept', message: MESSAGE, fingerprint: 'f' },
  { do: 'answer', run: 'run_1', seq: 1, content: CONTENT },
  { do: 'answer', run: 'run_1', seq: 1, content: { kind: 'error', code: 'INTERNAL', message: 'm', partialText: '' } },
  { do: 'answer', run: 'run_1', seq: 1, content: { kind: 'cancelled', by: 'user' } },
  { do: 'state', run: 'run_1', state: 'delivered' },
  { do: 'reset-done', run: 'run_1' },
  { do: 'forget', runs: ['run_1'] },
  { do: 'seq', account: 'u', upTo: 1024 },
  { do: 'seq-floor', upTo: 0 },
  { do: 'run', run: { message: MESSAGE, fingerprint: 'f', state: 'unknown', seq: 1, content: CONTENT } },
  { do: 'run', run: { message: MESSAGE, fingerprint: 'f', state: 'open', seq: 0 } },
]

const ODD: readonly unknown[] = [undefined, null, 5, true, 'odd', {}, [], [null]]

/** The same with one field at any depth replaced, for every field and every odd value. */
function variants(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, field]: [string, unknown]) =>
    [...ODD, ...variants(field)].map((odd) =>
      Array.isArray(value) ? value.with(Number(key), odd) : { ...value, [key]: odd },
    ),
  )
}

describe('a record of the journal', () => {
  it.each(RECORDS)('is read as it is: $do', (record) => {
    expect(decodeDeliveryRecord(record)).toBe(record)
  })

  it('of any other shape is none, or one whose fields have their types', () => {
    for (const record of RECORDS) {
      for (const odd of variants(record)) {
        const read = decodeDeliveryRecord(odd)
        if (read === undefined) continue
        expect(decodeDeliveryRecord(read)).toBe(read)
        const message = read.do === 'accept' ? read.message : read.do === 'run' ? read.run.message : undefined
        if (message === undefined) continue
        expect(typeof message.text).toBe('string')
        expect(Array.isArray(message.attachments)).toBe(true)
        expect([typeof message.route, typeof message.replyTo]).toEqual(['object', 'object'])
      }
    }
    for (const odd of ODD) expect(decodeDeliveryRecord(odd)).toBeUndefined()
    expect(decodeDeliveryRecord({ do: 'constructor' })).toBeUndefined()
  })

  it('of an accepted message is kept for what it could do without', () => {
    const { text: _text, attachments: _attachments, route: _route, ...older } = MESSAGE
    expect(decodeDeliveryRecord({ do: 'accept', message: older, fingerprint: 'f' })).toMatchObject({
      message: { run: 'run_1', text: '', attachments: [], route: {} },
    })
  })
})
