import { assertNever } from '../../base/assert-never.ts'
import type { Files } from '../../base/files.ts'
import { makeDurableDirectory } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Attachment } from '../../core/inbound.ts'
import { toGatewayError } from '../../core/errors.ts'
import type { Part } from './codec.ts'
import type { Language } from './errors.ts'
import { phoneText } from './errors.ts'
import { isTextType, mimeTypeOf, toText } from './media-types.ts'
import type { MediaSettings } from './settings.ts'

/** The one guarded fetch of the house: public addresses only, redirects checked, size and time capped. */
export type FetchMedia = (
  url: string,
  options: { readonly maxBytes: number; readonly timeoutMs: number; readonly allowHosts: readonly string[] },
  signal: AbortSignal,
) => Promise<{ readonly bytes: Uint8Array; readonly mimeType?: string }>

export interface MediaParts {
  readonly files: Files
  /** `<home>/media`. */
  readonly directory: string
  readonly ids: Ids
  readonly log: Log
  readonly fetchMedia: FetchMedia
  readonly settings: MediaSettings
  readonly language: Language
}

/** What a person sent, ready for a turn. `notes` name the files that could not be taken. */
export interface Content {
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly notes: readonly string[]
}

type FilePart = Extract<Part, { kind: 'file' }>

/** Downloads and stores the files of a message; rejects only when aborted. */
export async function readContent(parts: readonly Part[], media: MediaParts, signal: AbortSignal): Promise<Content> {
  const text = parts.flatMap((part) => (part.kind === 'text' && part.text.trim() !== '' ? [part.text] : [])).join('\n')
  const all = parts.filter((part): part is FilePart => part.kind === 'file')
  const taken = all.slice(0, media.settings.maxFiles)
  const tooMany = phoneText('fileTooMany', media.language)
  const notes = all.slice(media.settings.maxFiles).map((file) => `[${safeName(file.name)}: ${tooMany}]`)
  const attachments: Attachment[] = []
  for (const file of taken) {
    try {
      attachments.push(await storeFile(file, media, signal))
    } catch (error) {
      signal.throwIfAborted()
      media.log.warn('a file of a XiaoYi message was not taken', { code: toGatewayError(error).code })
      notes.push(`[${safeName(file.name)}: ${phoneText('fileFailed', media.language)}]`)
    }
  }
  return { text, attachments, notes }
}

async function storeFile(file: FilePart, media: MediaParts, signal: AbortSignal): Promise<Attachment> {
  const { bytes, mimeType: served } = await bytesOf(file, media, signal)
  const name = safeName(file.name)
  const mimeType = mimeTypeOf(bytes, [file.mimeType, served ?? ''], name)
  // A folder nobody can guess or collide with: two people's `image.png` are two files.
  const directory = `${media.directory}/${media.ids.hex(32)}`
  await makeDurableDirectory(media.files, directory)
  const path = `${directory}/${name}`
  const handle = await media.files.open(path, 'create', 0o600)
  try {
    await handle.write(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await media.files.syncDirectory(directory)
  return { name, mimeType, path, bytes: bytes.length, ...extractedText(bytes, mimeType, media) }
}

async function bytesOf(
  file: FilePart,
  media: MediaParts,
  signal: AbortSignal,
): Promise<{ readonly bytes: Uint8Array; readonly mimeType?: string }> {
  const { maxBytes, timeoutMs, allowHosts } = media.settings
  switch (file.source.kind) {
    case 'uri':
      return media.fetchMedia(file.source.uri, { maxBytes, timeoutMs, allowHosts }, signal)
    case 'bytes': {
      // Base64 is a third longer than its content: refuse before decoding.
      if (file.source.base64.length > maxBytes * 1.4) throw new Error('the file is too large')
      return { bytes: Buffer.from(file.source.base64, 'base64') }
    }
    case 'none':
      throw new Error('the file part has no content')
    default:
      return assertNever(file.source)
  }
}

function extractedText(bytes: Uint8Array, mimeType: string, media: MediaParts): { text?: string } {
  if (!isTextType(mimeType)) return {}
  const text = toText(bytes, media.settings.maxTextBytes)
  if (text === undefined) return {}
  return { text: text.truncated ? `${text.text}\n[${phoneText('truncated', media.language)}]` : text.text }
}

/** The last path component without control characters, at most 100 characters, its extension kept. */
export function safeName(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? ''
  // eslint-disable-next-line no-control-regex
  const clean = base.replaceAll(/[\u0000-\u001f\u007f<>:"|?*]/g, '_').replace(/^\.+/, '')
  if (clean === '') return 'file'
  if (clean.length <= 100) return clean
  const dot = clean.lastIndexOf('.')
  const extension = dot > 0 && clean.length - dot <= 16 ? clean.slice(dot) : ''
  return clean.slice(0, 100 - extension.length).replace(/[\ud800-\udbff]$/, '') + extension
}
