import { isRecord, type JsonObject, type JsonValue } from '../../base/json.ts'
import type { Change } from '../../core/change.ts'
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

export const PUSH_SECTION = 'a2a-push'

/** Where the configurations are stored: all of one task under its run. */
interface PushStorage {
  transact(changes: readonly Change[]): Promise<unknown>
  readonly state: { entries(section: string): Promise<readonly (readonly [string, JsonValue])[]> }
}

/** The push notification configurations of tasks. A change counts once it is durable. */
export class PushConfigs {
  readonly #byRun = new Map<string, readonly PushConfig[]>()
  readonly #maxTasks: number
  #storage: PushStorage | undefined

  /** Tasks with configurations; beyond so many the oldest are forgotten. */
  constructor(maxTasks: number) {
    this.#maxTasks = maxTasks
  }

  /** Reads what is stored; call before anything else. */
  async load(storage: PushStorage): Promise<void> {
    for (const [run, configs] of await storage.state.entries(PUSH_SECTION))
      if (isConfigs(configs)) this.#keep(run, configs)
    this.#storage = storage
  }

  /** Undefined when they were never changed. */
  of(run: RunId): readonly PushConfig[] | undefined {
    return this.#byRun.get(run)
  }

  /** Durable when it resolves. */
  async set(run: RunId, configs: readonly PushConfig[]): Promise<void> {
    if (this.#storage === undefined) throw new Error('the configurations were not loaded')
    await this.#storage.transact([{ kind: 'set-state', section: PUSH_SECTION, key: run, value: [...configs] }])
    this.#keep(run, configs)
  }

  #keep(run: string, configs: readonly PushConfig[]): void {
    this.#byRun.delete(run)
    this.#byRun.set(run, configs)
    const [oldest] = this.#byRun.size > this.#maxTasks ? this.#byRun.keys() : []
    if (oldest !== undefined) this.#byRun.delete(oldest)
  }
}

function isConfigs(data: unknown): data is readonly PushConfig[] {
  if (!Array.isArray(data)) return false
  const configs: readonly unknown[] = data
  return configs.every((config) => {
    if (!isRecord(config)) return false
    const { id, url, token, version } = config
    return (
      [id, url, version].every((one) => typeof one === 'string') && (token === undefined || typeof token === 'string')
    )
  })
}
