import { createHash } from 'node:crypto'
import { isTemporary } from '../../base/atomic-write.ts'
import type { Clock } from '../../base/clock.ts'
import type { Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { openJournal, type Journal } from './journal.ts'
import { isRecord } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { NEVER } from '../../base/async.ts'
import { overlayFiles } from '../../base/overlay-files.ts'
import type { Processes } from '../../base/processes.ts'
import { GatewayError } from '../../core/errors.ts'
import { isEphemeralAccount } from '../../core/inbound.ts'
import { repairTranscript } from '../../transcript/check.ts'
import { openFileStore, type FileTranscriptStore } from '../../transcript/file-store.ts'
import {
  COPY_KEY,
  COPY_SECTION,
  isProgress,
  type BytesItem,
  type ImageReader,
  type Item,
  type ItemKind,
  type Progress,
  type RowItem,
  type TranscriptItem,
} from '../copy/image.ts'
import {
  accountItem,
  messageItem,
  savingItem,
  sessionItem,
  stateItem,
  usageItem,
  type CopiedMessage,
} from '../copy/items.ts'
import { requestKeyOf, type MessageRow } from '../local/message-rows.ts'
import { FileArchivedRows } from './archived-rows.ts'
import type { FilesStoragePaths } from './files-storage.ts'
import { HomeTables } from './home-tables.ts'
import { SessionsFile } from './sessions-file.ts'

export interface HomeImagePaths extends FilesStoragePaths {
  readonly home: string
  readonly media: string
  readonly memory: string
}

export interface HomeImageOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  readonly paths: HomeImagePaths
}

const BLOCK_BYTES = 1024 * 1024
const MAX_FILE_BYTES = 1024 * 1024 * 1024
const TRANSCRIPT = /^(?<id>[^/]+)\.jsonl(?:\.archived-(?<at>\d+))?$/u

/**
 * What a home holds, as its gateway would find it at the next start: the journal is replayed, entries that are in the
 * journal only are put into their transcripts, damaged transcripts are repaired. All of that happens in the folder
 * `scratch`; the home stays as it is. What has to be made up (an id, a time) comes out of what is there, so that a
 * second look finds the same.
 */
export class HomeReader implements ImageReader {
  readonly #options: HomeImageOptions
  readonly #files: Files
  readonly #tables: HomeTables
  readonly #journal: Journal
  readonly #store: FileTranscriptStore
  readonly #repaired = new Set<string>()

  private constructor(options: HomeImageOptions, tables: HomeTables, journal: Journal, store: FileTranscriptStore) {
    this.#options = options
    this.#files = options.files
    this.#tables = tables
    this.#journal = journal
    this.#store = store
  }

  static async open(given: HomeImageOptions, scratch: string): Promise<HomeReader> {
    const { paths, log } = given
    const files = overlayFiles(given.files, paths.home, scratch)
    await hideLocks(files, paths.transcripts)
    const clock = await clockOf(given, files)
    const options = { ...given, files, clock, ids: derivedIds(paths.home) }
    const tables = await HomeTables.open(options)
    const { topics } = tables
    const journal = await openJournal({ files, ids: given.ids, log, directory: paths.journal, topics })
    const store = await openFileStore({
      ...options,
      directory: paths.transcripts,
      cwd: paths.workspace,
      journal: { journal, topic: tables.transcripts },
    })
    await tables.transcripts.settle()
    const { sessionsFile: path } = paths
    await new SessionsFile({ ...options, path, journal, directory: tables.rows, history: tables.exports }).adopt()
    return new HomeReader(options, tables, journal, store)
  }

  /** Transcripts that were damaged: the copy has them repaired. */
  get repaired(): number {
    return this.#repaired.size
  }

  /** When the home is a copy itself: how far it has come. */
  get progress(): Progress | undefined {
    const found = this.#tables.state.get(COPY_SECTION, COPY_KEY)
    return isProgress(found) ? found : undefined
  }

  async *items(kind: ItemKind): AsyncIterable<Item> {
    switch (kind) {
      case 'file':
        for (const folder of ['media', 'memory']) yield* this.#filesBelow(folder)
        return
      case 'blob':
        return yield* this.#blobs()
      case 'transcript':
        return yield* this.#transcripts()
      case 'archived-session':
        return yield* this.#archived()
      case 'session':
        return yield* this.#sessions()
      case 'account':
        return yield* this.#accounts()
      case 'usage':
        return yield* this.#usage()
      case 'saving':
        return yield* this.#savings()
      case 'state':
        return yield* this.#states()
      case 'message':
        return yield* this.#messages()
    }
  }

  async close(): Promise<void> {
    await this.#store.close()
    await this.#journal.close()
    await this.#tables.kept.close()
  }

  async *#filesBelow(folder: string): AsyncIterable<BytesItem> {
    const directory = `${this.#options.paths.home}/${folder}`
    for (const name of await this.#files.list(directory)) {
      const stat = await this.#files.stat(`${directory}/${name}`)
      if (stat?.kind === 'directory') yield* this.#filesBelow(`${folder}/${name}`)
      else if (stat?.kind === 'file' && !isTemporary(name))
        yield this.#bytes('file', `${folder}/${name}`, `${directory}/${name}`)
    }
  }

  async *#blobs(): AsyncIterable<BytesItem> {
    const { transcripts } = this.#options.paths
    for (const folder of await this.#files.list(transcripts)) {
      if (!folder.endsWith('.blobs')) continue
      for (const hash of await this.#files.list(`${transcripts}/${folder}`))
        if (/^[0-9a-f]{64}$/u.test(hash))
          yield this.#bytes('blob', `${folder.slice(0, -'.blobs'.length)}/${hash}`, `${transcripts}/${folder}/${hash}`)
    }
  }

  #bytes(kind: BytesItem['kind'], name: string, path: string): BytesItem {
    return {
      kind,
      name,
      bytes: async () => {
        const handle = await this.#files.open(path, 'read')
        try {
          const { size } = handle.stat()
          if (size > MAX_FILE_BYTES)
            throw new GatewayError('ENTRY_TOO_LARGE', `${path} is too large to be copied`, { path })
          return await handle.read(0, size)
        } finally {
          await handle.close()
        }
      },
    }
  }

  async *#transcripts(): AsyncIterable<TranscriptItem> {
    const { transcripts } = this.#options.paths
    const names = await this.#files.list(transcripts)
    const newestArchive = new Map<string, number>()
    const found = names.flatMap((name) => {
      const { id, at } = TRANSCRIPT.exec(name)?.groups ?? {}
      if (id === undefined) return []
      if (at !== undefined) newestArchive.set(id, Math.max(newestArchive.get(id) ?? 0, Number(at)))
      return [{ name, id, at: at === undefined ? undefined : Number(at) }]
    })
    for (const { name, id, at } of found) {
      const isNewest = at === newestArchive.get(id)
      const shown = at === undefined ? id : isNewest ? `archived:${id}` : `archived:${id}:${at}`
      yield { kind: 'transcript', name: shown, lines: () => this.#lines(`${transcripts}/${name}`) }
    }
  }

  async *#lines(path: string): AsyncIterable<readonly string[]> {
    const { isRepaired } = await repairTranscript({ ...this.#options, ids: derivedIds(path) }, path, NEVER)
    if (isRepaired) this.#repaired.add(path)
    const handle = await this.#files.open(path, 'read')
    try {
      let rest = Buffer.alloc(0)
      for (let position = 0; ;) {
        const block = await handle.read(position, BLOCK_BYTES)
        if (block.length === 0) break
        position += block.length
        const bytes = rest.length === 0 ? Buffer.from(block) : Buffer.concat([rest, block])
        const end = bytes.lastIndexOf(10) + 1
        rest = bytes.subarray(end)
        if (end > 0) yield linesIn(bytes.subarray(0, end))
      }
      if (rest.length > 0) yield [`${rest.toString('utf8')}\n`]
    } finally {
      await handle.close()
    }
  }

  async *#archived(): AsyncIterable<RowItem> {
    const { files, paths, ids } = { ...this.#options, files: this.#files }
    const rows = await FileArchivedRows.open({ files, ids, directory: paths.archive })
    for (let after: string | undefined; ;) {
      const page = await rows.list({ limit: 500, ...(after === undefined ? {} : { after }) })
      for (const { key, record } of page.rows) yield sessionItem('archived-session', key, record)
      if (page.next === undefined) return
      after = page.next
    }
  }

  async *#sessions(): AsyncIterable<RowItem> {
    const { rows } = this.#tables
    for await (const { key, record } of rows.rows()) {
      const named = (await rows.byId(record.sessionId))?.key
      if (named !== key && named !== undefined)
        throw new GatewayError(
          'FIELD_INVALID',
          `two keys name the same conversation: ${key} and ${named}; delete one of them`,
          { field: 'sessionId' },
        )
      yield sessionItem('session', key, record)
    }
  }

  *#accounts(): Iterable<RowItem> {
    let floor = 0
    for (const record of this.#tables.messages.snapshot()) {
      if (record.do === 'seq-floor') {
        floor = record.upTo
        if (floor > 0) yield accountItem('', floor + 1)
      }
      if (record.do === 'seq' && record.upTo > floor && !isEphemeralAccount(record.account))
        yield accountItem(record.account, record.upTo + 1)
    }
  }

  *#messages(): Iterable<RowItem> {
    const { messages } = this.#tables
    for (const row of messages.rows.values()) yield messageItem(this.#copied(row))
  }

  #copied(row: MessageRow): CopiedMessage {
    const { rows, isLiving } = this.#tables.messages
    const { message, fingerprint, state, seq, content, endedAt, resetDone, deaths = 0, isIdle } = row
    const isThis = (other: MessageRow | undefined): boolean => other?.message.run === message.run
    const key = requestKeyOf(message)
    const isOpen = state === 'open'
    return {
      message,
      fingerprint: isThis(rows.byFingerprint(fingerprint)) ? fingerprint : '',
      ...(key !== undefined && message.idempotency !== undefined && isThis(rows.byRequestKey(key))
        ? { request: { key, digest: message.idempotency.digest } }
        : {}),
      state,
      seq,
      ...(content === undefined ? {} : { content }),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(resetDone === true ? { resetDone } : {}),
      ...(isOpen && deaths > 0 ? { deaths } : {}),
      ...(isOpen && (isIdle === true || !isLiving) ? { idle: true } : {}),
    }
  }

  async *#usage(): AsyncIterable<RowItem> {
    for await (const { spent, ...place } of this.#tables.usage.rows()) yield usageItem(place, spent)
  }

  *#savings(): Iterable<RowItem> {
    for (const record of this.#tables.savings.snapshot())
      if (isRecord(record))
        yield savingItem(String(record['session']), record['totals'] as Parameters<typeof savingItem>[1])
  }

  *#states(): Iterable<RowItem> {
    const { state } = this.#tables
    for (const section of state.sections)
      if (section !== COPY_SECTION)
        for (const [key, value] of state.entries(section)) yield stateItem(section, key, value)
  }
}

function linesIn(bytes: Buffer): readonly string[] {
  const lines = bytes.toString('utf8').split('\n')
  lines.pop()
  return lines.map((line) => `${line}\n`)
}

/** Of transcripts: the caller holds the home, and a gateway that was killed may have left locks that name no process. */
async function hideLocks(files: Files, directory: string): Promise<void> {
  for (const name of await files.list(directory))
    if (/\.jsonl\.lock(?:\.|$)/u.test(name)) await files.remove(`${directory}/${name}`)
}

/** The time of the newest file of the journal or of the index: the same for as long as nothing is written. */
async function clockOf({ clock, paths }: HomeImageOptions, files: Files): Promise<Clock> {
  const names = await files.list(paths.journal)
  const stats = await Promise.all(
    [...names.map((name) => `${paths.journal}/${name}`), paths.sessionsFile].map((path) => files.stat(path)),
  )
  const latest = Math.max(0, ...stats.map((stat) => stat?.modifiedAt ?? 0))
  return {
    ...clock,
    now: () => Math.round(latest),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
  }
}

/** Ids that come in the same order at every look. */
function derivedIds(seed: string): Ids {
  let drawn = 0
  const hex = (length: number): string => {
    let digits = ''
    while (digits.length < length) digits += createHash('sha256').update(`${seed} ${drawn++}`).digest('hex')
    return digits.slice(0, length)
  }
  return { hex, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`, fraction: () => 0 }
}
