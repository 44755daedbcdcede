import { describeInbox } from './inbox.ts'
import { describeOutbox } from './outbox.ts'
import { describeOwnership } from './ownership.ts'
import { describeSessions } from './sessions.ts'
import { describeState } from './state.ts'
import { describeUsage } from './usage.ts'
import type { StorageSuite } from './given.ts'

/** Everything a storage promises. A storage that is stored elsewhere passes the same suites. */
export const describeStorage: StorageSuite = (name, runner, open) => {
  for (const suite of [
    describeSessions,
    describeInbox,
    describeOutbox,
    describeUsage,
    describeState,
    describeOwnership,
  ])
    suite(name, runner, open)
}
