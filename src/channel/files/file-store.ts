import { createHash } from 'node:crypto'
import { makeDurableDirectory, readWhole, type FileHandle, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { UNKNOWN_OWNER, type Attachment } from '../../core/inbound.ts'
import { safeName } from '../safe-name.ts'
import { isTextType, mimeTypeOf, toText } from '../media-types.ts'

/** A file as its sender sees it. */
export interface StoredFile {
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
  /** Hex. */
  readonly sha256: string
}

/** A file that a message names: one that was sent before, or the file itself. */
export type FileReference =
  | { readonly id: string }
  | { readonly name: string; readonly mimeType: string; readonly data: Uint8Array }

export interface FileStoreOptions {
  readonly files: Files
  readonly ids: Ids
  /** `<home>/media`. */
  readonly directory: string
  readonly maxBytes: number
  /** Of a text file, given to the model. */
  readonly maxTextBytes: number
}

const ID = /^file_([0-9a-f]{32})$/u
const SNIFFED_BYTES = 4_096
const BLOCK_BYTES = 64 * 1024
const MAX_FACTS_BYTES = 16 * 1024
/** Beside the file; a name that came from outside never begins with a dot. */
const FACTS = '.clew-file.json'

/**
 * Files that clients send, each in a folder that cannot be guessed, with what is known about it beside it. What has no
 * such note was never sent whole, and is not there. They end as all media do.
 */
export class FileStore {
  readonly #options: FileStoreOptions

  constructor(options: FileStoreOptions) {
    this.#options = options
  }

  /** Durable when it resolves. Throws `FRAME_TOO_LARGE` beyond the limit; nothing stays then. */
  async put(
    pieces: AsyncIterable<Uint8Array>,
    about: { readonly name: string; readonly mimeType: string },
    owner: string,
  ): Promise<StoredFile> {
    const { files, ids, directory } = this.#options
    const folder = ids.hex(32)
    const path = `${directory}/${folder}`
    const name = safeName(about.name)
    await makeDurableDirectory(files, path)
    try {
      const handle = await files.open(`${path}/${name}`, 'create', 0o600)
      const { start, ...facts } = await this.#write(handle, pieces)
      const file = { id: `file_${folder}`, name, mimeType: mimeTypeOf(start, [about.mimeType], name), ...facts }
      await this.#writeFacts(path, { ...file, owner })
      return file
    } catch (error) {
      for (const file of [name, FACTS]) await files.remove(`${path}/${file}`).catch(() => undefined)
      await files.removeDirectory(path).catch(() => undefined)
      throw error
    }
  }

  /** Throws `FILE_NOT_FOUND`, also for a file of another owner. */
  async find(id: string, owner: string): Promise<StoredFile> {
    const { owner: own, ...file } = await this.#factsOf(id)
    // What came without any identity belongs to every caller that knows its id, which cannot be guessed.
    if (own !== owner && own !== UNKNOWN_OWNER) throw notFound()
    return file
  }

  /** For the holder of a link. Throws `FILE_NOT_FOUND`. */
  async findLinked(id: string): Promise<StoredFile> {
    const { owner: _, ...file } = await this.#factsOf(id)
    return file
  }

  /** Where a stored file is. */
  pathOf(id: string, name: string): string {
    return `${this.#folderOf(id) ?? ''}/${name}`
  }

  async #factsOf(id: string): Promise<Facts> {
    const { files } = this.#options
    const folder = this.#folderOf(id)
    const bytes = folder === undefined ? undefined : await readWhole(files, `${folder}/${FACTS}`, MAX_FACTS_BYTES)
    const facts = bytes === undefined ? undefined : parseJson(Buffer.from(bytes).toString())
    if (!isFacts(facts)) throw notFound()
    const { name, mimeType, bytes: size, sha256, owner } = facts
    return { id, name, mimeType, bytes: size, sha256, owner }
  }

  /** The content, read as fast as it is asked for. */
  async *read({ id, name }: StoredFile): AsyncGenerator<Uint8Array> {
    const handle = await this.#options.files.open(`${this.#folderOf(id) ?? ''}/${name}`, 'read')
    try {
      const { size } = handle.stat()
      for (let at = 0; at < size; at += BLOCK_BYTES) yield await handle.read(at, BLOCK_BYTES)
    } finally {
      await handle.close()
    }
  }

  /** The files of a message, ready for a turn. */
  async attach(references: readonly FileReference[], owner: string): Promise<readonly Attachment[]> {
    const attachments: Attachment[] = []
    for (const reference of references) {
      const file = 'id' in reference ? await this.find(reference.id, owner) : await this.#putInline(reference, owner)
      attachments.push(await this.#toAttachment(file))
    }
    return attachments
  }

  #putInline(
    { data, ...about }: Extract<FileReference, { readonly name: string }>,
    owner: string,
  ): Promise<StoredFile> {
    return this.put(oneOf(data), about, owner)
  }

  async #toAttachment({ id, name, mimeType, bytes }: StoredFile): Promise<Attachment> {
    const path = `${this.#folderOf(id) ?? ''}/${name}`
    const text = isTextType(mimeType) ? await this.#textOf(path) : undefined
    return { name, mimeType, path, bytes, ...(text === undefined ? {} : { text }) }
  }

  async #textOf(path: string): Promise<string | undefined> {
    const { files, maxTextBytes } = this.#options
    const handle = await files.open(path, 'read')
    try {
      // One byte more shows whether it was cut.
      const text = toText(await handle.read(0, maxTextBytes + 1), maxTextBytes)
      return text?.truncated === true ? `${text.text}\n[cut after ${maxTextBytes} bytes]` : text?.text
    } finally {
      await handle.close()
    }
  }

  async #write(handle: FileHandle, pieces: AsyncIterable<Uint8Array>) {
    const { maxBytes } = this.#options
    const hash = createHash('sha256')
    let start = new Uint8Array()
    let bytes = 0
    try {
      for await (const piece of pieces) {
        bytes += piece.length
        if (bytes > maxBytes) throw new GatewayError('FRAME_TOO_LARGE', `the file is larger than ${maxBytes} bytes`)
        if (start.length < SNIFFED_BYTES) start = Buffer.concat([start, piece]).subarray(0, SNIFFED_BYTES)
        hash.update(piece)
        await handle.write(piece)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    return { start, bytes, sha256: hash.digest('hex') }
  }

  async #writeFacts(path: string, facts: Facts): Promise<void> {
    const { files } = this.#options
    const handle = await files.open(`${path}/${FACTS}`, 'create', 0o600)
    try {
      await handle.write(JSON.stringify(facts))
      await handle.sync()
    } finally {
      await handle.close()
    }
    await files.syncDirectory(path)
  }

  #folderOf(id: string): string | undefined {
    const folder = ID.exec(id)?.[1]
    return folder === undefined ? undefined : `${this.#options.directory}/${folder}`
  }
}

interface Facts extends StoredFile {
  readonly owner: string
}

function isFacts(value: unknown): value is Facts {
  if (!isRecord(value)) return false
  const { name, mimeType, bytes, sha256, owner } = value
  return typeof bytes === 'number' && [name, mimeType, sha256, owner].every((one) => typeof one === 'string')
}

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function notFound(): GatewayError {
  return new GatewayError('FILE_NOT_FOUND', 'no file has this id', { field: 'files' })
}
