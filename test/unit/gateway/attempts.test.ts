import { expect, it } from 'vitest'
import { openJournal } from '../../../src/storage/files/journal.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { RunId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage, DeliveryFate } from '../../../src/core/inbound.ts'
import { Channels, Delivery } from '../../../src/gateway/delivery.ts'
import { LocalStorage } from '../../../src/storage/local/local-storage.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../../src/storage/local/message-rows.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { createMemoryStore } from '../../../src/transcript/memory-store.ts'

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
/** A delivery whose answer meets these fates, one per attempt; `marks` says which attempts were marked as redelivered. */
async function openDelivery(
  files: MemoryFiles,
  fates: DeliveryFate[],
): Promise<{ readonly delivery: Delivery; readonly storage: LocalStorage; readonly marks: boolean[] }> {
  const marks: boolean[] = []
  const storage = new LocalStorage({ clock: new ManualClock(1), log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
  const channels = new Channels()
  channels.add({
    name: 'webhook',
    start: async () => undefined,
    observe: () => undefined,
    deliver: async ({ redelivered }) => {
      marks.push(redelivered)
      return fates.shift() ?? 'delivered'
    },
    status: () => ({}),
    drain: () => undefined,
    close: async () => undefined,
  })
  const delivery = new Delivery({ clock: new ManualClock(1), log: silentLog, storage, channels })
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/journal',
    topics: storage.topics,
    log: silentLog,
  })
  const transcripts = createMemoryStore({
    clock: new ManualClock(1),
    ids: new SeededIds(),
    commit: (changes, owner) => storage.commitWith([], changes, owner),
  })
  storage.attach(journal, transcripts)
  return { delivery, storage, marks }
}

async function answer({ delivery, storage }: Awaited<ReturnType<typeof openDelivery>>): Promise<void> {
  await storage.inbox.accept(MESSAGE, { fingerprint: 'one' })
  await delivery.answer([{ run: RUN, content: { kind: 'complete', text: 'answer' } }])
  await settle()
}

async function stateOf(storage: LocalStorage): Promise<string | undefined> {
  return (await storage.inbox.find(RUN))?.state
}

it('a redelivery that found no socket leaves the answer one that may have arrived: the next copy is marked, also after a restart', async () => {
  const files = new MemoryFiles()
  const opened = await openDelivery(files, ['unknown', 'waiting', 'waiting', 'waiting'])
  const { delivery, storage, marks } = opened
  await answer(opened)
  await delivery.available('webhook', 'u')
  expect(await stateOf(storage)).toBe('unknown')
  await delivery.resume('webhook', 'u', 0, (replyTo) => replyTo)
  expect(await stateOf(storage)).toBe('unknown')
  await delivery.resend(RUN, { account: 'u', replyTo: {} })
  await settle()
  expect(await stateOf(storage)).toBe('unknown')
  expect(marks).toEqual([false, true, true, true])
  const next = await openDelivery(files.kill(), ['delivered'])
  await next.delivery.available('webhook', 'u')
  expect(next.marks).toEqual([true])
  // An empty transaction confirms everything that was called before it.
  await next.storage.transact([])
  expect(await stateOf(next.storage)).toBe('delivered')
})

it('a first attempt that found no socket was never sent: the next one is not marked', async () => {
  const opened = await openDelivery(new MemoryFiles(), ['waiting', 'delivered'])
  const { delivery, storage, marks } = opened
  await answer(opened)
  expect(await stateOf(storage)).toBe('waiting')
  await delivery.available('webhook', 'u')
  expect(marks).toEqual([false, false])
})

it('an answer that another commit gave before the last words of the turn were stored is left to that one', async () => {
  const { delivery, storage, marks } = await openDelivery(new MemoryFiles(), [])
  await storage.inbox.accept(MESSAGE, { fingerprint: 'one' })
  const { transcripts } = storage
  let isMeanwhile = true
  Object.defineProperty(storage, 'transcripts', {
    value: {
      ...transcripts,
      // As after a loss of the database: what was given up is done after all.
      async open(sessionId: SessionId, signal: AbortSignal) {
        const transcript = await transcripts.open(sessionId, signal)
        if (isMeanwhile)
          await storage.transact([{ kind: 'answer', run: RUN, content: { kind: 'cancelled', by: 'user' } }])
        isMeanwhile = false
        return transcript
      },
    },
  })
  const drafts = [{ type: 'message', message: { role: 'user', content: 'hi', timestamp: 1 } }] as const
  await delivery.answer([{ run: RUN, content: { kind: 'cancelled', by: 'reset' } }], {
    entries: { sessionId: 'sess_1' as SessionId, drafts },
  })
  await settle()
  expect(marks).toEqual([])
})
