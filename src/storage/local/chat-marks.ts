import { isRecord } from '../../base/json.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import type { ChatMark } from '../storage.ts'

/** Keys by the marks of their rows, the one marked last at the end. */
export class ChatMarks {
  readonly #keys = new Map<string, Set<SessionKey>>()

  add(key: SessionKey, record: SessionRecord): void {
    for (const name of namesOf(record)) {
      const keys = this.#keys.get(name) ?? new Set()
      keys.add(key)
      this.#keys.set(name, keys)
    }
  }

  remove(key: SessionKey, record: SessionRecord): void {
    for (const name of namesOf(record)) {
      const keys = this.#keys.get(name)
      keys?.delete(key)
      if (keys?.size === 0) this.#keys.delete(name)
    }
  }

  /** Newest first. */
  of({ kind, value }: ChatMark): readonly SessionKey[] {
    return [...(this.#keys.get(`${kind} ${value}`) ?? [])].toReversed()
  }
}

function namesOf(record: SessionRecord): readonly string[] {
  const { chat } = record
  if (!isRecord(chat)) return []
  return (['root', 'last'] as const).flatMap((kind) =>
    typeof chat[kind] === 'string' ? [`${kind} ${chat[kind]}`] : [],
  )
}
