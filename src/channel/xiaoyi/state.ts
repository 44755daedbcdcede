import type { Change } from '../../core/change.ts'
import type { JsonValue } from '../../base/json.ts'
import { BoundedMap } from './bounded-map.ts'

export const STATE_SECTIONS = [
  /** URL of a link → SHA-256 fingerprint. */
  'pins',
  /** Top-level session id → `params.sessionId`. */
  'aliases',
  /** Session id → `push_id`. Per session, because a global one delivers one person's result to another. */
  'pushIds',
  /** Runs whose task is closed on the phone although their answer is still to come → session id. */
  'closedRuns',
] as const
type StateSection = (typeof STATE_SECTIONS)[number]

const CHANNEL = 'xiaoyi'
/** Of each section; the oldest are forgotten first. */
const MAX_ENTRIES = 2_000
const BYTES_PER_ENTRY = 128

/** `value` is null for what is no longer true. */
interface StateRecord {
  readonly section: StateSection
  readonly key: string
  readonly value: string | null
}

/** Where the sections are stored, each as `xiaoyi.<section>`. */
export interface ChannelStorage {
  transact(changes: readonly Change[]): Promise<unknown>
  readonly state: { entries(section: string): Promise<readonly (readonly [string, JsonValue])[]> }
}

/**
 * What the channel must know after a restart: pinned certificates, which launch id stands for which conversation, where
 * to push, and which runs already had their last frame. A change counts at once and is committed behind it: whatever is
 * committed later, such as the message that brought it, cannot be durable without it.
 */
export class XiaoyiState {
  readonly #sections: Readonly<Record<StateSection, BoundedMap<string>>>
  #storage: ChannelStorage | undefined

  constructor(maxEntries = MAX_ENTRIES) {
    const section = (): BoundedMap<string> => new BoundedMap(maxEntries)
    this.#sections = { pins: section(), aliases: section(), pushIds: section(), closedRuns: section() }
  }

  /** Reads what is stored; call before anything else. From then on changes are written there. */
  async load(storage: ChannelStorage): Promise<void> {
    this.#storage = storage
    await this.reload()
  }

  /** Another node may have changed it while it had the links. */
  async reload(): Promise<void> {
    for (const section of STATE_SECTIONS) {
      const stored = await this.#loaded().state.entries(`${CHANNEL}.${section}`)
      for (const [key] of this.entries(section)) this.#put({ section, key, value: null })
      for (const [key, value] of stored) if (typeof value === 'string') this.#put({ section, key, value })
    }
  }

  get heldBytes(): number {
    let bytes = 0
    for (const section of STATE_SECTIONS)
      for (const [key, value] of this.entries(section)) bytes += BYTES_PER_ENTRY + 2 * (key.length + value.length)
    return bytes
  }

  get(section: StateSection, key: string): string | undefined {
    return this.#sections[section].get(key)
  }

  entries(section: StateSection): readonly (readonly [string, string])[] {
    return this.#sections[section].entries()
  }

  /** Durable when it resolves. When it rejects the change counts until the next start all the same. */
  async set(section: StateSection, key: string, value: string): Promise<void> {
    if (this.get(section, key) !== value) await this.#change({ section, key, value })
  }

  async delete(section: StateSection, key: string): Promise<void> {
    if (this.get(section, key) !== undefined) await this.#change({ section, key, value: null })
  }

  async #change(record: StateRecord): Promise<void> {
    const storage = this.#loaded()
    this.#put(record)
    const { section, key, value } = record
    await storage.transact([{ kind: 'set-state', section: `${CHANNEL}.${section}`, key, value }])
  }

  #loaded(): ChannelStorage {
    if (this.#storage === undefined) throw new Error('the state of the channel was not loaded')
    return this.#storage
  }

  #put({ section, key, value }: StateRecord): void {
    if (value === null) this.#sections[section].delete(key)
    else this.#sections[section].set(key, value)
  }
}
