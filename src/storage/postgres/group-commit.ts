import { sleep, deferred, type Deferred } from '../../base/async.ts'
import { backoffDelay, type Clock, type Timer } from '../../base/clock.ts'
import { DatabaseError, type Database, type Statement } from '../../base/database.ts'
import type { Ids } from '../../base/ids.ts'
import { GatewayError } from '../../core/errors.ts'
import { LATER_MS } from '../later-commit.ts'

/** One transaction as `commit_all` reads it. */
export interface Unit {
  /** JSON: owner, accept, claim, release, append, changes. */
  readonly json: string
  /** What must not change under it: keys of sessions, ids of transcripts, sections of states. */
  readonly names: readonly string[]
  /** Runs it answers: their accounts' numbers are drawn. */
  readonly runs: readonly string[]
}

export interface GroupCommitOptions {
  readonly database: Pick<Database, 'query'>
  readonly clock: Clock
  readonly ids: Ids
  readonly node: string
  /** What `commit_all` must know of limits, as JSON. */
  readonly rules: string
  /** Transactions of one group, and their bytes. */
  readonly maxUnits?: number
  readonly maxBytes?: number
  /** Transactions that wait; more are refused with `STORAGE_UNAVAILABLE`. */
  readonly maxWaiting?: number
  /** Longest wait of a unit that `mayWait`. */
  readonly gatherMs?: number
  /** The database does not answer, or answers again. */
  onReachable?(isReachable: boolean): void
}

export interface SubmitOptions {
  /** As when `waitMs` is over. */
  readonly until?: AbortSignal | undefined
  /** It may share the next round trip of others. */
  readonly mayWait?: boolean
  /** The result of a unit whose caller was told `STORAGE_UNAVAILABLE`, and that was done after all. */
  late?(result: string): void
}

interface Waiting extends SubmitOptions {
  readonly unit: Unit
  readonly done: Deferred<string>
  isGivenUp: boolean
}

const COMMIT: Statement = {
  name: 'commit_all',
  text: 'select commit_all($1, $2, $3, $4, $5::jsonb, $6::jsonb) as results',
}
const PAUSES = { firstMs: 50, maxMs: 1_000, jitter: 0.2 }

/**
 * What is asked to commit while a commit is under way shares the next one: one round trip and one transaction of the
 * database for all. One group is under way at a time, so what was asked in an order is done in that order. A group whose
 * answer is lost is sent again under the same number, which the database applies once.
 */
export class GroupCommit {
  readonly #options: Required<Omit<GroupCommitOptions, 'onReachable'>> & Pick<GroupCommitOptions, 'onReachable'>
  readonly #closing = new AbortController()
  #waiting: Waiting[] = []
  #working: Promise<void> | undefined
  #gathering: Timer | undefined
  /** Groups of an earlier life of this node have lower numbers only when the node's name is new; it is. */
  #batch = 0
  groups = 0

  constructor(options: GroupCommitOptions) {
    this.#options = { maxUnits: 500, maxBytes: 4 * 1024 * 1024, maxWaiting: 100_000, gatherMs: LATER_MS, ...options }
  }

  /**
   * Resolves with the unit's result once it is durable. Rejects with `STORAGE_UNAVAILABLE` when the database is away for
   * longer than `waitMs`: a unit that was sent by then may still be done, one that was not never is. One that `mayWait`
   * makes a round trip of its own after `gatherMs`.
   */
  async submit(unit: Unit, waitMs: number, options: SubmitOptions = {}): Promise<string> {
    const { clock, maxWaiting, gatherMs } = this.#options
    const { mayWait = false, until } = options
    if (this.#closing.signal.aborted || until?.aborted === true || this.#waiting.length >= maxWaiting)
      throw unavailable()
    const waiting: Waiting = { ...options, unit, done: deferred<string>(), isGivenUp: false }
    const giveUp = (): void => {
      waiting.isGivenUp = true
      waiting.done.reject(unavailable())
    }
    const timer = clock.after(waitMs, giveUp)
    until?.addEventListener('abort', giveUp, { once: true })
    this.#waiting.push(waiting)
    if (mayWait && this.#working === undefined) this.#gathering ??= clock.after(gatherMs, () => this.#start())
    else this.#start()
    try {
      return await waiting.done.promise
    } finally {
      timer.cancel()
      until?.removeEventListener('abort', giveUp)
    }
  }

  /** Finishes what was asked for, unless the database is away. */
  async close(): Promise<void> {
    this.#closing.abort(unavailable())
    this.#start()
    await this.#working
  }

  #start(): void {
    this.#gathering?.cancel()
    this.#gathering = undefined
    // One turn later everything that this turn has to commit is in the queue.
    this.#working ??= Promise.resolve().then(() => this.#work())
  }

  async #work(): Promise<void> {
    for (let group = this.#take(); group.length > 0; group = this.#take()) {
      try {
        await this.#commit(group)
      } catch (error) {
        await this.#commitSingly(group, error)
      }
    }
    this.#working = undefined
  }

  #take(): readonly Waiting[] {
    const { maxUnits, maxBytes } = this.#options
    const wanted = this.#waiting.filter(({ isGivenUp }) => !isGivenUp)
    let bytes = 0
    const end = wanted.findIndex(({ unit }, index) => {
      bytes += unit.json.length
      return index === maxUnits || (index > 0 && bytes > maxBytes)
    })
    const group = end < 0 ? wanted : wanted.slice(0, end)
    this.#waiting = wanted.slice(group.length)
    return group
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    const results = await this.#send(
      ++this.#batch,
      group.map(({ unit }) => unit),
    )
    for (const [index, { done, isGivenUp, late }] of group.entries()) {
      const result = results[index] ?? '{}'
      if (isGivenUp) late?.(result)
      else done.resolve(result)
    }
  }

  /** One of them cannot be done; the others must not suffer for it. */
  async #commitSingly(group: readonly Waiting[], error: unknown): Promise<void> {
    if (group.length === 1 || this.#closing.signal.aborted)
      return group.forEach(({ done }) => done.reject(toStorageError(error)))
    for (const waiting of group)
      await this.#commit([waiting]).catch((reason: unknown) => waiting.done.reject(toStorageError(reason)))
  }

  async #send(batch: number, units: readonly Unit[]): Promise<readonly string[]> {
    const { database, node, rules, clock, ids, onReachable } = this.#options
    const values = [
      node,
      batch,
      [...new Set(units.flatMap(({ names }) => names))],
      units.flatMap(({ runs }) => runs),
      `[${units.map(({ json }) => json).join()}]`,
      rules,
    ]
    this.groups++
    for (let attempt = 0; ; attempt++) {
      try {
        const [row] = await database.query<{ results: readonly string[] }>(COMMIT, values)
        if (attempt > 0) onReachable?.(true)
        return row?.results ?? []
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.failure !== 'unreachable') throw error
        if (attempt === 0) onReachable?.(false)
        await sleep(clock, backoffDelay(attempt, PAUSES, ids), this.#closing.signal)
      }
    }
  }
}

export function unavailable(cause?: unknown): GatewayError {
  return new GatewayError(
    'STORAGE_UNAVAILABLE',
    'the database cannot be reached at the moment; try again',
    {},
    { cause },
  )
}

export function toStorageError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (!(error instanceof DatabaseError))
    return new GatewayError('STORAGE_FAILED', 'the database refused to store something', {}, { cause: error })
  switch (error.failure) {
    case 'unreachable':
    case 'refused':
    case 'missing':
      return unavailable(error)
    case 'full':
      return new GatewayError('STORAGE_FULL', 'the database has no space left', {}, { cause: error })
    case 'statement':
      return new GatewayError(
        'STORAGE_FAILED',
        'the database refused to store something',
        { state: error.state },
        { cause: error },
      )
  }
}
