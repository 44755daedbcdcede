import { signal } from '@preact/signals'
import { uploadFile } from './api.ts'
import { wordsOf } from './failures.ts'
import { keep, kept } from './kept.ts'
import type { StoredFile } from './types.ts'

/** A file that is to go with the next message. */
export interface Attached {
  readonly local: string
  readonly name: string
  readonly bytes: number
  readonly state: 'uploading' | 'ready' | 'failed'
  readonly stored?: StoredFile
  /** The chosen file, until it is uploaded. */
  readonly file?: File
  readonly error?: string
}

/** The gateway's own defaults: it has the last word. */
const MAX_FILES = 10
const MAX_BYTES = 25 * 1024 * 1024

/** The files of a conversation's draft. They are uploaded at once; what is uploaded outlives a reload. */
export class Attachments {
  readonly files = signal<readonly Attached[]>([])
  /** A file that was refused, by the reason. */
  readonly refused = signal<{ readonly name: string; readonly reason: 'large' | 'many' } | undefined>(undefined)
  readonly #name: string

  constructor(key: string) {
    this.#name = `files.${key}`
    this.files.value = restored(this.#name)
  }

  get isBusy(): boolean {
    return this.files.value.some(({ state }) => state !== 'ready')
  }

  add(files: Iterable<File>): void {
    this.refused.value = undefined
    for (const file of files) {
      if (this.files.value.length >= MAX_FILES) this.refused.value = { name: file.name, reason: 'many' }
      else if (file.size > MAX_BYTES) this.refused.value = { name: file.name, reason: 'large' }
      else this.#begin(file)
    }
  }

  remove(local: string): void {
    this.refused.value = undefined
    this.#set(this.files.value.filter((one) => one.local !== local))
  }

  /** Uploads once more what failed while there was no connection. */
  tryAgain(): void {
    for (const one of this.files.value) if (one.state === 'failed') void this.#upload(one)
  }

  /** The files of a message that is being sent; the draft has none afterwards. */
  take(): readonly StoredFile[] {
    const taken = this.files.value.flatMap(({ stored }) => (stored === undefined ? [] : [stored]))
    this.#set([])
    return taken
  }

  #begin(file: File): void {
    // A pasted picture has no name of its own.
    const name = file.name === '' ? `file.${file.type.split('/')[1] ?? 'bin'}` : file.name
    const one: Attached = { local: crypto.randomUUID(), name, bytes: file.size, state: 'uploading', file }
    this.#set([...this.files.value, one])
    void this.#upload(one)
  }

  async #upload({ local, name, file }: Attached): Promise<void> {
    if (file === undefined) return
    this.#change(local, { state: 'uploading' })
    try {
      const stored = await uploadFile<StoredFile>(file, name)
      this.#change(local, { state: 'ready', stored })
    } catch (thrown) {
      this.#change(local, { state: 'failed', error: wordsOf(thrown).message })
    }
  }

  #change(local: string, fields: Partial<Attached>): void {
    this.#set(this.files.value.map((one) => (one.local === local ? { ...one, ...fields } : one)))
  }

  #set(files: readonly Attached[]): void {
    this.files.value = files
    const ready = files.flatMap(({ stored }) => (stored === undefined ? [] : [stored]))
    keep(this.#name, ready.length === 0 ? undefined : JSON.stringify(ready))
  }
}

function restored(name: string): readonly Attached[] {
  try {
    const found: unknown = JSON.parse(kept(name) ?? '[]')
    if (!Array.isArray(found)) return []
    return (found as readonly StoredFile[])
      .filter((one) => typeof one?.id === 'string' && typeof one.name === 'string')
      .map((stored) => ({ local: stored.id, name: stored.name, bytes: stored.bytes, state: 'ready', stored }))
  } catch {
    return []
  }
}
