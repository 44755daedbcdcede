import { expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import type { RunId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { MessageTable } from '../../../src/storage/local/message-table.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../../src/storage/local/message-rows.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

it('a message read again over a snapshot that knows its answer is not opened once more', () => {
  const table = new MessageTable({ clock: new ManualClock(), log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
  const run = 'run_1' as RunId
  const message: AcceptedMessage = {
    run,
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
  const accepted = { do: 'accept', message, fingerprint: 'f' } as const
  table.apply(accepted)
  table.apply({ do: 'answer', run, seq: 1, content: { kind: 'complete', text: 'hello' }, at: 1 })
  table.apply(accepted)
  expect(table.rows.get(run)).toMatchObject({ state: 'unknown', content: { text: 'hello' } })
  expect(table.rows.open).toBe(0)
})
