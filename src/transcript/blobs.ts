import { createHash } from 'node:crypto'
import { removeUnfinishedBeside, writeAtomically } from '../base/atomic-write.ts'
import { makeDurableDirectory, readWhole, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'

/** Texts too long for a transcript, kept beside it under the hash of their content. */
export interface Blobs {
  /** Durable when it resolves. The same text has the same id. */
  put(text: string): Promise<string>
  /** Undefined when there is no such blob. */
  get(id: string): Promise<string | undefined>
}

export function createMemoryBlobs(): Blobs {
  const texts = new Map<string, string>()
  return {
    async put(text) {
      const id = blobId(text)
      texts.set(id, text)
      return id
    },
    get: async (id) => texts.get(id),
  }
}

export interface FileBlobsOptions {
  readonly files: Files
  readonly ids: Ids
  /** `<sessionId>.blobs` next to the transcript; made with the first blob. */
  readonly directory: string
  readonly maxBlobBytes: number
}

export function createFileBlobs({ files, ids, directory, maxBlobBytes }: FileBlobsOptions): Blobs {
  return {
    async put(text) {
      const bytes = Buffer.from(text)
      if (bytes.length > maxBlobBytes) {
        throw new GatewayError('ENTRY_TOO_LARGE', 'the tool result is larger than a blob may be', {
          bytes: bytes.length,
          maxBytes: maxBlobBytes,
        })
      }
      const id = blobId(text)
      const path = `${directory}/${id}`
      const existing = await files.stat(path)
      // Written atomically, so a blob that is there and as long is the whole text.
      if (existing?.size === bytes.length) return id
      await makeDurableDirectory(files, directory)
      await writeAtomically({ files, ids }, path, bytes)
      await removeUnfinishedBeside(files, path)
      return id
    },
    async get(id) {
      if (!/^[0-9a-f]{64}$/.test(id)) return undefined
      const bytes = await readWhole(files, `${directory}/${id}`, maxBlobBytes)
      return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
    },
  }
}

export function blobId(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
