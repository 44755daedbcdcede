import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { removeUnfinishedBeside, writeAtomically } from '../../base/atomic-write.ts'
import { errnoOf, makeDurableDirectory, readWhole, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'

export interface Note {
  readonly id: string
  readonly text: string
  /** Unix time of the last change. */
  readonly updatedAt: number
}

export interface MemoryLimits {
  readonly maxNotes: number
  readonly maxNoteBytes: number
}

export const MEMORY_LIMITS: MemoryLimits = { maxNotes: 1_000, maxNoteBytes: 16 * 1024 }

export interface MemoryOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  /** `<home>/memory`: a folder per account, a file per note. Made with the first note. */
  readonly directory: string
  readonly limits?: Partial<MemoryLimits>
}

/** A note that cannot be kept; the message is for the model. */
export class NoteRefused extends Error {}

/**
 * Notes per account, each a text file that people can read and change. Nothing is held in memory, so that a command and
 * a running gateway never disagree.
 */
export class Memory {
  readonly #options: MemoryOptions
  readonly #limits: MemoryLimits

  constructor(options: MemoryOptions) {
    this.#options = options
    this.#limits = { ...MEMORY_LIMITS, ...options.limits }
  }

  /** Durable when it resolves. Without an id it is a new note; with the id of a note it replaces that. */
  async save(account: string, text: string, id?: string): Promise<Note> {
    const { files, ids, clock } = this.#options
    const bytes = Buffer.byteLength(text)
    if (text.trim() === '') throw new NoteRefused('a note needs a text')
    if (bytes > this.#limits.maxNoteBytes)
      throw new NoteRefused(`the text has ${bytes} bytes; a note may have ${this.#limits.maxNoteBytes}`)
    const known = await this.#ids(account)
    if (id !== undefined && !known.includes(id)) throw new NoteRefused(`there is no note ${id}`)
    if (id === undefined && known.length >= this.#limits.maxNotes)
      throw new NoteRefused(`there are ${known.length} notes already; delete some first`)
    const note = { id: id ?? ids.hex(8), text, updatedAt: clock.now() }
    const folder = this.#folder(account)
    await makeDurableDirectory(files, folder)
    const path = this.#path(account, note.id)
    await writeAtomically({ files, ids }, path, text, { permissions: 0o600 })
    await removeUnfinishedBeside(files, path)
    return note
  }

  /** The latest first. */
  async list(account: string): Promise<readonly Note[]> {
    const notes: Note[] = []
    for (const id of await this.#ids(account)) {
      const note = await this.read(account, id)
      if (note !== undefined) notes.push(note)
    }
    return notes.toSorted((a, b) => b.updatedAt - a.updatedAt || a.id.localeCompare(b.id))
  }

  async read(account: string, id: string): Promise<Note | undefined> {
    if (!NOTE_ID.test(id)) return undefined
    const { files } = this.#options
    const path = this.#path(account, id)
    const stat = await files.stat(path)
    if (stat?.kind !== 'file') return undefined
    // A person may have written more into it than the tool would.
    const bytes = await readWhole(files, path, MAX_READ_BYTES)
    return bytes && { id, text: new TextDecoder().decode(bytes), updatedAt: Math.round(stat.modifiedAt) }
  }

  /** False when there was none. Durable when it resolves. */
  async delete(account: string, id: string): Promise<boolean> {
    if (!NOTE_ID.test(id) || !(await this.#ids(account)).includes(id)) return false
    await this.#options.files.remove(this.#path(account, id))
    await this.#options.files.syncDirectory(this.#folder(account))
    return true
  }

  /** Those with a folder, by the name they have. */
  async accounts(): Promise<readonly string[]> {
    return (await this.#names(this.#options.directory)).map(accountOf).toSorted()
  }

  async #ids(account: string): Promise<readonly string[]> {
    const names = await this.#names(this.#folder(account))
    return names.filter((name) => name.endsWith(EXTENSION)).map((name) => name.slice(0, -EXTENSION.length))
  }

  async #names(directory: string): Promise<readonly string[]> {
    try {
      return await this.#options.files.list(directory)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return []
      throw error
    }
  }

  #folder(account: string): string {
    return `${this.#options.directory}/${folderOf(account)}`
  }

  #path(account: string, id: string): string {
    return `${this.#folder(account)}/${id}${EXTENSION}`
  }
}

const NOTE_ID = /^[0-9a-zA-Z_-]{1,64}$/u
const EXTENSION = '.md'
const MAX_READ_BYTES = 1024 * 1024
const MAX_NAME_CHARS = 200

/** Percent-encoded, so that no account can name a folder elsewhere; case stays apart where the disk ignores it. */
function folderOf(account: string): string {
  const encoded = [...new TextEncoder().encode(account)]
    .map((byte) => (isPlain(byte) ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`))
    .join('')
  return encoded.length <= MAX_NAME_CHARS ? encoded : `sha256-${createHash('sha256').update(account).digest('hex')}`
}

/** Digits, small letters, `-` and `_`. */
function isPlain(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x2d || byte === 0x5f
}

function accountOf(folder: string): string {
  try {
    return decodeURIComponent(folder)
  } catch {
    return folder
  }
}
