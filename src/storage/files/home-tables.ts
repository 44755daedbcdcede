import type { Clock } from '../../base/clock.ts'
import type { Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { JournalTopic } from '../../base/journal.ts'
import type { Log } from '../../base/log.ts'
import { TranscriptTopic } from '../../transcript/topic.ts'
import { CleanupLedger } from '../local/cleanup-ledger.ts'
import { SessionDirectory } from '../local/directory.ts'
import { MessageTable } from '../local/message-table.ts'
import { StateTable } from '../local/state-table.ts'
import { UsageLedger } from '../local/usage-ledger.ts'
import { TableFile } from '../tables/table-file.ts'
import { fileSizes } from './file-sizes.ts'
import { ExportHistory } from './sessions-file.ts'

const ALL = Number.POSITIVE_INFINITY
const UNLIMITED = {
  rememberMs: ALL,
  rememberedMessages: ALL,
  rememberedBytes: ALL,
  rememberedAccounts: ALL,
  outboxPerAccount: ALL,
}

export interface HomeTablesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly files: Files
  readonly ids: Ids
  readonly paths: { readonly rows: string }
}

/** Everything that the journal of a home holds, for a copy: nothing is forgotten, whatever the limits of its gateway. */
export class HomeTables {
  readonly rows: SessionDirectory
  readonly messages: MessageTable
  readonly usage: UsageLedger
  readonly savings = new CleanupLedger(ALL)
  readonly state = new StateTable({}, ALL)
  readonly exports: ExportHistory
  readonly transcripts: TranscriptTopic
  /** A topic too, where something is to be written. */
  readonly kept: TableFile

  private constructor({ clock, log, files, ids, paths }: HomeTablesOptions) {
    this.kept = new TableFile({ files, ids, log, directory: paths.rows })
    this.rows = new SessionDirectory(clock, this.kept)
    this.exports = new ExportHistory(this.rows)
    this.transcripts = new TranscriptTopic(fileSizes(this.kept))
    this.messages = new MessageTable({ clock, log, limits: UNLIMITED })
    this.usage = new UsageLedger(clock, { days: ALL, sessions: ALL, hours: ALL, sessionHours: ALL }, this.kept)
  }

  static async open(options: HomeTablesOptions): Promise<HomeTables> {
    const tables = new HomeTables(options)
    await tables.kept.open()
    return tables
  }

  get topics(): readonly JournalTopic[] {
    const { rows, messages, usage, savings, state, exports, transcripts } = this
    return [rows, messages, usage, savings, ...state.topics, exports, transcripts]
  }
}
