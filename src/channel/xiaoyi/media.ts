import { assertNever } from '../../base/assert-never.ts'
import { FetchRefused } from '../../base/fetch-policy.ts'
import { errnoOf, makeDurableDirectory, type Files } from '../../base/files.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Attachment } from '../../core/inbound.ts'
import { safeName } from '../safe-name.ts'
import type { Part } from './codec.ts'
import type { Language } from './errors.ts'
import { phoneText } from './errors.ts'
import { isTextType, mimeTypeOf, toText } from '../media-types.ts'
import type { MediaSettings } from './settings.ts'

/** The guarded fetch: public addresses only, redirects checked, size and time capped. */
export type FetchMedia = (
  url: string,
  options: { readonly maxBytes: number; readonly timeoutMs: number; readonly allowHosts: readonly string[] },
  signal: AbortSignal,
) => Promise<{ readonly bytes: Uint8Array; readonly mimeType?: string }>

export interface MediaDeps {
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
export async function readContent(parts: readonly Part[], media: MediaDeps, signal: AbortSignal): Promise<Content> {
  const said = parts.flatMap((part) => (part.kind === 'text' && part.text.trim() !== '' ? [part.text] : []))
  const data = dataOf(parts)
  const text = [...said, ...(said.length === 0 || data.length === 0 ? [] : [shownData(data, media)])].join('\n')
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
      media.log.warn('a file of a XiaoYi message was not taken', whyNot(error))
      notes.push(`[${safeName(file.name)}: ${phoneText('fileFailed', media.language)}]`)
    }
  }
  return { text, attachments, notes }
}

/** What an app sent along, without what is the channel's own business (`systemVariables`: the push id). */
export function dataOf(parts: readonly Part[]): readonly JsonObject[] {
  return parts.flatMap((part): JsonObject[] => {
    if (part.kind !== 'data') return []
    const { variables, ...rest } = part.data
    const { systemVariables: _own, ...others } = isRecord(variables) ? variables : {}
    const data = Object.keys(others).length === 0 ? rest : { ...rest, variables: others }
    // Parsed from JSON, so it is JSON
    return Object.keys(data).length === 0 ? [] : [data as JsonObject]
  })
}

/** Marked, so that the model can tell it from what the person said. */
function shownData(data: readonly JsonObject[], { settings, language }: MediaDeps): string {
  const json = data.map((one) => JSON.stringify(one)).join('\n')
  const shown = json.slice(0, settings.maxDataChars).replace(/[\ud800-\udbff]$/, '')
  const cut = shown.length < json.length ? `\n[${phoneText('truncated', language)}]` : ''
  return `<app-data>\n${shown}${cut}\n</app-data>`
}

/** For the operator: which rule, size, status or disk it was. The sentences hold no query and no credentials. */
function whyNot(error: unknown): JsonObject {
  if (error instanceof FetchRefused) return { reason: error.reason, detail: error.message }
  return { reason: errnoOf(error) ?? 'unknown' }
}

async function storeFile(file: FilePart, media: MediaDeps, signal: AbortSignal): Promise<Attachment> {
  const { bytes, mimeType: served } = await bytesOf(file, media, signal)
  const name = safeName(file.name)
  const mimeType = mimeTypeOf(bytes, [file.mimeType, served ?? ''], name)
  // A folder with a random name, which cannot be guessed and does not collide: two people's `image.png` are two files.
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
  media: MediaDeps,
  signal: AbortSignal,
): Promise<{ readonly bytes: Uint8Array; readonly mimeType?: string }> {
  const { maxBytes, timeoutMs, allowHosts } = media.settings
  switch (file.source.kind) {
    case 'uri':
      return media.fetchMedia(file.source.uri, { maxBytes, timeoutMs, allowHosts }, signal)
    case 'bytes': {
      // Base64 is a third longer than its content: refuse before decoding.
      if (file.source.base64.length > maxBytes * 1.4)
        throw new FetchRefused('too-large', `the file has more than ${maxBytes} bytes`)
      return { bytes: Buffer.from(file.source.base64, 'base64') }
    }
    case 'none':
      throw new FetchRefused('invalid-url', 'the file part has no content')
    default:
      return assertNever(file.source)
  }
}

function extractedText(bytes: Uint8Array, mimeType: string, media: MediaDeps): { text?: string } {
  if (!isTextType(mimeType)) return {}
  const text = toText(bytes, media.settings.maxTextBytes)
  if (text === undefined) return {}
  return { text: text.truncated ? `${text.text}\n[${phoneText('truncated', media.language)}]` : text.text }
}
