import type { Clock, Timer } from '../../base/clock.ts'
import { writeAtomically } from '../../base/atomic-write.ts'
import { readWhole, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { Journal } from './journal.ts'
import { isRecord, parseJson } from '../../base/json.ts'

interface JournalHeadDeps {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
}

const RECORD_EVERY_MS = 15_000

/**
 * How far the journal has come, in a file of its own beside it: when the end of the journal is gone, or all of it, the
 * next start notices. Recorded every 15 seconds, so a loss of what came after that is not noticed.
 */
export class JournalHead {
  readonly #deps: JournalHeadDeps
  readonly #path: string
  readonly #journal: Pick<Journal, 'lastBatch'>
  #recorded: number
  #timer: Timer | undefined
  #writing: Promise<void> | undefined

  constructor(deps: JournalHeadDeps, path: string, journal: Pick<Journal, 'lastBatch'>, recorded: number) {
    this.#deps = deps
    this.#path = path
    this.#journal = journal
    this.#recorded = recorded
    this.#later()
  }

  /** Batches that were durable and are not there any more. */
  static lostBatches(recorded: number, journal: Pick<Journal, 'lastBatch'>): number {
    return Math.max(0, recorded - journal.lastBatch)
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#writing
    await this.#record()
  }

  #later(): void {
    this.#timer = this.#deps.clock.after(RECORD_EVERY_MS, () => {
      this.#writing = this.#record()
      this.#later()
    })
  }

  async #record(): Promise<void> {
    const { lastBatch } = this.#journal
    if (lastBatch === this.#recorded) return
    try {
      const text = `${JSON.stringify({ batch: lastBatch })}\n`
      await writeAtomically(this.#deps, this.#path, text)
      this.#recorded = lastBatch
    } catch {
      // A disk that takes no more writes shows in the journal; this file has nothing to add.
    }
  }
}

/** Zero when nothing is known. */
export async function readJournalHead(files: Files, path: string): Promise<number> {
  const bytes = await readWhole(files, path, 1024).catch(() => undefined)
  const head = bytes === undefined ? undefined : parseJson(new TextDecoder().decode(bytes))
  const batch = isRecord(head) ? head['batch'] : undefined
  return typeof batch === 'number' && Number.isSafeInteger(batch) && batch > 0 ? batch : 0
}
