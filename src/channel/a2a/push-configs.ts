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

/** Where the configurations are stored: all of one task under its run. The oldest are forgotten beyond its own limit. */
interface PushStorage {
  transact(changes: readonly Change[]): Promise<unknown>
  readonly state: { get(section: string, key: string): Promise<JsonValue | undefined> }
}

/**
 * The push notification configurations of tasks. Nothing of them is held in memory: a client may change them at another
 * node than the one that works on the task.
 */
export class PushConfigs {
  readonly #storage: PushStorage

  constructor(storage: PushStorage) {
    this.#storage = storage
  }

  /** Undefined when they were never changed. */
  async of(run: RunId): Promise<readonly PushConfig[] | undefined> {
    const stored = await this.#storage.state.get(PUSH_SECTION, run)
    return isConfigs(stored) ? stored : undefined
  }

  /** Durable when it resolves. */
  async set(run: RunId, configs: readonly PushConfig[]): Promise<void> {
    await this.#storage.transact([{ kind: 'set-state', section: PUSH_SECTION, key: run, value: [...configs] }])
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
