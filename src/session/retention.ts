import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Storage } from '../storage/storage.ts'

export interface RetentionDeps {
  readonly clock: Clock
  readonly log: Log
  readonly storage: Pick<Storage, 'sessions'>
  readonly limits: RetentionLimits
  /** Nothing runs, waits or is being accepted in it. */
  isIdle(key: SessionKey): boolean
  onArchived(sessions: number): void
}

export interface RetentionLimits {
  /** A conversation that was not used for so long is archived. */
  readonly archiveAfterMs: number
  /** Conversations of one pass; the next pass takes the others. */
  readonly perPass: number
}

const FIRST_PASS_MS = 60_000
const PASS_EVERY_MS = 3_600_000
/** Rows that one commit takes out of the index; everything else has its turn in between. */
const SLICE = 50

/** Archives conversations by age, in the background, a bounded number at a time. */
export class SessionRetention {
  readonly #deps: RetentionDeps
  readonly #closing = new AbortController()
  #working: Promise<void> | undefined

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#working ??= this.#passForEver(this.#closing.signal)
  }

  /** Resolves when nothing is archived any more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closing'))
    await this.#working
  }

  async #passForEver(signal: AbortSignal): Promise<void> {
    try {
      await sleep(this.#deps.clock, FIRST_PASS_MS, signal)
      for (;;) {
        await this.#pass(signal)
        await sleep(this.#deps.clock, PASS_EVERY_MS, signal)
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { log, storage, limits, onArchived } = this.#deps
    let archived = 0
    try {
      archived = await this.#archiveOld(signal)
    } catch (thrown) {
      signal.throwIfAborted()
      log.warn('old conversations could not be archived; the next pass tries again', { errno: errnoOf(thrown) })
    }
    if (archived === 0) return
    onArchived(archived)
    const { perPass } = limits
    const sessions = await storage.sessions.count()
    log.info('old conversations were archived', { archived, sessions, isMore: archived === perPass })
  }

  async #archiveOld(signal: AbortSignal): Promise<number> {
    const { clock, storage, limits, isIdle } = this.#deps
    const before = clock.now() - limits.archiveAfterMs
    const tried = new Set<SessionKey>()
    let archived = 0
    while (archived < limits.perPass) {
      signal.throwIfAborted()
      const room = Math.min(SLICE, limits.perPass - archived)
      const found = await storage.sessions.untouchedSince(before, room, tried)
      if (found.length === 0) break
      for (const { key } of found) tried.add(key)
      // In one go with the archiving: what arrives later finds the move under way and waits for it.
      archived += await storage.sessions.archive(found.filter(({ key }) => isIdle(key)))
      await sleep(clock, 0, signal)
    }
    return archived
  }
}
