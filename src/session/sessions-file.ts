import { createHash } from 'node:crypto'
import { parseTree, getNodeValue, type Node } from 'jsonc-parser'
import type { Clock, Timer } from '../base/clock.ts'
import { createTemporary, directoryOf, errnoOf, writeAtomically, type Files } from '../base/files.ts'
import type { Journal, JournalTopic } from '../base/journal.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import type { SessionKey } from '../core/ids.ts'
import type { SessionRecord } from '../core/inbound.ts'
import { isSessionRecord, type SessionDirectory } from './directory.ts'

const TOPIC = 'index-export'
const EXPORT_DELAY_MS = 1_500
const MAX_IMPORT_BYTES = 1024 * 1024 * 1024
const ADOPT_BATCH = 1_000
/** More than what a disk writes without a wait, so that there is one behind each slice; little enough to be quick. */
const SLICE_CHARS = 96 * 1024
/** The export before the newest one may still be on disk when the program died between the commit and the rename. */
const KEPT_HASHES = 2

/** Remembers which `sessions.json` we wrote ourselves, so that a file somebody else wrote is recognised at start. */
export class ExportHistory implements JournalTopic {
  readonly name = TOPIC
  #hashes: string[] = []

  apply(data: unknown): void {
    if (typeof data !== 'string' || this.#hashes.includes(data)) return
    this.#hashes = [...this.#hashes, data].slice(-KEPT_HASHES)
  }

  snapshot(): Iterable<string> {
    return this.#hashes
  }

  isOurs(hash: string): boolean {
    return this.#hashes.includes(hash)
  }
}

export interface SessionsFileParts {
  readonly files: Files
  readonly clock: Clock
  readonly log: Log
  readonly path: string
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly history: ExportHistory
}

/**
 * `sessions.json`, the map other programs read. The journal is the truth; this file is a copy, at most two seconds old
 * while the gateway runs and exact after a clean stop. A file that somebody else wrote is taken over at start.
 */
export class SessionsFile {
  readonly #parts: SessionsFileParts
  /** Text of a row by the row itself: rows are replaced, never changed, so only new ones are serialised again. */
  readonly #texts = new WeakMap<SessionRecord, string>()
  #exportedRevision = -1
  #timer: Timer | undefined
  #exporting: Promise<void> | undefined
  #isClosed = false

  constructor(parts: SessionsFileParts) {
    this.#parts = parts
  }

  /** Adopts rows of a foreign file: unknown keys, and known ones that are newer there. Nothing is ever removed by it. */
  async adopt(): Promise<{ readonly adopted: number; readonly quarantined?: string }> {
    const { files, path, directory, history, journal } = this.#parts
    const bytes = await readIfThere(files, path)
    if (bytes === undefined || history.isOurs(sha256(bytes))) return { adopted: 0 }
    const { rows, damaged } = readRows(bytes)
    const quarantined = damaged ? await this.#quarantine(bytes) : undefined
    const newer = rows.filter(([key, record]) => record.updatedAt > (directory.get(key)?.updatedAt ?? -1))
    newer.sort(([, a], [, b]) => a.updatedAt - b.updatedAt)
    for (let start = 0; start < newer.length; start += ADOPT_BATCH) {
      await journal.commit(newer.slice(start, start + ADOPT_BATCH).map(([key, record]) => directory.put(key, record)))
    }
    return { adopted: newer.length, ...(quarantined === undefined ? {} : { quarantined }) }
  }

  /** Call after every change; the file follows within two seconds. */
  changed(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#parts.clock.after(EXPORT_DELAY_MS, () => {
      this.#timer = undefined
      void this.#export().catch((error: unknown) => this.#logFailure(error))
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#exporting?.catch(() => undefined)
    await this.#export().catch((error: unknown) => this.#logFailure(error))
  }

  #export(): Promise<void> {
    this.#exporting ??= this.#write().finally(() => {
      this.#exporting = undefined
      if (this.#exportedRevision !== this.#parts.directory.revision && this.#timer === undefined) this.changed()
    })
    return this.#exporting
  }

  async #write(): Promise<void> {
    const { files, path, directory, journal } = this.#parts
    if (this.#exportedRevision === directory.revision) return
    const revision = directory.revision
    const hash = await this.#writeSlices(`${path}.tmp`)
    // The hash is durable before the file has its name, so that a crash in between cannot make our own copy look foreign.
    await journal.commit([{ topic: TOPIC, data: hash }])
    await files.rename(`${path}.tmp`, path)
    await files.syncDirectory(directoryOf(path))
    this.#exportedRevision = revision
  }

  /** In slices, between which everybody else gets a turn: with 100 000 sessions the file has tens of megabytes. */
  async #writeSlices(temporary: string): Promise<string> {
    const hash = createHash('sha256')
    const handle = await createTemporary(this.#parts.files, temporary)
    try {
      for (const slice of this.#slices()) {
        const bytes = Buffer.from(slice)
        hash.update(bytes)
        await handle.write(bytes)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    return hash.digest('hex')
  }

  /** All rows as they are at the call, whatever changes while they are written. */
  *#slices(): Iterable<string> {
    const rows = [...this.#parts.directory.rows()]
    let slice = rows.length === 0 ? '{' : '{\n'
    for (const [index, [key, record]] of rows.entries()) {
      slice += `  ${JSON.stringify(key)}: ${this.#textOf(record)}${index === rows.length - 1 ? '\n' : ',\n'}`
      if (slice.length < SLICE_CHARS) continue
      yield slice
      slice = ''
    }
    yield `${slice}}\n`
  }

  #textOf(record: SessionRecord): string {
    let text = this.#texts.get(record)
    if (text === undefined) {
      text = JSON.stringify(record, null, 2).replaceAll('\n', '\n  ')
      this.#texts.set(record, text)
    }
    return text
  }

  async #quarantine(bytes: Uint8Array): Promise<string> {
    const { files, path, clock, log } = this.#parts
    const aside = `${path}.corrupt-${clock.now()}`
    await writeAtomically(files, aside, bytes, { temporary: `${aside}.tmp` })
    log.error('sessions.json is damaged; the original was kept aside and every readable row taken over', { aside })
    return aside
  }

  #logFailure(error: unknown): void {
    const cause = error instanceof Error && errnoOf(error) === undefined ? error.cause : error
    this.#parts.log.error('sessions.json could not be written; the sessions themselves are safe in the journal', {
      reason: error instanceof Error ? error.name : 'unknown',
      errno: errnoOf(cause),
    })
  }
}

async function readIfThere(files: Files, path: string): Promise<Uint8Array | undefined> {
  const stat = await files.stat(path)
  if (stat?.kind !== 'file' || stat.size > MAX_IMPORT_BYTES) return undefined
  const handle = await files.open(path, 'read')
  try {
    return await handle.read(0, stat.size)
  } finally {
    await handle.close()
  }
}

function readRows(bytes: Uint8Array): { rows: [SessionKey, SessionRecord][]; damaged: boolean } {
  const text = new TextDecoder().decode(bytes)
  if (text.trim() === '') return { rows: [], damaged: bytes.length > 0 }
  const parsed = parseJson(text)
  const pairs = isRecord(parsed) ? Object.entries(parsed) : salvage(text)
  const rows = pairs.filter((pair): pair is [SessionKey, SessionRecord] => isSessionRecord(pair[1]))
  return { rows, damaged: !isRecord(parsed) || rows.length < pairs.length }
}

/** Reads the rows around the damage: the parser goes on after an error, and a row counts when its braces were closed. */
function salvage(text: string): [string, unknown][] {
  const root = parseTree(text, [], { allowTrailingComma: true })
  const properties = root?.type === 'object' ? (root.children ?? []) : []
  return properties.flatMap((property): [string, unknown][] => {
    const [name, value] = property.children ?? []
    if (name === undefined || value?.type !== 'object' || !isClosed(text, value)) return []
    return [[String(name.value), getNodeValue(value)]]
  })
}

function isClosed(text: string, node: Node): boolean {
  return text[node.offset + node.length - 1] === '}'
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
