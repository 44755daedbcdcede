import { sleep, type Clock } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import type { SessionKey } from '../core/ids.ts'
import type { SessionArchive } from './archive.ts'
import type { SessionDirectory } from './directory.ts'

export interface RetentionDeps {
  readonly clock: Clock
  readonly log: Log
  readonly directory: SessionDirectory
  readonly archive: SessionArchive
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
    const { log, directory, limits, onArchived } = this.#deps
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
    log.info('old conversations were archived', { archived, sessions: directory.size, isMore: archived === perPass })
  }

  async #archiveOld(signal: AbortSignal): Promise<number> {
    const { clock, directory, archive, limits, isIdle } = this.#deps
    const before = clock.now() - limits.archiveAfterMs
    const tried = new Set<SessionKey>()
    let archived = 0
    while (archived < limits.perPass) {
      signal.throwIfAborted()
      const room = Math.min(SLICE, limits.perPass - archived)
      const going = directory.untouchedSince(before, room, (key) => !tried.has(key) && isIdle(key))
      if (going.length === 0) break
      for (const { key } of going) tried.add(key)
      archived += await archive.archive(going)
      await sleep(clock, 0, signal)
    }
    return archived
  }
}
