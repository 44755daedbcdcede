import type { RunId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import type { Change } from '../../../src/core/change.ts'
import type { ContractRunner } from '../../../src/testing/contracts/runner.ts'
import type { Storage } from '../../../src/storage/storage.ts'

/** A storage to be judged, opened and started. */
export interface StorageUnderTest {
  readonly storage: Storage
  /**
   * The same data after the process was killed, in a new one that was started. Leave out when nothing outlives the
   * process: the cases about restarts are then not run.
   */
  restart?(): Promise<StorageUnderTest>
  close(): Promise<void>
}

export type OpenStorage = () => Promise<StorageUnderTest>

/** A suite over one group of verbs. */
export type StorageSuite = (name: string, runner: ContractRunner, open: OpenStorage) => void

export const KEY = 's' as SessionKey
export const OTHER_KEY = 't' as SessionKey

export function messageOf(run: string, more: Partial<AcceptedMessage> = {}): AcceptedMessage {
  return {
    run: run as RunId,
    key: KEY,
    channel: 'webhook',
    account: 'ann',
    messageId: run,
    text: `text of ${run}`,
    attachments: [],
    route: {},
    replyTo: { socket: 1 },
    acceptedAt: 1_000_000,
    ...more,
  }
}

export function begin(key: SessionKey, sessionId: string, owner = 'ann'): Change & { readonly kind: 'begin-session' } {
  return { kind: 'begin-session', key, sessionId: sessionId as SessionId, owner, touched: true }
}

export async function accept(storage: Storage, run: string, more: Partial<AcceptedMessage> = {}): Promise<RunId> {
  const message = messageOf(run, more)
  const accepted = await storage.inbox.accept(message, { fingerprint: `print of ${run}` })
  if (accepted.kind !== 'fresh') throw new Error(`${run} is ${accepted.kind}`)
  return message.run
}

export async function answer(storage: Storage, run: string, text = `answer to ${run}`): Promise<void> {
  await storage.transact([{ kind: 'answer', run: run as RunId, content: { kind: 'complete', text } }])
}

/** Runs the body over an open storage and closes it. */
export const over =
  (open: OpenStorage, body: (storage: Storage) => Promise<void>): (() => Promise<void>) =>
  async () => {
    const opened = await open()
    try {
      await body(opened.storage)
    } finally {
      await opened.close()
    }
  }

/** Writes, is killed, and looks again. */
export const overRestart =
  (
    open: OpenStorage,
    write: (storage: Storage) => Promise<void>,
    look: (storage: Storage) => Promise<void>,
  ): (() => Promise<void>) =>
  async () => {
    const opened = await open()
    await write(opened.storage)
    if (opened.restart === undefined) return opened.close()
    const again = await opened.restart()
    try {
      await look(again.storage)
    } finally {
      await again.close()
    }
  }
