import { FileStore } from '../channel/files/file-store.ts'
import type { JsonObject } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { Platform } from './platform.ts'

const BLOCK_BYTES = 64 * 1024

/** Copies a file of the workspace to the media, for the answer it goes with. */
export function createSendFile(
  { files, ids }: Platform,
  { directory, maxBytes }: { readonly directory: string; readonly maxBytes: number },
): (file: { readonly path: string; readonly name: string }, owner: string) => Promise<JsonObject> {
  const store = new FileStore({ files, ids, directory, maxBytes, maxTextBytes: 0 })
  return async ({ path, name }, owner) => {
    const { id, name: kept, mimeType, bytes } = await store.put(piecesOf(path), { name, mimeType: '' }, owner)
    // The path is what keeps the file as long as the transcript names it.
    return { id, name: kept, mimeType, bytes, path: store.pathOf(id, kept) }
  }

  async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
    const handle = await files.open(path, 'read')
    try {
      const { size } = handle.stat()
      if (size > maxBytes) throw new GatewayError('FRAME_TOO_LARGE', `the file is larger than ${maxBytes} bytes`)
      for (let at = 0; at < size; at += BLOCK_BYTES) yield await handle.read(at, BLOCK_BYTES)
    } finally {
      await handle.close()
    }
  }
}
