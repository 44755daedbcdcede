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

const BY_FIRST_BYTES: readonly (readonly [string, string])[] = [
  ['image/png', '89504e470d0a1a0a'],
  ['image/jpeg', 'ffd8ff'],
  ['image/gif', '47494638'],
  ['image/bmp', '424d'],
  ['application/pdf', '255044462d'],
  ['application/zip', '504b0304'],
  ['application/gzip', '1f8b'],
]

/** Content decides over what was declared: a "text" that begins like a PNG is a PNG. */
export function mimeTypeOf(bytes: Uint8Array, declared: readonly string[], name: string): string {
  const sniffed = sniff(bytes)
  if (sniffed !== undefined) return sniffed
  for (const type of declared) {
    const known = normalise(type)
    if (known !== undefined && !known.startsWith('image/')) return known
  }
  return (
    BY_EXTENSION[extensionOf(name)]?.replace(/^image\/.*/, 'application/octet-stream') ?? 'application/octet-stream'
  )
}

function sniff(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('hex')
  if (start.startsWith('52494646') && start.slice(16, 24) === '57454250') return 'image/webp'
  return BY_FIRST_BYTES.find(([, magic]) => start.startsWith(magic))?.[0]
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

function charsetOf(bytes: Uint8Array, truncated: boolean): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  try {
    // `stream` forgives an unfinished character at the end, which only a cut file may have.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: truncated })
    return 'utf-8'
  } catch {
    return 'gb18030'
  }
}
