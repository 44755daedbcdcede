import { expect, it } from 'vitest'
import { openJournal } from '../../../src/base/journal.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { RunId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage, DeliveryFate } from '../../../src/core/inbound.ts'
import { Delivery } from '../../../src/gateway/delivery.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'

const RUN = 'run_1' as RunId
const MESSAGE: AcceptedMessage = {
  run: RUN,
  key: 's' as SessionKey,
  channel: 'webhook',
  account: 'u',
  messageId: '1',
  text: 'hi',
  attachments: [],
  route: {},
  replyTo: {},
  acceptedAt: 0,
}
const LIMITS = {
  rememberMs: 1_000_000,
  rememberedMessages: 100,
  rememberedBytes: 1_000_000,
  rememberedAccounts: 100,
  outboxPerAccount: 100,
}

/** A delivery whose answer meets these fates, one per attempt; `marks` says which attempts were marked as redelivered. */
async function openDelivery(
  files: MemoryFiles,
  fates: DeliveryFate[],
): Promise<{ readonly delivery: Delivery; readonly marks: boolean[] }> {
  const marks: boolean[] = []
  const delivery = new Delivery({
    clock: new ManualClock(1),
    log: silentLog,
    limits: LIMITS,
    send: async ({ redelivered }) => {
      marks.push(redelivered)
      return fates.shift() ?? 'delivered'
    },
  })
  delivery.attach(await openJournal({ files, directory: '/journal', topics: [delivery], log: silentLog }))
  return { delivery, marks }
}

async function answer(delivery: Delivery): Promise<void> {
  await delivery.accept(MESSAGE, { admit: () => undefined, alongside: () => [] })
  await delivery.answer([{ run: RUN, content: { kind: 'complete', text: 'answer' } }])
  await settle()
}

it('a redelivery that found no socket leaves the answer one that may have arrived: the next copy is marked, also after a restart', async () => {
  const files = new MemoryFiles()
  const { delivery, marks } = await openDelivery(files, ['unknown', 'waiting', 'waiting', 'waiting'])
  await answer(delivery)
  await delivery.available('webhook', 'u')
  expect(delivery.find(RUN)?.state).toBe('unknown')
  await delivery.resume('webhook', 'u', 0, (replyTo) => replyTo)
  expect(delivery.find(RUN)?.state).toBe('unknown')
  await delivery.resend(RUN, { account: 'u', replyTo: {} })
  await settle()
  expect(delivery.find(RUN)?.state).toBe('unknown')
  expect(marks).toEqual([false, true, true, true])
  const next = await openDelivery(files.kill(), ['delivered'])
  await next.delivery.available('webhook', 'u')
  expect(next.marks).toEqual([true])
  expect(next.delivery.find(RUN)?.state).toBe('delivered')
})

it('a first attempt that found no socket was never sent: the next one is not marked', async () => {
  const { delivery, marks } = await openDelivery(new MemoryFiles(), ['waiting', 'delivered'])
  await answer(delivery)
  expect(delivery.find(RUN)?.state).toBe('waiting')
  await delivery.available('webhook', 'u')
  expect(marks).toEqual([false, false])
})
