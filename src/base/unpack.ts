import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { FetchRefused } from './fetch-policy.ts'

/** An end that was cut off is no error: as much as there is comes out. */
const ZLIB = { finishFlush: constants.Z_SYNC_FLUSH }
const BROTLI = { finishFlush: constants.BROTLI_OPERATION_FLUSH }

/**
 * What a body holds, for servers that pack although they were asked not to; undefined when it is not packed. Unpacked
 * piece by piece and outside of the event loop, so a small answer that unpacks to gigabytes costs what its reader takes.
 */
export function unpacked(bytes: Uint8Array, encoding: string | null): AsyncIterable<Uint8Array> | undefined {
  const name = encoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return undefined
  const unpacker = unpackerOf(name)
  unpacker.end(bytes)
  return pieces(unpacker)
}

function unpackerOf(name: string): ReturnType<typeof createGunzip> {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip(ZLIB)
  if (name === 'deflate') return createInflate(ZLIB)
  if (name === 'br') return createBrotliDecompress(BROTLI)
  throw new FetchRefused('encoding', 'the answer is packed in an unknown way')
}

async function* pieces(unpacker: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* unpacker
  } catch {
    throw new FetchRefused('encoding', 'the packed answer is broken')
  }
}
