import type { Clock } from '../../base/clock.ts'
import type { JournalTopic } from '../../base/journal.ts'
import type { Log } from '../../base/log.ts'
import { TranscriptTopic } from '../../transcript/topic.ts'
import { CleanupLedger } from '../local/cleanup-ledger.ts'
import { SessionDirectory } from '../local/directory.ts'
import { MessageTable } from '../local/message-table.ts'
import { StateTable } from '../local/state-table.ts'
import { UsageLedger } from '../local/usage-ledger.ts'
import { ExportHistory } from './sessions-file.ts'

const ALL = Number.POSITIVE_INFINITY
const UNLIMITED = {
  rememberMs: ALL,
  rememberedMessages: ALL,
  rememberedBytes: ALL,
  rememberedAccounts: ALL,
  outboxPerAccount: ALL,
}

/** Everything that the journal of a home holds, for a copy: nothing is forgotten, whatever the limits of its gateway. */
export class HomeTables {
  readonly rows: SessionDirectory
  readonly messages: MessageTable
  readonly usage: UsageLedger
  readonly savings = new CleanupLedger(ALL)
  readonly state = new StateTable({}, ALL)
  readonly exports = new ExportHistory()
  readonly transcripts = new TranscriptTopic()

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.rows = new SessionDirectory(clock)
    this.messages = new MessageTable({ clock, log, limits: UNLIMITED })
    this.usage = new UsageLedger(clock, { days: ALL, sessions: ALL, hours: ALL, sessionHours: ALL })
  }

  get topics(): readonly JournalTopic[] {
    const { rows, messages, usage, savings, state, exports, transcripts } = this
    return [rows, messages, usage, savings, ...state.topics, exports, transcripts]
  }
}
