import type { Clock } from '../../base/clock.ts'
import type { CleanupTotals } from '../../core/change.ts'
import type { SessionId, SessionKey } from '../../core/ids.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import type { Spent } from '../../core/spent.ts'

/** What a transaction made of a session that its node holds. */
export interface HeldRow {
  readonly key: SessionKey
  readonly record: SessionRecord
  /** Rises with every change of the row. */
  readonly changed: number
  /** Lines of its transcript. */
  readonly entries: number
}

export interface HeldTotals {
  readonly sessionId: SessionId
  readonly spent: Spent
  readonly saved: CleanupTotals
}

interface View {
  readonly row: HeldRow
  readonly seenAt: number
  totals?: HeldTotals
}

interface Held {
  readonly epoch: number
  view?: View
}

/** Twice the time between two looks: one may take as long as it waits. */
const FRESH_MS = 2_000

/**
 * The sessions that this node holds, with their epochs and what the last transaction of this node said about them. That
 * is what the database has, unless another node changed the row since: then a notice, or the look of every second, ends
 * it. A turn sees everything that was confirmed before its message was accepted.
 */
export class HeldSessions {
  readonly #clock: Clock
  readonly #held = new Map<SessionKey, Held>()
  readonly #keysById = new Map<SessionId, SessionKey>()
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#held.size
  }

  epochOf(key: SessionKey): number | undefined {
    return this.#held.get(key)?.epoch
  }

  *all(): Iterable<readonly [SessionKey, { readonly epoch: number }]> {
    yield* this.#held
  }

  /** The one taken longest ago. */
  oldest(): { readonly session: SessionKey; readonly epoch: number } | undefined {
    for (const [session, { epoch }] of this.#held) return { session, epoch }
    return undefined
  }

  hold(key: SessionKey, epoch: number): void {
    if (this.#held.get(key)?.epoch === epoch) return
    this.drop(key)
    this.#held.set(key, { epoch })
  }

  drop(key: SessionKey): void {
    this.forget(key)
    this.#held.delete(key)
  }

  /** It is still held; what was known of it may have changed. */
  forget(key: SessionKey): void {
    const held = this.#held.get(key)
    if (held?.view === undefined) return
    this.#keysById.delete(held.view.row.record.sessionId)
    delete held.view
  }

  /** The database has this change of the row: what is known from before it is over. */
  forgetBefore(key: SessionKey, changed: number): void {
    if ((this.#held.get(key)?.view?.row.changed ?? changed) < changed) this.forget(key)
  }

  /** A transaction of this node that was asked for at `askedAt` left the row so. */
  see(row: HeldRow, askedAt: number): void {
    const held = this.#held.get(row.key)
    if (held === undefined || (held.view?.row.changed ?? 0) > row.changed) return
    const totals = held.view?.row.record.sessionId === row.record.sessionId ? held.view.totals : undefined
    this.forget(row.key)
    held.view = { row, seenAt: askedAt, ...(totals === undefined ? {} : { totals }) }
    this.#keysById.set(row.record.sessionId, row.key)
  }

  seeTotals(totals: HeldTotals): void {
    const view = this.#viewOf(totals.sessionId)
    if (view !== undefined) view.totals = totals
  }

  /** Everything held was compared with the database at this time. */
  looked(at: number): void {
    this.#lookedAt = at
  }

  row(key: string): HeldRow | undefined {
    const view = this.#held.get(key as SessionKey)?.view
    return view !== undefined && this.#isFresh(view) ? view.row : undefined
  }

  rowById(sessionId: string): HeldRow | undefined {
    const view = this.#viewOf(sessionId as SessionId)
    return view !== undefined && this.#isFresh(view) ? view.row : undefined
  }

  totals(sessionId: SessionId): HeldTotals | undefined {
    const view = this.#viewOf(sessionId)
    return view !== undefined && this.#isFresh(view) ? view.totals : undefined
  }

  #viewOf(sessionId: SessionId): View | undefined {
    const key = this.#keysById.get(sessionId)
    return key === undefined ? undefined : this.#held.get(key)?.view
  }

  #isFresh({ seenAt }: View): boolean {
    return this.#clock.monotonic() - Math.max(seenAt, this.#lookedAt) < FRESH_MS
  }
}
