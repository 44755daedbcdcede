import { writeAtomically } from '../../base/atomic-write.ts'
import { directoryOf, makeDurableDirectory, type FileHandle } from '../../base/files.ts'
import type { JournalRecord } from '../../base/journal.ts'
import { openJournal, type Journal } from './journal.ts'
import { type JsonObject, type JsonValue, parseJson, isRecord } from '../../base/json.ts'
import type { CleanupTotals } from '../../core/change.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionId, SessionKey } from '../../core/ids.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import type { Spent } from '../../core/spent.ts'
import { TRANSCRIPT_TOPIC } from '../../transcript/topic.ts'
import {
  COPY_KEY,
  COPY_SECTION,
  isProgress,
  type BytesItem,
  type ImageWriter,
  type Item,
  type Progress,
  type RowItem,
  type TranscriptItem,
} from '../copy/image.ts'
import { splitName, usagePlaceOf, withMediaIn, type CopiedMessage } from '../copy/items.ts'
import { FileArchivedRows } from './archived-rows.ts'
import { soundSessionRecord } from '../../core/sound-session.ts'
import { HomeTables } from './home-tables.ts'
import type { HomeImageOptions } from './home-reader.ts'
import { SessionsFile } from './sessions-file.ts'

/** What a gateway keeps in its home; the configuration may be there before a copy. */
const HELD = ['journal', 'rows', 'sessions', 'sessions.json', 'archive', 'media', 'memory']
const SESSION_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$/u
const FILE_PATH = /^(?:media|memory)(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/u

/** Puts a copy into a home: the journal holds the rows and how far the copy has come, files hold the rest. */
export class HomeWriter implements ImageWriter {
  readonly #options: HomeImageOptions
  readonly #tables: HomeTables
  readonly #journal: Journal
  readonly #wasEmpty: boolean

  private constructor(options: HomeImageOptions, tables: HomeTables, journal: Journal, wasEmpty: boolean) {
    this.#options = options
    this.#tables = tables
    this.#journal = journal
    this.#wasEmpty = wasEmpty
  }

  /** The caller holds the home's lock. */
  static async open(options: HomeImageOptions): Promise<HomeWriter> {
    const { files, ids, log, paths } = options
    const held = await Promise.all(HELD.map((name) => files.stat(`${paths.home}/${name}`)))
    const tables = await HomeTables.open(options)
    const topics = [...tables.topics, tables.kept]
    const journal = await openJournal({ files, ids, log, directory: paths.journal, topics })
    await tables.kept.start()
    return new HomeWriter(
      options,
      tables,
      journal,
      held.every((stat) => stat === undefined),
    )
  }

  async isEmpty(): Promise<boolean> {
    return this.#wasEmpty
  }

  async progress(): Promise<Progress | undefined> {
    const found = this.#tables.state.get(COPY_SECTION, COPY_KEY)
    return isProgress(found) ? found : undefined
  }

  async write(items: readonly Item[], progress: Progress): Promise<void> {
    const records: JournalRecord[] = []
    for (const item of items) records.push(...(await this.#put(item)))
    const value = { ...progress } satisfies JsonObject
    await this.#journal.commit([
      ...records.map((record) => this.#checked(record)),
      this.#tables.state.recordOf({ section: COPY_SECTION, key: COPY_KEY, value }),
    ])
  }

  /** Writes `sessions.json`, for the programs that read it. */
  async complete(): Promise<void> {
    const { rows: directory, exports: history } = this.#tables
    const { sessionsFile: path } = this.#options.paths
    await new SessionsFile({ ...this.#options, path, journal: this.#journal, directory, history }).close()
  }

  async close(): Promise<void> {
    await this.#journal.close()
    await this.#tables.kept.close()
  }

  /** As a record of a disk is: rows of the source are as foreign as those. */
  #checked({ topic: name, data }: JournalRecord): JournalRecord {
    const record = this.#tables.topics.find((topic) => topic.name === name)?.read(data)
    if (record === undefined) throw unusableRow(name)
    return { topic: name, data: record }
  }

  async #put(item: Item): Promise<readonly JournalRecord[]> {
    if ('lines' in item) return this.#putTranscript(item)
    if (!('bytes' in item)) return this.#recordsOf(item)
    await this.#putBytes(item)
    return []
  }

  async #recordsOf(item: RowItem): Promise<readonly JournalRecord[]> {
    const { name, value } = item
    const { rows, usage, state } = this.#tables
    switch (item.kind) {
      case 'session':
        return [
          rows.recordOf({ kind: 'put-session', key: name as SessionKey, record: value as unknown as SessionRecord }),
        ]
      case 'account': {
        const upTo = Number(value['next']) - 1
        return [deliveryRecord(name === '' ? { do: 'seq-floor', upTo } : { do: 'seq', account: name, upTo })]
      }
      case 'usage':
        return [usage.totalRecord({ ...usagePlaceOf(name), spent: value as unknown as Spent })]
      case 'saving':
        return [{ topic: 'cleanups', data: { session: name, totals: value as unknown as CleanupTotals } }]
      case 'state': {
        const [section, key] = splitName(name)
        return [state.recordOf({ section, key, value: value['value'] as JsonValue })]
      }
      case 'message':
        return this.#messageRecords(value as unknown as CopiedMessage)
      case 'archived-session':
        await this.#putArchived(name as SessionKey, value)
        return []
    }
  }

  async #putArchived(key: SessionKey, value: JsonObject): Promise<void> {
    const record = soundSessionRecord(value)
    if (record === undefined) throw unusableRow('archived-session')
    const { files, ids, paths } = this.#options
    await (await FileArchivedRows.open({ files, ids, directory: paths.archive })).put({ key, record })
  }

  #messageRecords({ message, idle, ...copied }: CopiedMessage): readonly JournalRecord[] {
    const { request: _, ...run } = copied
    const moved = withMediaIn(message, this.#options.paths.media)
    const record = deliveryRecord({
      do: 'run',
      run: { ...run, message: moved, ...(idle === true ? { isIdle: true } : {}) },
    })
    // What was being worked on is to blame for the end of its node; only a start that ended so finds that out.
    return run.state === 'open' && idle !== true ? [record, deliveryRecord({ do: 'life', isLiving: true })] : [record]
  }

  async #putTranscript(item: TranscriptItem): Promise<readonly JournalRecord[]> {
    const { files, paths } = this.#options
    await makeDurableDirectory(files, paths.transcripts)
    const blocks = item.lines()[Symbol.asyncIterator]()
    const first = await blocks.next()
    const lines = first.done === true ? [] : first.value
    const { id, file } = fileOf(item.name, lines[0] ?? '')
    let bytes = 0
    await writeAtomically(this.#options, `${paths.transcripts}/${file}`, async (target) => {
      bytes = await writeLines(target, lines, { [Symbol.asyncIterator]: () => blocks })
    })
    return file === `${id}.jsonl` ? [{ topic: TRANSCRIPT_TOPIC, data: { s: id as SessionId, z: bytes } }] : []
  }

  async #putBytes(item: BytesItem): Promise<void> {
    const { files, paths } = this.#options
    const [id = '', hash = ''] = item.name.split('/')
    const isSafe =
      item.kind === 'file' ? FILE_PATH.test(item.name) : SESSION_ID.test(id) && /^[0-9a-f]{64}$/u.test(hash)
    if (!isSafe) throw unsafeName()
    const path = item.kind === 'file' ? `${paths.home}/${item.name}` : `${paths.transcripts}/${id}.blobs/${hash}`
    await makeDurableDirectory(files, directoryOf(path))
    await writeAtomically(this.#options, path, await item.bytes())
  }
}

/** Returns how many bytes they are. */
async function writeLines(
  target: FileHandle,
  first: readonly string[],
  rest: AsyncIterable<readonly string[]>,
): Promise<number> {
  const write = async (lines: readonly string[]): Promise<number> => {
    const block = Buffer.from(lines.join(''))
    await target.write(block)
    return block.length
  }
  let bytes = await write(first)
  for await (const lines of rest) bytes += await write(lines)
  return bytes
}

/** An archived transcript is named by the time of its archiving; the time of its beginning is as good and known. */
function fileOf(name: string, header: string): { readonly id: string; readonly file: string } {
  const [id = '', at] = name.startsWith('archived:') ? name.slice('archived:'.length).split(':') : [name]
  if (!SESSION_ID.test(id) || (at !== undefined && !/^\d{1,16}$/u.test(at))) throw unsafeName()
  if (id === name) return { id, file: `${id}.jsonl` }
  const parsed = parseJson(header)
  const begun = Date.parse(isRecord(parsed) ? String(parsed['timestamp']) : '')
  return { id, file: `${id}.jsonl.archived-${at ?? (Number.isFinite(begun) ? begun : 1)}` }
}

function unsafeName(): GatewayError {
  return new GatewayError('FIELD_INVALID', 'the source has a name that cannot be a file of a home', { field: 'name' })
}

function unusableRow(topic: string): GatewayError {
  return new GatewayError('FIELD_INVALID', 'the source has a row that a home cannot keep', { topic })
}

function deliveryRecord(data: object): JournalRecord {
  return { topic: 'delivery', data }
}
