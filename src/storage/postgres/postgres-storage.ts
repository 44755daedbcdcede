import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../base/database.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Change, Owner } from '../../core/change.ts'
import { GatewayError } from '../../core/errors.ts'
import type { RunId, SessionId, SessionKey } from '../../core/ids.ts'
import type { AcceptedMessage } from '../../core/inbound.ts'
import { NOTHING_SPENT, type Spent } from '../../core/spent.ts'
import type { TranscriptStore } from '../../transcript/store.ts'
import { mayBeLater } from '../later-commit.ts'
import type {
  Accepted,
  Claim,
  ClusterStatus,
  Committed,
  HomeFiles,
  Inbox,
  NodeLoad,
  Notice,
  Ownership,
  Storage,
} from '../storage.ts'
import { readCluster } from './cluster.ts'
import { fromColumn, toColumn } from './column-text.ts'
import { GroupCommit, toStorageError, unavailable, type Unit } from './group-commit.ts'
import { Holds } from './holds.ts'
import { HeldSessions, type HeldRow, type HeldTotals } from './held-sessions.ts'
import { createHomeFiles } from './home-files.ts'
import { createInboxReads, createOutbox, FrameNumbers } from './messages.ts'
import { Node, type UsageLimits } from './node.ts'
import { Notices } from './notices.ts'
import { readMessage, toRecord, type MessageColumns } from './rows.ts'
import { createSessions } from './sessions.ts'
import { createState } from './state.ts'
import { acceptUnit, claimUnit, releaseUnit, transactionUnit, type Append, type MostEntries } from './transactions.ts'
import { createUsage, readSavings, type SavingColumns } from './usage.ts'

export interface PostgresStorageOptions {
  /** Migrated already. */
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly schema: string
  /** A name that no node ever had before. */
  readonly node: string
  readonly address: string
  readonly version: string
  readonly leaseMs: number
  /** How often a node looks for what a lost notification was about. */
  readonly pollMs?: number
  /** Longest wait of a new message or a command while the database is away. */
  readonly waitMs?: number
  readonly limits: {
    readonly rememberMs: number
    readonly outboxPerAccount: number
    readonly usage: UsageLimits
    /** Of sections of the state that keep another number than the rest. */
    readonly mostEntries: MostEntries
  }
  createTranscripts(storage: TranscriptBase): TranscriptStore
}

/** What a store of transcripts is built on. */
export interface TranscriptBase {
  readonly database: Pick<Database, 'query'>
  readonly commit: CommitAppend
  /** Lines that a transcript has, when that is known without a look-up. */
  entriesOf(sessionId: SessionId): number | undefined
  readonly storage: Storage
}

/**
 * Makes lines and changes durable in one transaction, and resolves with the messages that the changes gave their answer;
 * undefined when the transcript has other lines than its writer knows.
 */
export type CommitAppend = (
  append: Append,
  changes: readonly Change[],
  owner?: Owner,
) => Promise<readonly RunId[] | undefined>

interface UnitResult {
  readonly lost?: boolean
  readonly behind?: boolean
  readonly accepted?: {
    readonly kind: Accepted['kind']
    readonly known?: MessageColumns
    readonly holder?: string | null
    /** Messages that other nodes accepted are open in the session. */
    readonly others?: boolean
    /** When this node holds the session. */
    readonly epoch?: number
  }
  readonly rows?: readonly HeldRowColumns[]
  readonly totals?: TotalsColumns
  readonly delivered?: readonly { readonly run: string; readonly channel: string; readonly account: string }[]
  readonly claim?: { readonly epoch: number; readonly suspects: readonly { run: string; deaths: number }[] } | null
  readonly answered?: readonly MessageColumns[]
  readonly raised?: readonly { readonly key: string; readonly node: string }[]
  readonly taken?: { readonly channel: string; readonly account: string } | null
}

interface SubmitOptions {
  readonly owner?: Owner
  /** The session of an accepted message: it is held from here on when the database gives it. */
  readonly accepts?: SessionKey
  /** It may share the round trip of what comes next. */
  readonly mayWait?: boolean
  /** It was done after its caller had been told that it could not be. */
  late?(result: UnitResult): void
}

interface HeldRowColumns {
  readonly key: string
  readonly record: unknown
  readonly changed: number
  readonly entries: number
}

interface TotalsColumns {
  readonly sessionId: string
  readonly spent: Spent | null
  readonly saved: SavingColumns | null
}

function toHeldRow({ key, record, changed, entries }: HeldRowColumns): HeldRow {
  return { key: fromColumn(key) as SessionKey, record: toRecord(record), changed, entries }
}

function toHeldTotals({ sessionId, spent, saved }: TotalsColumns): HeldTotals {
  return { sessionId: fromColumn(sessionId) as SessionId, spent: spent ?? NOTHING_SPENT, saved: readSavings(saved) }
}

const WAIT_MS = 5_000
const POLL_MS = 1_000
const STATE_ENTRIES = 2_000
/** Sessions that a node keeps while nothing runs in them. */
const MOST_HELD = 10_000

/** Everything durable in one PostgreSQL that several nodes share. */
export class PostgresStorage implements Storage {
  readonly sessions: Storage['sessions']
  readonly inbox: Inbox
  readonly outbox: Storage['outbox']
  readonly usage: Storage['usage']
  readonly state: Storage['state']
  readonly ownership: Ownership
  readonly transcripts: TranscriptStore
  readonly homeFiles: HomeFiles
  isReachable = true
  readonly #options: PostgresStorageOptions
  readonly #waitMs: number
  readonly #commits: GroupCommit
  readonly #notices: Notices
  readonly #node: Node
  readonly #numbers: FrameNumbers
  readonly #held: HeldSessions
  readonly #holds: Holds
  readonly #listeners = new Set<(notice: Notice) => void>()

  constructor(options: PostgresStorageOptions) {
    const { clock, ids, log, node, schema, limits, leaseMs, address, version } = options
    const database = guarded(options.database)
    this.#options = options
    this.#waitMs = options.waitMs ?? WAIT_MS
    this.#held = new HeldSessions(clock)
    const rules = JSON.stringify({
      rememberMs: limits.rememberMs,
      outboxPerAccount: limits.outboxPerAccount,
      stateEntries: STATE_ENTRIES,
    })
    const onReachable = (isReachable: boolean): void => {
      if (isReachable !== this.isReachable)
        log[isReachable ? 'info' : 'warn'](
          isReachable ? 'the database answers again' : 'the database cannot be reached',
        )
      this.isReachable = isReachable
    }
    this.#commits = new GroupCommit({ database: options.database, clock, ids, node, rules, onReachable })
    const heard = (notice: Notice): void => this.#tell(notice)
    this.#holds = new Holds({ database, clock, node, leaseMs, hasOthers: () => this.#node.hasOthers })
    this.#node = new Node({
      database,
      clock,
      node,
      address,
      version,
      leaseMs,
      pollMs: options.pollMs ?? POLL_MS,
      rememberMs: limits.rememberMs,
      usage: limits.usage,
      held: this.#held,
      holds: this.#holds,
      heard,
      onReachable,
    })
    this.#notices = new Notices({
      database: options.database,
      clock,
      ids,
      node,
      schema,
      heard: (notice) => this.#hear(notice),
      onListening: () => this.#node.listening(),
    })
    this.#numbers = new FrameNumbers(database)
    this.sessions = createSessions({
      database,
      node,
      held: this.#held,
      onMoved: (key) => {
        this.#held.drop(key)
        this.#tell({ kind: 'session', key })
      },
    })
    this.inbox = {
      ...createInboxReads(database, { ...limits, node }),
      accept: (message, acceptance) =>
        this.#accept(acceptUnit(message, acceptance, limits.mostEntries), message.run, message.key),
    }
    this.outbox = { ...createOutbox(database, node, this.#numbers), take: (run) => this.#take(run) }
    this.usage = createUsage(database, this.#held)
    this.state = createState(database)
    this.homeFiles = createHomeFiles(database)
    this.ownership = this.#createOwnership(database)
    this.transcripts = options.createTranscripts({
      database,
      commit: (append, changes, owner) => this.#append(append, changes, owner),
      entriesOf: (sessionId) => this.#held.rowById(sessionId)?.entries,
      storage: this,
    })
  }

  async start(load?: () => NodeLoad): Promise<void> {
    await this.#node.start(load)
    this.#notices.start()
    // Others that believed to be alone speak up from here on.
    if (this.#node.hasOthers) this.#notices.send({ kind: 'state', section: 'nodes', key: this.#options.node })
  }

  async transact(changes: readonly Change[], owner?: Owner): Promise<Committed> {
    const result = await this.#submit(transactionUnit(changes, this.#options.limits.mostEntries, owner), {
      ...(owner && { owner }),
      mayWait: mayBeLater(changes, owner),
      late: (done) => this.#committedLate(done, changes),
    })
    return this.#committed(result, changes)
  }

  async mentionedMedia(folders: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await guarded(this.#options.database).query<{ folder: string }>(MENTIONED_MEDIA, [folders])
    return new Set(rows.map(({ folder }) => folder))
  }

  /** What the nodes do is in the database: while that is away only so much is known. */
  async cluster(): Promise<ClusterStatus> {
    const { database, clock } = this.#options
    const askedAt = clock.monotonic()
    try {
      if (!this.isReachable) throw unavailable()
      await this.#node.report()
      return await readCluster(guarded(database), clock)
    } catch (error) {
      if (toStorageError(error).code !== 'STORAGE_UNAVAILABLE') throw error
      const latencyMs = clock.monotonic() - askedAt
      return { nodes: [], lost: [], database: { version: '', ok: false, latencyMs, connections: 0 } }
    }
  }

  async leaving(busy: readonly SessionKey[]): Promise<void> {
    await this.#node.leaving(busy).catch(() => undefined)
  }

  watch(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tell(notice: Notice): void {
    if (this.#node.hasOthers) this.#notices.send(notice)
  }

  /** Ends without giving anything back, as a process that is killed does. */
  async kill(): Promise<void> {
    this.#node.stop()
    await this.#notices.close()
    await this.#options.database.close()
  }

  async close(): Promise<void> {
    await this.transcripts.close()
    await this.#commits.close()
    await this.#node.close().catch(() => undefined)
    await this.#notices.close()
    await this.#options.database.close()
  }

  async #append(append: Append, changes: readonly Change[], owner?: Owner): Promise<readonly RunId[] | undefined> {
    const result = await this.#submit(transactionUnit(changes, this.#options.limits.mostEntries, owner, append), {
      ...(owner && { owner }),
      late: (done) => this.#committedLate(done, changes),
    })
    if (result.behind === true) return undefined
    return this.#committed(result, changes).answered.map(({ message }) => message.run)
  }

  async #submit(unit: Unit, { owner, accepts, mayWait = false, late }: SubmitOptions = {}): Promise<UnitResult> {
    const waitMs = owner === undefined ? this.#waitMs : Math.max(this.#waitMs, this.#options.leaseMs)
    const askedAt = this.#options.clock.monotonic()
    const seen = (text: string): UnitResult => {
      const result = JSON.parse(text) as UnitResult
      this.#see(result, askedAt, accepts)
      return result
    }
    const result = seen(
      await this.#commits.submit(unit, waitMs, { mayWait, until: owner?.until, late: (text) => late?.(seen(text)) }),
    )
    if (result.lost === true && owner !== undefined) {
      if (this.#held.epochOf(owner.session) === owner.epoch) this.#held.drop(owner.session)
      throw new GatewayError('OWNERSHIP_LOST', 'the session belongs to another node or was reset', {})
    }
    return result
  }

  /** What a transaction says of sessions that this node holds. */
  #see({ accepted, rows = [], totals }: UnitResult, askedAt: number, accepts: SessionKey | undefined): void {
    if (accepts !== undefined && accepted?.epoch !== undefined) this.#hold(accepts, accepted.epoch)
    for (const row of rows) this.#held.see(toHeldRow(row), askedAt)
    if (totals !== undefined) this.#held.seeTotals(toHeldTotals(totals))
  }

  /** Its caller gave it up, and will not send the answers: they are offered as those of another node are. */
  #committedLate(result: UnitResult, changes: readonly Change[]): void {
    if (result.lost === true || result.behind === true) return
    for (const { message } of this.#committed(result, changes).answered) this.#offerAgain(message)
  }

  /** An answer that this node took to send and that is not being sent. */
  #offerAgain({ run, channel, account }: Pick<AcceptedMessage, 'run' | 'channel' | 'account'>): void {
    const offered = this.transact([{ kind: 'delivery', run, state: 'waiting' }])
    const told = offered.then(() => this.#tell({ kind: 'reply', channel, account, run, elsewhere: true }))
    // When the database is away once more, the answer waits for its client to come back.
    told.catch(() => undefined)
  }

  #committed(result: UnitResult, changes: readonly Change[]): Committed {
    this.#announceRaised(result.raised)
    for (const change of changes) this.#follow(change)
    for (const { run, channel, account } of result.delivered ?? []) this.#announceReply(run, channel, account)
    const answered = (result.answered ?? []).map((columns) => readMessage(columns, this.#options.node))
    for (const { message } of answered) this.#numbers.forget(message.channel, message.account)
    for (const { message } of answered)
      this.#tell({ kind: 'reply', channel: message.channel, account: message.account, run: message.run })
    return { answered }
  }

  /** What a durable change means for this node's own view and for those who watch it. */
  #follow(change: Change): void {
    switch (change.kind) {
      case 'raise-epoch':
      case 'delete-session':
        this.#held.drop(change.key)
        return this.#tell({ kind: 'session', key: change.key })
      case 'begin-session':
      case 'change-session':
      case 'put-session':
        return this.#tell({ kind: 'session', key: change.key })
      case 'set-state': {
        const notice = { kind: 'state', section: change.section, key: change.key } as const
        this.#notices.send(notice)
        return this.#tell(notice)
      }
      case 'delivery':
      case 'answer':
      case 'reset-done':
      case 'resumed':
      case 'paused':
      case 'spend':
      case 'save':
      case 'forget-usage':
    }
  }

  /** Its client may be connected to another node, or wait for it there. */
  #announceReply(run: string, channel: string, account: string): void {
    if (!this.#node.hasOthers) return
    const [about, whose] = [fromColumn(channel), fromColumn(account)]
    this.#notices.send({ kind: 'reply', channel: about, account: whose, run: fromColumn(run) as RunId })
  }

  /** Done once like every transaction: an answer that counts as taken without its taker knowing would not be sent. */
  async #take(run: RunId): Promise<boolean> {
    const unit = { json: JSON.stringify({ take: toColumn(run) }), names: [], runs: [] }
    const { taken } = await this.#submit(unit, {
      late: (done) => {
        if (done.taken === undefined || done.taken === null) return
        this.#offerAgain({ run, channel: fromColumn(done.taken.channel), account: fromColumn(done.taken.account) })
      },
    })
    if (taken === undefined || taken === null) return false
    this.#numbers.forget(fromColumn(taken.channel), fromColumn(taken.account))
    return true
  }

  async #accept(unit: Unit, run: RunId, key: SessionKey): Promise<Accepted> {
    const { accepted } = await this.#submit(unit, {
      accepts: key,
      // Its sender was refused and may never come again: it is in no queue, so it is looked for as one of another node is.
      late: (done) => {
        if (done.accepted?.kind === 'fresh') this.#tell({ kind: 'message', key, elsewhere: true })
      },
    })
    if (accepted === undefined) throw new GatewayError('STORAGE_FAILED', 'the database gave no result', {})
    if (accepted.kind !== 'duplicate' || accepted.known === undefined) {
      if (accepted.kind !== 'fresh') return { kind: accepted.kind } as Accepted
      const { holder = null, others = false } = accepted
      if (holder !== null && holder !== this.#options.node) this.#notices.send({ kind: 'message', key })
      this.#tell({ kind: 'message', key })
      const mine = holder === this.#options.node && !others
      return { kind: 'fresh', mine, ...(accepted.epoch === undefined ? {} : { epoch: accepted.epoch }) }
    }
    const known = readMessage(accepted.known, this.#options.node)
    return known.message.run === run ? { kind: 'fresh', mine: false } : { kind: 'duplicate', known }
  }

  #createOwnership(database: Pick<Database, 'query'>): Ownership {
    return {
      claim: async (key) => {
        // Whether it is still ours shows at the first write.
        const held = this.#held.epochOf(key)
        if (held !== undefined) return { owner: { session: key, epoch: held }, suspects: [] }
        return this.#claim(key, false)
      },
      takeOver: async (key) => {
        const held = this.#held.epochOf(key)
        if (held !== undefined) return { session: key, epoch: held }
        const claim = await this.#claim(key, true)
        if (claim === undefined) throw new GatewayError('STORAGE_FAILED', 'the database gave no result', {})
        return claim.owner
      },
      release: async (owner) => {
        if (this.#held.epochOf(owner.session) === owner.epoch) this.#held.drop(owner.session)
        await this.#submit(releaseUnit(owner))
      },
      leave: async (key) => {
        const epoch = this.#held.epochOf(key)
        if (!this.#node.hasOthers) return false
        if (epoch !== undefined) {
          const left = await database.query(LEAVE, [toColumn(key), epoch, this.#options.node])
          if (left.length === 0) return this.#held.epochOf(key) !== epoch
          if (this.#held.epochOf(key) === epoch) this.#held.drop(key)
        }
        this.#notices.send({ kind: 'message', key })
        return true
      },
      isCurrent: ({ session, epoch }) => this.#held.epochOf(session) === epoch,
      hold: (channel, account) => this.#holds.take(channel, account),
      unclaimed: async (limit) => {
        const rows = await database.query<{ key: string }>(UNCLAIMED, [limit])
        return rows.map(({ key }) => fromColumn(key) as SessionKey)
      },
    }
  }

  async #claim(key: SessionKey, isForced: boolean): Promise<Claim | undefined> {
    const { claim, raised } = await this.#submit(claimUnit(key, isForced))
    if (claim === undefined || claim === null) return undefined
    this.#hold(key, claim.epoch)
    this.#announceRaised(raised)
    const suspects = claim.suspects.map(({ run, deaths }) => ({ run: fromColumn(run) as RunId, deaths }))
    return { owner: { session: key, epoch: claim.epoch }, suspects }
  }

  /** The nodes that held these sessions. */
  #announceRaised(raised: UnitResult['raised'] = []): void {
    for (const { key } of raised) this.#notices.send({ kind: 'session', key: fromColumn(key) as SessionKey })
  }

  /** A session stays held while others are not asking for it; of too many the one taken longest ago goes back. */
  #hold(key: SessionKey, epoch: number): void {
    this.#held.hold(key, epoch)
    const oldest = this.#held.size > MOST_HELD ? this.#held.oldest() : undefined
    if (oldest === undefined) return
    this.#held.drop(oldest.session)
    this.#submit(releaseUnit(oldest)).catch(() => undefined)
  }

  #hear(told: Notice): void {
    this.#node.hasOthers = true
    if (told.kind === 'session' || told.kind === 'message') this.#held.forget(told.key)
    const notice: Notice =
      told.kind === 'state' || told.kind === 'room' || told.kind === 'look' ? told : { ...told, elsewhere: true }
    if (notice.kind !== 'session') return this.#tell(notice)
    // What we hold is looked at first, so that `isCurrent` is right when the listener asks.
    void this.#node
      .checkHeld([notice.key])
      .catch(() => undefined)
      .then(() => this.#tell(notice))
  }

  #tell(notice: Notice): void {
    for (const listener of this.#listeners) listener(notice)
  }
}

/**
 * What is being answered moves from messages to a transcript: one statement sees one moment. Each line is read once, however
 * many folders are asked for.
 */
const MENTIONED_MEDIA = {
  name: 'mentioned_media',
  text: String.raw`with named as (
      select m[1] as folder from messages, regexp_matches(body::text, 'media[/\\]+([0-9a-f]{32})', 'g') as m
        where state = 'open' and names_media(body::text)
      union
      select m[1] from entries, regexp_matches(line, 'media[/\\]+([0-9a-f]{32})', 'g') as m where names_media(line))
    select folder from named where folder = any ($1::text[])`,
}
/** Foreseen: what is open is not to blame for it. */
const LEAVE = {
  name: 'session_leave',
  text: `with gone as (update sessions set node = null where key = $1 and epoch = $2 and node = $3
      and exists (select from nodes where id <> $3 and state = 'live' and turns < max_turns
        and lease_until > clock_timestamp()) returning key),
      foreseen as (update messages m set idle = true from gone where m.key = gone.key and m.state = 'open')
    select key from gone`,
}
const UNCLAIMED = {
  name: 'unclaimed',
  text: `select m.key from messages m left join sessions s on s.key = m.key
    where m.state = 'open' and (s.node is null or not is_alive(s.node))
    group by m.key order by min(m.position) limit $1`,
}

/** Look-ups speak the words of storage when they fail. */
function guarded(database: Database): Pick<Database, 'query'> {
  return {
    query: (statement, values) =>
      database.query<never>(statement, values).catch((error: unknown) => {
        throw toStorageError(error)
      }),
  }
}
