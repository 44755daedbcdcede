interface Magic {
  readonly mediaType: string
  readonly at: number
  readonly bytes: readonly number[]
}

const ascii = (text: string): readonly number[] => Array.from(text, (letter) => letter.charCodeAt(0))

const MAGIC: readonly Magic[] = [
  { mediaType: 'image/png', at: 0, bytes: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { mediaType: 'image/jpeg', at: 0, bytes: [0xff, 0xd8, 0xff] },
  { mediaType: 'image/gif', at: 0, bytes: ascii('GIF87a') },
  { mediaType: 'image/gif', at: 0, bytes: ascii('GIF89a') },
  { mediaType: 'image/tiff', at: 0, bytes: [0x49, 0x49, 0x2a, 0x00] },
  { mediaType: 'image/tiff', at: 0, bytes: [0x4d, 0x4d, 0x00, 0x2a] },
  { mediaType: 'application/pdf', at: 0, bytes: ascii('%PDF-') },
  { mediaType: 'application/zip', at: 0, bytes: [0x50, 0x4b, 0x03, 0x04] },
  { mediaType: 'application/gzip', at: 0, bytes: [0x1f, 0x8b] },
  { mediaType: 'audio/mpeg', at: 0, bytes: ascii('ID3') },
  { mediaType: 'audio/ogg', at: 0, bytes: ascii('OggS') },
  { mediaType: 'audio/flac', at: 0, bytes: ascii('fLaC') },
  { mediaType: 'audio/amr', at: 0, bytes: ascii('#!AMR') },
  { mediaType: 'video/webm', at: 0, bytes: [0x1a, 0x45, 0xdf, 0xa3] },
]

/** `RIFF....XXXX` */
const RIFF_KINDS: Readonly<Record<string, string>> = {
  WEBP: 'image/webp',
  WAVE: 'audio/wav',
  'AVI ': 'video/x-msvideo',
}

/** `....ftypXXXX`: HEIC, AVIF and MP4 differ by their brand only. */
const BRANDS: readonly (readonly [RegExp, string])[] = [
  [/^(?:heic|heix|hevc|hevx|heim|heis)/, 'image/heic'],
  [/^(?:mif1|msf1)/, 'image/heif'],
  [/^avi[fs]/, 'image/avif'],
  [/^M4A/, 'audio/mp4'],
  [/^qt/, 'video/quicktime'],
]

const SNIFFED_TEXT_BYTES = 4096

/** What bytes are by their first letters; undefined when they do not tell. Text and SVG never do. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  for (const { mediaType, at, bytes: magic } of MAGIC) {
    if (magic.every((byte, i) => bytes[at + i] === byte)) return mediaType
  }
  const letters = latin1(bytes.subarray(0, 16))
  if (letters.startsWith('RIFF')) return RIFF_KINDS[letters.slice(8, 12)]
  if (letters.slice(4, 8) === 'ftyp') {
    const brand = letters.slice(8, 12)
    return BRANDS.find(([pattern]) => pattern.test(brand))?.[1] ?? 'video/mp4'
  }
  // `BM` alone begins many words: a bitmap also has two reserved zero words.
  if (letters.startsWith('BM') && bytes.length > 26 && bytes.subarray(6, 10).every((byte) => byte === 0))
    return 'image/bmp'
  return undefined
}

/** The content decides; the declaration is believed only where it cannot be disproved. */
export function sniffMediaType(bytes: Uint8Array, declared?: string): string {
  const known = mediaTypeOf(bytes)
  if (known !== undefined) return known
  const said = declared?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (isBinary(bytes)) return /^(?:image|text)\//.test(said) || said === '' ? 'application/octet-stream' : said
  const start = latin1(bytes.subarray(0, 512))
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .trimStart()
    .toLowerCase()
  if (start.startsWith('<!doctype html') || start.startsWith('<html')) return 'text/html'
  if (start.startsWith('<svg') || (start.startsWith('<?xml') && start.includes('<svg'))) return 'image/svg+xml'
  if (said !== '' && !/^(?:image|audio|video)\//.test(said)) return said
  return 'text/plain'
}

function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, SNIFFED_TEXT_BYTES).includes(0)
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
