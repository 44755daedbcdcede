import { NEVER } from '../../base/async.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic, RecordLog } from '../../base/journal.ts'
import type { Log } from '../../base/log.ts'
import type { Change, Owner } from '../../core/change.ts'
import { assertNever } from '../../base/assert-never.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
import { type AcceptedMessage, ownerOf } from '../../core/inbound.ts'
import type { TranscriptStore } from '../../transcript/store.ts'
import { LATER_MS, mayBeLater } from '../later-commit.ts'
import type { Acceptance, Accepted, Claim, Committed, Notice, Recalled, Storage } from '../storage.ts'
import { CleanupLedger } from './cleanup-ledger.ts'
import type { Tables } from '../tables/table.ts'
import { SessionDirectory } from './directory.ts'
import { Epochs } from './epochs.ts'
import { journalError } from './journal-error.ts'
import { isMessageChange, MessageTable } from './message-table.ts'
import { accountOf, DEFAULT_MESSAGE_LIMITS, type DeliveryLimits, type MessageRow } from './message-rows.ts'
import { MemoryArchivedRows, SessionArchive, type ArchivedRows } from './session-archive.ts'
import { StateTable } from './state-table.ts'
import { DEFAULT_LEDGER, UsageLedger, type LedgerLimits } from './usage-ledger.ts'

export interface LocalStorageDeps {
  readonly clock: Clock
  readonly log: Log
  readonly limits?: DeliveryLimits
  readonly usage?: LedgerLimits
  /** Entries of a section of the state, by section; 2 000 for others. */
  readonly state?: Readonly<Record<string, number>>
  /** Where rows are that are not in use; without it all are in memory. */
  readonly tables?: Tables
}

/**
 * The storage of one process: tables in memory, changed only by records of a log. What a transaction writes is decided
 * when it is called; it counts when its records are durable.
 */
export class LocalStorage implements Storage {
  readonly rows: SessionDirectory
  readonly messages: MessageTable
  readonly #usage: UsageLedger
  readonly #cleanups: CleanupLedger
  readonly #state: StateTable
  readonly #epochs = new Epochs()
  readonly #listeners = new Set<(notice: Notice) => void>()
  /** Messages being accepted, by everything a copy of them is recognised by. */
  readonly #accepting = new Map<string, Promise<unknown>>()
  /** Owners of sessions that messages under way begin. */
  readonly #beginning = new Map<string, { readonly owner: string; messages: number }>()
  #suspects: ReadonlyMap<RunId, number> = new Map()
  #records: RecordLog | undefined
  /** Records that wait for the next commit. */
  #later: Later | undefined
  readonly #clock: Clock
  #transcripts: TranscriptStore | undefined
  #archived: SessionArchive | undefined

  constructor(deps: LocalStorageDeps) {
    const { clock, log, limits = DEFAULT_MESSAGE_LIMITS, usage = DEFAULT_LEDGER, state = {}, tables } = deps
    this.#clock = clock
    this.rows = new SessionDirectory(clock, tables)
    this.messages = new MessageTable({ clock, log, limits })
    this.#usage = new UsageLedger(clock, usage, tables)
    this.#cleanups = new CleanupLedger(usage.sessions)
    this.#state = new StateTable(state)
  }

  /** Memory of what is remembered, by kind, roughly. */
  heldBytes(): {
    readonly remembered: number
    readonly accounts: number
    readonly sessions: number
    readonly usage: number
  } {
    return {
      remembered: this.messages.rows.bytes,
      accounts: this.messages.accountBytes,
      sessions: this.rows.heldBytes,
      usage: this.#usage.heldBytes + this.#cleanups.heldBytes,
    }
  }

  /** What the log applies records to. */
  get topics(): readonly JournalTopic[] {
    return [this.rows, this.messages, this.#usage, this.#cleanups, ...this.#state.topics]
  }

  /** After recovery: from here on what is applied is this program's own. */
  attach(records: RecordLog, transcripts: TranscriptStore, archived: ArchivedRows = new MemoryArchivedRows()): void {
    this.#records = records
    this.#archived = new SessionArchive({
      journal: records,
      directory: this.rows,
      rows: archived,
      onChanged: (key) => this.#notify({ kind: 'session', key }),
    })
    this.#transcripts = transcripts
    this.messages.recovered()
  }

  get #archive(): SessionArchive {
    if (this.#archived === undefined) throw new Error('the storage is not open')
    return this.#archived
  }

  get transcripts(): TranscriptStore {
    if (this.#transcripts === undefined) throw new Error('the storage is not open')
    return this.#transcripts
  }

  async start(): Promise<void> {
    const { suspects, records } = this.messages.beginLife()
    this.#suspects = suspects
    // A disk that is full must not keep a gateway from starting; then this start is not counted.
    if (records.length > 0) await this.#commit(records).catch(() => undefined)
  }

  async close(): Promise<void> {
    // Without it the next start takes this one for one that ended unforeseen: a message may be tried once less.
    const records = this.messages.endLife()
    if (records.length > 0 || this.#later !== undefined) await this.#commit(records).catch(() => undefined)
  }

  transact(changes: readonly Change[], owner?: Owner): Promise<Committed> {
    const deleted = changes.flatMap((change) => (change.kind === 'delete-session' ? [change.key] : []))
    if (deleted.length === 0 || this.#archive.isEmpty) return this.transactWith([], changes, owner)
    return Promise.all(deleted.map((key) => this.#archive.forget(key))).then(() =>
      this.transactWith([], changes, owner),
    )
  }

  /** The same together with records of the log's other topics. */
  async transactWith(own: readonly JournalRecord[], changes: readonly Change[], owner?: Owner): Promise<Committed> {
    this.#epochs.enter(changes, owner)
    const answers = changes.flatMap((change) =>
      change.kind === 'answer' && this.messages.isAnswerable(change.run) ? [change.run] : [],
    )
    const ofMessages = changes.filter(isMessageChange)
    const records = [
      ...own,
      ...this.messages.recordsOf(ofMessages),
      ...changes.flatMap((change) => this.#recordsOf(change)),
    ]
    const isLater = own.length === 0 && mayBeLater(changes, owner)
    try {
      if (isLater) await this.#commitLater(records)
      else if (records.length > 0 || changes.length === 0) await this.#commit(records)
    } finally {
      for (const run of answers) this.messages.answerSettled(run)
    }
    const answered = answers.flatMap((run) => this.messages.rows.get(run) ?? [])
    for (const change of changes) this.#announce(change)
    for (const { message } of answered) this.#notify({ kind: 'reply', ...message })
    return { answered }
  }

  async commitWith(
    records: readonly JournalRecord[],
    changes: readonly Change[],
    owner: Owner | undefined,
  ): Promise<readonly RunId[]> {
    const { answered } = await this.transactWith(records, changes, owner)
    return answered.map(({ message }) => message.run)
  }

  requireOwner(owner: Owner | undefined): void {
    this.#epochs.enter([], owner)
  }

  watch(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly sessions: Storage['sessions'] = {
    get: (key) => this.rows.get(key),
    resolve: (key) => this.rows.resolve(key),
    byId: (sessionId) => this.rows.byId(sessionId),
    list: (query) => this.rows.list(query),
    marked: (mark, caller, limit) => this.rows.marked(mark, caller, limit),
    count: async () => this.rows.size,
    untouchedSince: (before, limit, without) => this.rows.untouchedSince(before, limit, (key) => !without.has(key)),
    archive: (rows) => this.#archive.archive(rows),
    bringBack: async (key) => (await this.#archive.isWanted(key)) && this.#archive.bringBack(key),
    hasArchived: async (key) => (key === undefined ? !this.#archive.isEmpty : this.#archive.isWanted(key)),
    archived: (page) => this.#archive.list(page),
  }

  readonly inbox: Storage['inbox'] = {
    accept: (message, acceptance) => this.#accept(message, acceptance),
    recall: async (acceptance) => this.#recallNow(acceptance),
    find: async (run) => this.messages.rows.get(run),
    open: async ({ key, channel } = {}) => this.messages.rows.open(key).filter(({ message }) => isOf(message, channel)),
    openCount: async () => this.messages.rows.openCount,
  }

  readonly outbox: Storage['outbox'] = {
    undelivered: async ({ channel, account }) => {
      const { rows } = this.messages
      if (account !== undefined) return rows.undelivered(accountOf({ channel, account }))
      return rows.allUndelivered().filter(({ message }) => isOf(message, channel))
    },
    undeliveredOf: async (key) => this.messages.rows.undeliveredOf(key),
    remembered: async (channel) => [...this.messages.rows.values()].filter(({ message }) => isOf(message, channel)),
    answeredAfter: async (channel, account, seq) =>
      this.messages.rows
        .ofAccount(accountOf({ channel, account }))
        .filter((run) => run.state !== 'open' && run.seq > seq)
        .toSorted((a, b) => a.seq - b.seq),
    bySeq: async (channel, account, seq) =>
      this.messages.rows.undelivered(accountOf({ channel, account })).find((row) => row.seq === seq),
    nextSeq: (channel, account) => this.#nextSeq(accountOf({ channel, account })),
    take: async (run) => {
      if (this.messages.rows.get(run)?.state !== 'waiting' || this.#taken.has(run)) return false
      this.#taken.add(run)
      try {
        await this.transact([{ kind: 'delivery', run, state: 'unknown' }])
      } finally {
        this.#taken.delete(run)
      }
      return true
    },
    redirect: async (run, to) => this.messages.redirect(run, to),
    abandon: async (channel, account) => this.messages.abandon(accountOf({ channel, account })),
    counts: async () => {
      const counts = { open: 0, waiting: 0, unknown: 0, delivered: 0 }
      for (const { state } of this.messages.rows.values()) counts[state]++
      return counts
    },
    failedWith: async (code) =>
      [...this.messages.rows.values()].filter(({ content }) => content?.kind === 'error' && content.code === code),
  }
  readonly #taken = new Set<RunId>()

  readonly usage: Storage['usage'] = {
    ofSession: (sessionId) => this.#usage.ofSession(sessionId),
    today: async () => this.#usage.ofDay(),
    report: async (query) => this.#usage.report(query),
    savedBy: async (sessionId) => this.#cleanups.ofSession(sessionId),
    savedInAll: async () => this.#cleanups.total(),
  }

  readonly state: Storage['state'] = {
    get: async (section, key) => this.#state.get(section, key),
    entries: async (section) => this.#state.entries(section),
  }

  readonly ownership: Storage['ownership'] = {
    claim: async (key): Promise<Claim> => {
      // What the turn will add to is in memory when it ends.
      const row = await this.rows.get(key)
      if (row !== undefined) await this.#usage.ofSession(row.sessionId)
      const suspects = this.messages.rows.open(key).flatMap(({ message: { run } }) => {
        const deaths = this.#suspects.get(run)
        return deaths === undefined ? [] : [{ run, deaths }]
      })
      return { owner: this.#epochs.take(key), suspects }
    },
    takeOver: async (key) => this.#epochs.take(key),
    release: async (owner) => this.#epochs.release(owner),
    idle: (key) => this.#epochs.forget(key),
    leave: async () => false,
    hold: async () => ({ lost: NEVER, hasSuccessor: false, release: async () => undefined }),
    isCurrent: (owner) => this.#epochs.isCurrent(owner),
    unclaimed: async (limit) => {
      const keys = new Set(this.messages.rows.open().map(({ message }) => message.key))
      return [...keys].filter((key) => this.#epochs.of(key) === undefined).slice(0, limit)
    },
  }

  async #accept(message: AcceptedMessage, acceptance: Acceptance): Promise<Accepted> {
    const { fingerprint, session, also = [] } = acceptance
    const recalled = this.#recallNow(acceptance)
    if (recalled !== undefined) return (await recalled) ?? this.#accept(message, acceptance)
    const names = namesOf(acceptance)
    if (!this.#mayJoin(message.key, acceptance)) return { kind: 'taken' }
    const changes = session === undefined ? also : [session, ...also]
    const records = [
      ...this.messages.acceptRecords(message, fingerprint),
      ...changes.flatMap((change) => this.#recordsOf(change)),
    ]
    const accepting = this.#commit(records)
    for (const name of names) this.#accepting.set(name, accepting)
    const settle = this.#holdKey(message.key, session)
    try {
      await accepting
    } finally {
      for (const name of names) this.#accepting.delete(name)
      settle()
    }
    this.#notify({ kind: 'message', key: message.key })
    // A command begins nothing: a turn will hold its session, or none does.
    const held = session?.kind === 'begin-session' ? this.#epochs.take(message.key) : this.#epochs.of(message.key)
    return { kind: 'fresh', mine: true, ...(held === undefined ? {} : { epoch: held.epoch }) }
  }

  /** Undefined at once for a message that is new; of copies that come at once the first one decides. */
  #recallNow(acceptance: RecallKeys): Recalled | Promise<Recalled | undefined> | undefined {
    const known = this.messages.knownAs(acceptance)
    if (known === 'conflict') return { kind: 'conflict' }
    if (known !== undefined) return { kind: 'duplicate', known }
    const accepting = namesOf(acceptance).flatMap((name) => this.#accepting.get(name) ?? [])
    return accepting.length === 0 ? undefined : Promise.allSettled(accepting).then(() => this.#recallNow(acceptance))
  }

  #mayJoin(key: SessionKey, { joins = { rows: 'any' } }: Acceptance): boolean {
    if (joins.rows === 'any') return true
    const row = this.rows.held(key)
    const beginning = this.#beginning.get(key)
    if (row === undefined && beginning === undefined) return true
    // A row without an owner is not the own one of any caller.
    const holder = row === undefined ? beginning?.owner : ownerOf(row)
    return joins.rows === 'own' && holder === joins.owner
  }

  #holdKey(key: string, session: Acceptance['session']): () => void {
    if (session?.kind !== 'begin-session') return () => undefined
    const held = this.#beginning.get(key) ?? { owner: session.owner, messages: 0 }
    held.messages++
    this.#beginning.set(key, held)
    return () => {
      held.messages--
      if (held.messages === 0) this.#beginning.delete(key)
    }
  }

  async #nextSeq(account: string): Promise<number> {
    for (;;) {
      const next = this.messages.nextSeq(account)
      if (typeof next === 'number') return next
      await this.#commit(next)
    }
  }

  #recordsOf(change: Change): readonly JournalRecord[] {
    switch (change.kind) {
      case 'begin-session':
      case 'change-session':
      case 'put-session':
        return [this.rows.recordOf(change)]
      case 'delete-session':
        return [this.rows.recordOf(change), ...this.messages.forgetSession(change.key)]
      case 'raise-epoch':
        return []
      case 'answer':
      case 'delivery':
      case 'reset-done':
      case 'resumed':
      case 'paused':
        // Written together: they share the room of their accounts.
        return []
      case 'spend':
        return this.#usage.recordsOf(change)
      case 'save':
        return [this.#cleanups.recordOf(change)]
      case 'forget-usage':
        return [this.#usage.forget(change.sessionId), this.#cleanups.forget(change.sessionId)]
      case 'set-state':
        return [this.#state.recordOf(change)]
      default:
        return assertNever(change)
    }
  }

  async #commit(records: readonly JournalRecord[]): Promise<void> {
    if (this.#records === undefined) throw new Error('the storage is not open')
    const later = this.#later
    this.#later = undefined
    later?.timer.cancel()
    try {
      const committing = this.#records.commit(later === undefined ? records : [...later.records, ...records])
      later?.committing(committing)
      await committing
    } catch (error) {
      for (const record of records) {
        this.#usage.dropped(record)
        this.#cleanups.dropped(record)
      }
      throw journalError(error)
    }
  }

  /** With the next commit, or with one of their own when none comes for a while. */
  async #commitLater(records: readonly JournalRecord[]): Promise<void> {
    if (records.length === 0) return
    this.#later ??= this.#beginLater()
    this.#later.records.push(...records)
    await this.#later.committed.catch((error: unknown) => {
      throw journalError(error)
    })
  }

  #beginLater(): Later {
    let committing: Later['committing'] = () => undefined
    const committed = new Promise<void>((resolve) => (committing = resolve))
    // Its failure is heard by those who wait for `committed`.
    const timer = this.#clock.after(LATER_MS, () => void this.#commit([]).catch(() => undefined))
    return { records: [], committed, committing, timer }
  }

  #announce(change: Change): void {
    if (change.kind === 'set-state') {
      const { section, key, value } = change
      this.#notify({ kind: 'state', section, key, value })
    }
    if (change.kind === 'raise-epoch' || change.kind.endsWith('-session'))
      this.#notify({ kind: 'session', key: (change as Extract<Change, { kind: 'raise-epoch' }>).key })
  }

  #notify(notice: Notice): void {
    for (const listener of this.#listeners) listener(notice)
  }
}

interface Later {
  readonly records: JournalRecord[]
  readonly committed: Promise<void>
  /** The commit that they go with. */
  committing(commit: Promise<void>): void
  readonly timer: Timer
}

type RecallKeys = Pick<Acceptance, 'fingerprint' | 'request'>

function namesOf({ fingerprint, request }: RecallKeys): readonly string[] {
  return request === undefined ? [fingerprint] : [fingerprint, `request ${request.key}`]
}

function isOf(message: MessageRow['message'], channel: string | undefined): boolean {
  return channel === undefined || message.channel === channel
}
