import { basename, resolve } from 'node:path'
import { GatewayError } from '../../core/errors.ts'
import { errnoOf, readWhole, type Files } from '../../base/files.ts'
import type { RemoteApi } from '../remote-api.ts'

/** A file that the gateway has, for the `files` of a message. */
export interface SentFile {
  readonly id: string
  readonly name: string
  readonly bytes: number
}

/** The gateway's own limit is `limits.file_bytes`; this one keeps a mistyped path from filling the memory. */
const MAX_BYTES = 256 * 1024 * 1024

export interface AttachmentDeps {
  readonly files: Files
  readonly api: Pick<RemoteApi, 'upload'>
  /** A file is for the one who sent it. */
  readonly uid: string
}

/** Sends one file. Says what is wrong with a path that cannot be read. */
export async function sendFile(path: string, { files, api, uid }: AttachmentDeps): Promise<SentFile> {
  const full = resolve(path)
  let bytes: Uint8Array | undefined
  try {
    bytes = await readWhole(files, full, MAX_BYTES)
  } catch (error) {
    throw unreadable(path, errnoOf(error) ?? 'too large', error)
  }
  if (bytes === undefined) throw unreadable(path, 'there is no such file')
  if (bytes.length === 0) throw unreadable(path, 'the file is empty')
  const stored = await api.upload(`/api/files?uid=${encodeURIComponent(uid)}`, bytes, basename(full))
  const { id } = stored
  if (typeof id !== 'string') throw unreadable(path, 'the gateway did not take it')
  return { id, name: basename(full), bytes: bytes.length }
}

function unreadable(path: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('FILE_NOT_FOUND', `${path} cannot be sent: ${reason}`, { reason }, { cause })
}

const MENTION = /(^|\s)@(?:"([^"\n]+)"|(\S+))/gu

/**
 * Paths in a message: `@photo.png`, `@"two words.pdf"`, or a message that is a path and nothing else, as terminals write it
 * when a file is dropped on them. What names no file stays text.
 */
export async function pathsIn(message: string, files: Files): Promise<readonly string[]> {
  const isFile = async (path: string): Promise<boolean> =>
    (await files.stat(resolve(path)).catch(() => undefined))?.kind === 'file'
  const alone = unquoted(message.trim())
  if (/^(?:\/|\.{1,2}\/|~\/)/u.test(alone) && !alone.includes('\n') && (await isFile(atHome(alone))))
    return [atHome(alone)]
  const found: string[] = []
  for (const [, , quoted, word] of message.matchAll(MENTION)) {
    const path = atHome(quoted ?? word ?? '')
    if (await isFile(path)) found.push(path)
  }
  return [...new Set(found)]
}

/** As shells and terminals write a path with blanks. */
function unquoted(text: string): string {
  const quoted = /^(['"])(.*)\1$/su.exec(text)
  return quoted?.[2] ?? text.replaceAll(/\\(.)/gu, '$1')
}

function atHome(path: string): string {
  return path.startsWith('~/') ? `${process.env['HOME'] ?? '~'}${path.slice(1)}` : path
}
