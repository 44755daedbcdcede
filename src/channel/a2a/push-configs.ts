import type { Journal, JournalTopic } from '../../base/journal.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import type { RunId } from '../../core/ids.ts'

/** Where one task's changes are sent. */
export interface PushConfig extends JsonObject {
  readonly id: string
  readonly url: string
  /** Sent along, so that the receiver knows who calls. */
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials: string }
  /** Of the protocol its client speaks: it decides the shape of what is sent. */
  readonly version: string
}

const TOPIC = 'a2a-push'
/** Tasks with configurations; the oldest are forgotten first. */
const MAX_TASKS = 10_000

/** All configurations of one task; an empty list when there are none any more. */
interface PushRecord {
  readonly run: RunId
  readonly configs: readonly PushConfig[]
}

/** The push notification configurations of tasks, durable in the journal. A change counts once it is durable. */
export class PushConfigs implements JournalTopic {
  readonly name = TOPIC
  readonly #byRun = new Map<RunId, readonly PushConfig[]>()
  readonly #maxTasks: number
  #journal: Pick<Journal, 'commit'> | undefined

  constructor(maxTasks = MAX_TASKS) {
    this.#maxTasks = maxTasks
  }

  /** After recovery. */
  attach(journal: Pick<Journal, 'commit'>): void {
    this.#journal = journal
  }

  apply(data: unknown): void {
    if (!isPushRecord(data)) return
    this.#byRun.delete(data.run)
    this.#byRun.set(data.run, data.configs)
    const [oldest] = this.#byRun.size > this.#maxTasks ? this.#byRun.keys() : []
    if (oldest !== undefined) this.#byRun.delete(oldest)
  }

  *snapshot(): Iterable<PushRecord> {
    for (const [run, configs] of this.#byRun) yield { run, configs }
  }

  /** Undefined when they were never changed. */
  of(run: RunId): readonly PushConfig[] | undefined {
    return this.#byRun.get(run)
  }

  /** Durable when it resolves. */
  async set(run: RunId, configs: readonly PushConfig[]): Promise<void> {
    if (this.#journal === undefined) throw new Error('no journal is attached')
    const data: PushRecord = { run, configs }
    await this.#journal.commit([{ topic: TOPIC, data }])
  }
}

function isPushRecord(data: unknown): data is PushRecord {
  if (!isRecord(data) || typeof data['run'] !== 'string' || !Array.isArray(data['configs'])) return false
  const configs: readonly unknown[] = data['configs']
  return configs.every((config) => {
    if (!isRecord(config)) return false
    const { id, url, token, version } = config
    return (
      [id, url, version].every((one) => typeof one === 'string') && (token === undefined || typeof token === 'string')
    )
  })
}
