import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Owner } from '../core/change.ts'
import { describeCause, toGatewayError } from '../core/errors.ts'
import type { RunId } from '../core/ids.ts'
import type { Answer, Outlet, Together } from './outlet.ts'
import { retryWhileStorageFull } from './storage-full.ts'

export interface OpenMessagesDeps {
  readonly clock: Clock
  readonly log: Log
  readonly outlet: Outlet
}

const MOST_REMEMBERED = 1_000

/** Messages that were dispatched here and have no answer yet, and how they get it. */
export class OpenMessages {
  readonly #deps: OpenMessagesDeps
  readonly #open = new Map<RunId, number | undefined>()
  /** Answered here lately: a look-up that began before may still show them open. */
  readonly #answered = new Set<RunId>()
  /** Left to another node lately: until that one has taken them they are in no queue. */
  readonly #left = new Set<RunId>()
  /** Ends what waits for space on the disk: the messages stay open for the next start. */
  readonly #closing = new AbortController()

  constructor(deps: OpenMessagesDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#open.size
  }

  /** `epoch`: with it this node held the session when the message was open. */
  add(run: RunId, epoch?: number): void {
    this.#open.set(run, epoch)
  }

  /**
   * Whether nothing can have answered it elsewhere before this node held the session with this epoch. Otherwise it has to
   * be looked up.
   */
  isSureUnder(run: RunId, epoch: number): boolean {
    return this.#open.get(run) === epoch
  }

  /** Another node answered it. */
  answeredElsewhere(run: RunId): undefined {
    this.#forget(run)
  }

  has(run: RunId): boolean {
    return this.#open.has(run)
  }

  isKnown(run: RunId): boolean {
    return this.#open.has(run) || this.#answered.has(run)
  }

  /** The message stays open for the node that holds its session now. */
  leave(run: RunId): undefined {
    this.#open.delete(run)
    remember(this.#left, run)
  }

  wasLeft(run: RunId): boolean {
    return this.#left.has(run)
  }

  /** Durable, and on its way to its channel, when it resolves. */
  async answer(answers: readonly Answer[], together: Together = {}): Promise<void> {
    await this.#deps.outlet.answer(answers, together)
    for (const { run } of answers) this.#forget(run)
  }

  /**
   * An answer that cannot be made durable is not sent. For lack of space it waits; otherwise, and when a shutdown comes
   * first, the message stays open and is answered after the next start. Never throws.
   */
  async answerWhenPossible(answers: readonly Answer[], owner?: Owner): Promise<void> {
    const { clock, log } = this.#deps
    const { signal } = this.#closing
    if (answers.length === 0) return
    try {
      await retryWhileStorageFull(() => this.answer(answers, { owner }), { clock, log, signal, isRepeatable: true })
    } catch (thrown) {
      const error = toGatewayError(thrown)
      const runs = answers.map(({ run }) => run)
      if (error.code === 'OWNERSHIP_LOST') return runs.forEach((run) => this.leave(run))
      log.error('a reply could not be stored', { runs, code: error.code, ...describeCause(error) })
    }
  }

  close(): void {
    this.#closing.abort()
  }

  #forget(run: RunId): void {
    this.#open.delete(run)
    remember(this.#answered, run)
  }
}

function remember(runs: Set<RunId>, run: RunId): void {
  runs.add(run)
  const [oldest] = runs.size > MOST_REMEMBERED ? runs : []
  if (oldest !== undefined) runs.delete(oldest)
}
