import { sleep, deferred, type Deferred, NEVER } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import { LEAF_POINTER, type Entry, type EntryDraft, type SessionHeader, type UnknownEntry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import { rememberPath } from '../core/path-memory.ts'
import type { EntryId, RunId, SessionId } from '../core/ids.ts'
import type { Provenance } from '../core/message.ts'
import {
  buildContext,
  EMPTY_PATH,
  extendActivePath,
  levelSetBy,
  modelSetBy,
  toActivePath,
  type ActivePath,
} from './context.ts'
import { guardDrafts, type GuardOptions, openCallsOf, type OpenCalls } from './guard.ts'
import { encodeLine, freezeEntry, orderedRaw, toEntry } from './line.ts'
import { ALONE, type EncodedEntry, type EntryLog, type LogState, type Together } from './log.ts'
import type { AppendOptions, RepairNote, TranscriptContext } from './store.ts'

export interface LogTranscriptOptions {
  readonly sessionId: SessionId
  readonly log: EntryLog
  readonly clock: Clock
  readonly ids: Ids
  readonly guard: GuardOptions
  readonly maxLineBytes: number
  /** After the entries are durable, in order. Must not throw. */
  readonly onAppended?: (sessionId: SessionId, entries: readonly Entry[]) => void
}

/** A history that a client sends again comes as one append; others have their turn in between. */
const DRAFTS_AT_ONCE = 256

interface AppendJob {
  readonly kind: 'append'
  readonly drafts: readonly EntryDraft[]
  readonly provenance: Provenance | undefined
  readonly together: Together
  readonly onAnswered: AppendOptions['onAnswered']
  readonly done: Deferred<readonly Entry[]>
}

interface AloneJob {
  readonly kind: 'alone'
  run(): Promise<void>
}

/** Where the batch under way has come to; becomes the state when it is durable. */
interface Stage {
  leafId: EntryId | null
  open: OpenCalls
  /** The active path where a compaction of this batch decided it; until then the state's, followed by `added`. */
  base: ActivePath
  added: Entry[]
  readonly batch: EncodedEntry[]
  /** Of the batch, and of jobs in it that failed. */
  readonly ids: Set<EntryId>
}

/**
 * The meaning of a transcript over any `EntryLog`: one job after another, appends that wait together are written
 * together. State changes only after the write that carries it.
 */
export class LogTranscript {
  readonly #options: LogTranscriptOptions
  readonly #log: EntryLog
  #state: LogState
  #leafId: EntryId | null
  #active: { entries: Entry[]; thinkingLevel: string; model: ActivePath['model'] }
  #open: OpenCalls
  /** What `context` gave last of the same path, which may have grown since. */
  #handedOut: readonly Entry[] | undefined
  #jobs: (AppendJob | AloneJob)[] = []
  #working: Promise<void> | undefined
  /** Counted at the first question. */
  #activeBytes: number | undefined
  #closed = false

  private constructor(options: LogTranscriptOptions, state: LogState) {
    this.#options = options
    this.#log = options.log
    this.#state = state
    this.#leafId = state.leafId
    this.#active = toMutable(state.active)
    this.#open = openCallsOf(state.active.entries)
  }

  static async open(options: LogTranscriptOptions, signal: AbortSignal): Promise<LogTranscript> {
    return new LogTranscript(options, await options.log.load(signal))
  }

  get sessionId(): SessionId {
    return this.#options.sessionId
  }

  get header(): SessionHeader {
    return this.#state.header
  }

  get leafId(): EntryId | null {
    return this.#leafId
  }

  get repairs(): readonly RepairNote[] {
    return this.#state.repairs
  }

  /** Resolves when the jobs already given are finished. */
  async settled(): Promise<void> {
    while (this.#working !== undefined) await this.#working
  }

  /** About what this transcript holds in memory. */
  get heldBytes(): number {
    this.#activeBytes ??= sizeOf(this.#active.entries)
    const prepared = this.#handedOut === undefined ? 0 : Math.ceil(this.#activeBytes * PREPARED_PER_ENTRY_BYTE)
    return this.#activeBytes + prepared + this.#log.heldBytes
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): Promise<readonly Entry[]> {
    const done = deferred<readonly Entry[]>()
    const { provenance, changes = [], owner, onAnswered } = options
    this.#enqueue({ kind: 'append', drafts, provenance, together: { changes, owner }, onAnswered, done })
    return done.promise
  }

  context(): Promise<TranscriptContext> {
    return this.#alone(async () => buildContext({ ...this.#active, entries: this.#path() }))
  }

  branch(from?: EntryId): Promise<readonly Entry[]> {
    return this.#alone(async () => {
      const start = from ?? this.#leafId
      if (start === null) return []
      const path = await this.#log.path(start)
      if (path === undefined) throw entryNotFound(start)
      return path
    })
  }

  async *entries(): AsyncIterable<Entry> {
    // What was appended before the call is seen; the file may grow while it is read.
    await this.#alone(async () => undefined)
    yield* this.#log.all()
  }

  entry(id: EntryId): Promise<Entry | undefined> {
    return this.#alone(() => this.#log.find(id))
  }

  branchTo(id: EntryId | null, { owner }: Pick<AppendOptions, 'owner'> = {}): Promise<void> {
    return this.#alone(async () => {
      await this.#writing(async () => {
        await this.#requireEntry(id)
        const pointer = this.#toEntry({ type: 'custom', customType: LEAF_POINTER, data: { leafId: id } }, id)
        await this.#log.write([pointer], { changes: [], owner })
        await this.#moveLeaf(id)
        this.#options.onAppended?.(this.sessionId, [pointer.entry])
      })
    })
  }

  branchWithSummary(id: EntryId | null, summary: string, { owner }: Pick<AppendOptions, 'owner'> = {}): Promise<Entry> {
    return this.#alone(() =>
      this.#writing(async () => {
        await this.#requireEntry(id)
        const written = this.#toEntry({ type: 'branch_summary', fromId: id ?? 'root', summary }, id)
        await this.#log.write([written], { changes: [], owner })
        await this.#moveLeaf(written.entry.id)
        this.#options.onAppended?.(this.sessionId, [written.entry])
        return written.entry
      }),
    )
  }

  /** Finishes the jobs already given, then lets go of the file. */
  async close(): Promise<void> {
    this.#closed = true
    await this.settled()
    await this.#log.close()
  }

  /** The active path as it is now, the same array until something is appended. */
  #path(): readonly Entry[] {
    const earlier = this.#handedOut
    if (earlier?.length !== this.#active.entries.length)
      this.#handedOut = rememberPath([...this.#active.entries], earlier)
    return this.#handedOut ?? []
  }

  #alone<T>(run: () => Promise<T>): Promise<T> {
    const done = deferred<T>()
    this.#enqueue({ kind: 'alone', run: () => run().then(done.resolve, done.reject) })
    return done.promise
  }

  #enqueue(job: AppendJob | AloneJob): void {
    if (this.#closed) {
      throw new GatewayError('TRANSCRIPT_CLOSED', 'the transcript was closed', { sessionId: this.sessionId })
    }
    this.#jobs.push(job)
    this.#startWork()
  }

  #startWork(): void {
    this.#working ??= this.#work()
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      if (job.kind === 'alone') {
        await job.run()
        continue
      }
      const batch = [job]
      for (let next = this.#jobs[0]; next?.kind === 'append'; next = this.#jobs[0]) {
        // An owner that is refused takes only its own appends with it.
        if (next.together.owner?.epoch !== job.together.owner?.epoch) break
        batch.push(next)
        this.#jobs.shift()
      }
      await this.#appendBatch(batch)
    }
    // In the same turn as the last look at the jobs: a job that comes later starts a new worker.
    this.#working = undefined
  }

  async #appendBatch(jobs: readonly AppendJob[]): Promise<void> {
    const planned: { readonly job: AppendJob; readonly entries: readonly Entry[] }[] = []
    let answered: readonly RunId[] = []
    try {
      const changed = await this.#log.beginWrite(NEVER)
      try {
        if (changed !== undefined) this.#adopt(changed)
        const stage = this.#stage()
        for (const job of jobs) {
          const mark = markOf(stage)
          try {
            planned.push({ job, entries: await this.#plan(job, stage) })
          } catch (error) {
            // One caller's invalid draft is its own affair; nothing of a job that failed half-way may stay.
            restore(stage, mark)
            job.done.reject(error)
          }
        }
        const together = togetherOf(planned.map(({ job }) => job))
        if (stage.batch.length > 0 || together.changes.length > 0)
          answered = await this.#log.write(stage.batch, together)
        this.#commit(stage)
      } finally {
        await this.#log.endWrite()
      }
    } catch (error) {
      for (const job of jobs) job.done.reject(error)
      return
    }
    const unclaimed = new Set(answered)
    for (const { job, entries } of planned) {
      job.onAnswered?.(answersIn(job.together).filter((run) => unclaimed.delete(run)))
      if (entries.length > 0) this.#options.onAppended?.(this.sessionId, entries)
      job.done.resolve(entries)
    }
  }

  async #writing<T>(work: () => Promise<T>): Promise<T> {
    // Waiting for the lock has its own time limit; a caller that gives up must not leave half a batch behind.
    const changed = await this.#log.beginWrite(NEVER)
    try {
      if (changed !== undefined) this.#adopt(changed)
      return await work()
    } finally {
      await this.#log.endWrite()
    }
  }

  #adopt(state: LogState): void {
    this.#state = state
    this.#leafId = state.leafId
    this.#active = toMutable(state.active)
    this.#handedOut = undefined
    this.#open = openCallsOf(state.active.entries)
    this.#activeBytes = undefined
  }

  #stage(): Stage {
    return { leafId: this.#leafId, open: this.#open, base: this.#active, added: [], batch: [], ids: new Set() }
  }

  async #plan({ drafts, provenance }: AppendJob, stage: Stage): Promise<readonly Entry[]> {
    const { guard, clock } = this.#options
    const inBatch = stage.batch.length
    for (let from = 0; from < drafts.length; from += DRAFTS_AT_ONCE) {
      if (from > 0) await sleep(clock, 0, NEVER)
      const guarded = await guardDrafts(drafts.slice(from, from + DRAFTS_AT_ONCE), stage.open, provenance, guard)
      stage.open = guarded.open
      for (const draft of guarded.drafts) {
        this.#add(draft, stage)
        if (draft.type === 'compaction') await this.#restateSettings(stage)
      }
    }
    return stage.batch.slice(inBatch).map(({ entry }) => entry)
  }

  #add(draft: EntryDraft, stage: Stage): Entry {
    const encoded = this.#toEntry(draft, stage.leafId, stage.ids)
    stage.batch.push(encoded)
    stage.added.push(encoded.entry)
    stage.leafId = encoded.entry.id
    return encoded.entry
  }

  /**
   * A reader that starts at the end stops at the last compaction; level and model have to be found after it. The entries
   * are pi's own and change nothing for its readers.
   */
  async #restateSettings(stage: Stage): Promise<void> {
    stage.base = extendActivePath(stage.base, stage.added) ?? (await this.#wholePath(stage))
    // A new array: the old one still serves if this job fails.
    stage.added = []
    const { thinkingLevel, model, entries } = stage.base
    this.#add({ type: 'thinking_level_change', thinkingLevel }, stage)
    const isModelKept = entries.some((entry) => modelSetBy(entry) !== undefined)
    if (model !== null && !isModelKept) this.#add({ type: 'model_change', ...model }, stage)
  }

  async #wholePath(stage: Stage): Promise<ActivePath> {
    const committed = this.#leafId === null ? [] : ((await this.#log.path(this.#leafId)) ?? [])
    return toActivePath([...committed, ...stage.batch.map(({ entry }) => entry)])
  }

  #commit(stage: Stage): void {
    this.#leafId = stage.leafId
    this.#open = stage.open
    if (stage.base !== this.#active) {
      this.#active = toMutable(stage.base)
      this.#handedOut = undefined
    }
    for (const entry of stage.added) {
      this.#active.entries.push(entry)
      this.#active.thinkingLevel = levelSetBy(entry) ?? this.#active.thinkingLevel
      this.#active.model = modelSetBy(entry) ?? this.#active.model
    }
    if (this.#activeBytes !== undefined)
      for (const { line } of stage.batch) this.#activeBytes += line.length * BYTES_PER_LETTER
  }

  async #moveLeaf(id: EntryId | null): Promise<void> {
    const active = id === null ? EMPTY_PATH : await this.#log.activeAt(id)
    this.#adopt({ ...this.#state, leafId: id, active })
  }

  async #requireEntry(id: EntryId | null): Promise<void> {
    if (id !== null && (await this.#log.find(id)) === undefined) throw entryNotFound(id)
  }

  #toEntry(draft: EntryDraft, parentId: EntryId | null, taken: Set<EntryId> = new Set()): EncodedEntry {
    const id = this.#newId(taken)
    const { type, ...fields } = draft
    const raw = { type, id, parentId, timestamp: new Date(this.#options.clock.now()).toISOString(), ...fields }
    const entry = raw.type === 'unknown' ? freezeEntry(raw as UnknownEntry) : toEntry(raw, id, parentId)
    const line = encodeLine(raw.type === 'unknown' ? orderedRaw(raw as UnknownEntry) : raw)
    const { maxLineBytes } = this.#options
    // A UTF-16 unit is at most three bytes; the exact count is only needed near the limit.
    if (line.length * 3 > maxLineBytes && Buffer.byteLength(line) > maxLineBytes) {
      throw new GatewayError('ENTRY_TOO_LARGE', 'the entry is larger than a line of a transcript may be', {
        bytes: Buffer.byteLength(line),
        maxBytes: maxLineBytes,
      })
    }
    return { entry, line }
  }

  #newId(taken: Set<EntryId>): EntryId {
    const { ids } = this.#options
    let id = ids.hex(this.#log.idDigits) as EntryId
    for (let attempt = 1; !this.#log.isIdFree(id) || taken.has(id); attempt++)
      id = (attempt < 100 ? ids.hex(this.#log.idDigits) : ids.uuid()) as EntryId
    taken.add(id)
    return id
  }
}

/** They have one owner. */
function togetherOf(jobs: readonly AppendJob[]): Together {
  const [first] = jobs
  if (first === undefined) return ALONE
  return jobs.length === 1
    ? first.together
    : { changes: jobs.flatMap(({ together }) => together.changes), owner: first.together.owner }
}

function answersIn({ changes }: Together): readonly RunId[] {
  return changes.flatMap((change) => (change.kind === 'answer' ? [change.run] : []))
}

interface Mark {
  readonly stage: Stage
  readonly inBatch: number
  readonly inAdded: number
}

function markOf(stage: Stage): Mark {
  return { stage: { ...stage }, inBatch: stage.batch.length, inAdded: stage.added.length }
}

function restore(stage: Stage, mark: Mark): void {
  Object.assign(stage, mark.stage)
  stage.batch.length = mark.inBatch
  stage.added.length = mark.inAdded
}

function toMutable(active: ActivePath): { entries: Entry[]; thinkingLevel: string; model: ActivePath['model'] } {
  return { ...active, entries: [...active.entries] }
}

/** About what entries take in memory; exact would cost more than the cache is worth. */
function sizeOf(entries: readonly Entry[]): number {
  return entries.reduce((bytes, entry) => bytes + sizeOfValue(entry), 0)
}

/** A line and what is parsed of it: fields and short texts take more than their letters. */
const BYTES_PER_LETTER = 1.5
/** What a turn makes of the entries stays with them: messages as they are sent, their weights, what readers know. */
const PREPARED_PER_ENTRY_BYTE = 0.6

function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return 24 + value.length
  if (typeof value !== 'object' || value === null) return 8
  if (Array.isArray(value)) return value.reduce((bytes: number, item: unknown) => bytes + 8 + sizeOfValue(item), 32)
  let bytes = 40
  for (const name in value) bytes += 8 + sizeOfValue((value as Record<string, unknown>)[name])
  return bytes
}

function entryNotFound(id: EntryId): GatewayError {
  return new GatewayError('ENTRY_NOT_FOUND', 'the transcript has no such entry', { entryId: id })
}
