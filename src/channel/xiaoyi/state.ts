import type { Journal, JournalTopic } from '../../base/journal.ts'
import { isRecord } from '../../base/json.ts'
import { Remembered } from './remembered.ts'

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

const TOPIC = 'xiaoyi'
/** Of each section; the oldest are forgotten first. */
const MAX_ENTRIES = 2_000
const BYTES_PER_ENTRY = 128

/** `value` is null for what is no longer true. */
interface StateRecord {
  readonly section: StateSection
  readonly key: string
  readonly value: string | null
}

/**
 * What the channel must know after a restart: pinned certificates, which launch id stands for which conversation, where
 * to push, and which runs already had their last frame. A change counts at once and is committed behind it: whatever is
 * committed later, such as the message that brought it, cannot be durable without it.
 */
export class XiaoyiState implements JournalTopic {
  readonly name = TOPIC
  readonly #sections: Readonly<Record<StateSection, Remembered<string>>>
  #journal: Pick<Journal, 'commit'> | undefined

  constructor(maxEntries = MAX_ENTRIES) {
    const section = (): Remembered<string> => new Remembered(maxEntries)
    this.#sections = { pins: section(), aliases: section(), pushIds: section(), closedRuns: section() }
  }

  /** After recovery. */
  attach(journal: Pick<Journal, 'commit'>): void {
    this.#journal = journal
  }

  /** Only recovery: our own changes are here before they are committed, and a later one must not be undone by an earlier. */
  apply(data: unknown): void {
    if (this.#journal === undefined && isStateRecord(data)) this.#put(data)
  }

  *snapshot(): Iterable<StateRecord> {
    for (const section of STATE_SECTIONS)
      for (const [key, value] of this.entries(section)) yield { section, key, value }
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
    if (this.#journal === undefined) throw new Error('no journal is attached')
    this.#put(record)
    await this.#journal.commit([{ topic: TOPIC, data: record }])
  }

  #put({ section, key, value }: StateRecord): void {
    if (value === null) this.#sections[section].delete(key)
    else this.#sections[section].set(key, value)
  }
}

function isStateRecord(data: unknown): data is StateRecord {
  if (!isRecord(data)) return false
  const { section, key, value } = data
  return (
    STATE_SECTIONS.some((known) => known === section) &&
    typeof key === 'string' &&
    (typeof value === 'string' || value === null)
  )
}
