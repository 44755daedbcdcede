import { sniffMediaType } from '../base/media-type.ts'

const BY_EXTENSION: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  log: 'text/plain',
  md: 'text/markdown',
  markdown: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  htm: 'text/html',
  xml: 'application/xml',
  json: 'application/json',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  pdf: 'application/pdf',
  zip: 'application/zip',
}

/** Content decides over what was declared, and a declaration over the name. */
export function mimeTypeOf(bytes: Uint8Array, declared: readonly string[], name: string): string {
  const said = declared.map(normalise).find((type) => type !== undefined) ?? BY_EXTENSION[extensionOf(name)]
  // Text in UTF-16 is full of zero bytes, which otherwise mark what is not text.
  if (said !== undefined && isTextType(said) && utf16Of(bytes) !== undefined) return said
  return sniffMediaType(bytes, said)
}

/** Phones send `jpeg` where `image/jpeg` is meant. */
function normalise(type: string): string | undefined {
  const bare = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (bare === '' || bare === 'application/octet-stream' || bare === 'binary/octet-stream') return undefined
  return bare.includes('/') ? bare : BY_EXTENSION[bare]
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase()
}

export function isTextType(mimeType: string): boolean {
  return mimeType.startsWith('text/') || /^application\/([\w.+-]*\+)?(json|xml|yaml|x-yaml|javascript)$/.test(mimeType)
}

/** Undefined for what is no text after all. Byte order marks decide; else UTF-8 when it is valid, else GB18030. */
export function toText(bytes: Uint8Array, maxBytes: number): { text: string; truncated: boolean } | undefined {
  const truncated = bytes.length > maxBytes
  const cut = bytes.subarray(0, maxBytes)
  const charset = charsetOf(cut, truncated)
  const text = new TextDecoder(charset).decode(cut)
  const isBinary = charset !== 'utf-16le' && charset !== 'utf-16be' && cut.includes(0)
  if (isBinary) return undefined
  // A cut in the middle of a character leaves a replacement character behind.
  return { text: truncated ? text.replace(/\ufffd$/, '') : text, truncated }
}

function utf16Of(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined
}

function charsetOf(bytes: Uint8Array, truncated: boolean): string {
  const utf16 = utf16Of(bytes)
  if (utf16 !== undefined) return utf16
  try {
    // `stream` forgives an unfinished character at the end, which only a cut file may have.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: truncated })
    return 'utf-8'
  } catch {
    return 'gb18030'
  }
}
