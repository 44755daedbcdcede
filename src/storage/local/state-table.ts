import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { isRecord, type JsonValue } from '../../base/json.ts'

type Entry = readonly [section: string, key: string, value: JsonValue | null]

/** How the entries of some sections stand in the journal. */
interface Form {
  readonly topic: string
  holds(section: string): boolean
  encode(entry: Entry): unknown
  decode(data: unknown): Entry | undefined
}

const XIAOYI = 'xiaoyi.'
const WINDOWS = 'windows'
const MOST_ENTRIES = 2_000

/** Topics of released versions keep their form: an older home opens with a newer program. */
const FORMS: readonly Form[] = [
  {
    topic: 'xiaoyi',
    holds: (section) => section.startsWith(XIAOYI),
    encode: ([section, key, value]) => ({ section: section.slice(XIAOYI.length), key, value }),
    decode: (data) => {
      if (!isRecord(data)) return undefined
      const { section, key, value } = data
      const isText = typeof value === 'string' || value === null
      if (typeof section !== 'string' || typeof key !== 'string' || !isText) return undefined
      return [`${XIAOYI}${section}`, key, value]
    },
  },
  {
    topic: WINDOWS,
    holds: (section) => section === WINDOWS,
    encode: ([, model, value]) => (isRecord(value) ? { ...value, model } : { model, gone: true }),
    decode: (data) => {
      if (!isRecord(data) || typeof data['model'] !== 'string') return undefined
      return [WINDOWS, data['model'], data['gone'] === true ? null : (data as JsonValue)]
    },
  },
  {
    topic: 'state',
    holds: () => true,
    encode: (entry) => entry,
    decode: (data) => {
      if (!Array.isArray(data)) return undefined
      const [section, key, value] = data as readonly unknown[]
      if (typeof section !== 'string' || typeof key !== 'string' || value === undefined) return undefined
      return [section, key, value as JsonValue | null]
    },
  },
]

/** Small remembered things by section and key, the ones changed longest ago first; each section is bounded. */
export class StateTable {
  readonly #sections = new Map<string, Map<string, JsonValue>>()
  readonly #most: Readonly<Record<string, number>>
  readonly #mostOfOthers: number

  /** `most` are the entries of some sections. */
  constructor(most: Readonly<Record<string, number>> = {}, mostOfOthers = MOST_ENTRIES) {
    this.#most = most
    this.#mostOfOthers = mostOfOthers
  }

  /** One for each form of record. */
  readonly topics: readonly JournalTopic[] = FORMS.map((form) => ({
    name: form.topic,
    read: (data) => (form.decode(data) === undefined ? undefined : data),
    apply: (data) => {
      const entry = form.decode(data)
      if (entry !== undefined) this.#put(entry)
    },
    snapshot: () => this.#snapshot(form),
  }))

  get(section: string, key: string): JsonValue | undefined {
    return this.#sections.get(section)?.get(key)
  }

  get sections(): Iterable<string> {
    return this.#sections.keys()
  }

  entries(section: string): readonly (readonly [string, JsonValue])[] {
    return [...(this.#sections.get(section) ?? [])]
  }

  recordOf({ section, key, value }: { section: string; key: string; value: JsonValue | null }): JournalRecord {
    const form = formOf(section)
    return { topic: form.topic, data: form.encode([section, key, value]) }
  }

  #put([section, key, value]: Entry): void {
    const entries = this.#sections.get(section) ?? new Map<string, JsonValue>()
    this.#sections.set(section, entries)
    entries.delete(key)
    if (value !== null) entries.set(key, value)
    const [oldest] = entries.size > (this.#most[section] ?? this.#mostOfOthers) ? entries.keys() : []
    if (oldest !== undefined) entries.delete(oldest)
  }

  *#snapshot(form: Form): Iterable<unknown> {
    for (const [section, entries] of this.#sections) {
      if (formOf(section) !== form) continue
      for (const [key, value] of [...entries]) yield form.encode([section, key, value])
    }
  }
}

function formOf(section: string): Form {
  const form = FORMS.find((one) => one.holds(section))
  if (form === undefined) throw new Error('every section has a form')
  return form
}
