import { expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import type { RunId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { MessageTable } from '../../../src/storage/local/message-table.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../../src/storage/local/message-rows.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const MESSAGE: AcceptedMessage = {
  run: 'run_1' as RunId,
  key: 'k' as SessionKey,
  channel: 'webhook',
  account: 'ann',
  messageId: 'm',
  text: 'hi',
  attachments: [],
  route: {},
  replyTo: {},
  acceptedAt: 1,
}

it('a message read again over a snapshot that knows its answer is not opened once more', () => {
  const table = new MessageTable({ clock: new ManualClock(), log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
  const message = MESSAGE
  const { run } = message
  const accepted = { do: 'accept', message, fingerprint: 'f' } as const
  table.apply(accepted)
  table.apply({ do: 'answer', run, seq: 1, content: { kind: 'complete', text: 'hello' }, at: 1 })
  table.apply(accepted)
  expect(table.rows.get(run)).toMatchObject({ state: 'unknown', content: { text: 'hello' } })
  expect(table.rows.openCount).toBe(0)
  expect(table.rows.open(message.key)).toEqual([])
})

it('open messages keep the order of acceptance, whatever is noted of them, until they are answered or forgotten', () => {
  const table = new MessageTable({ clock: new ManualClock(), log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
  const accept = (run: string, key: string): void =>
    table.apply({ do: 'accept', message: { ...MESSAGE, run: run as RunId, key: key as SessionKey }, fingerprint: run })
  accept('a', 'k')
  accept('b', 'other')
  accept('c', 'k')
  table.apply({ do: 'life-began', deaths: [['a' as RunId, 1]] })
  table.apply({ do: 'reset-done', run: 'a' as RunId })
  const open = (key?: string): readonly string[] =>
    table.rows.open(key as SessionKey | undefined).map(({ message }) => message.run)
  expect(open()).toEqual(['a', 'b', 'c'])
  expect(open('k')).toEqual(['a', 'c'])
  table.apply({ do: 'answer', run: 'a' as RunId, seq: 1, content: { kind: 'complete', text: 'hello' }, at: 1 })
  table.apply({ do: 'forget', runs: ['b' as RunId] })
  expect(open()).toEqual(['c'])
  expect(open('other')).toEqual([])
  expect(table.rows.openCount).toBe(1)
})
