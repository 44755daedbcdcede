const META = /<meta[^>]{0,300}/gi
const CHARSET = /charset\s{0,20}=\s{0,20}["']?([\w-]{1,40})/i
const XML_ENCODING = /^<\?xml[^>]{0,100}encoding\s*=\s*["']([\w-]+)/i

/** By byte order mark, header, or the page's own word, in this order; UTF-8 otherwise. Pages in GBK are still common. */
export function decodeBody(bytes: Uint8Array, contentType: string): string {
  const head = Buffer.from(bytes.subarray(0, 2048)).toString('latin1')
  const declared = CHARSET.exec(contentType)?.[1]
  const charset = declared ?? metaCharset(head) ?? XML_ENCODING.exec(head)?.[1] ?? 'utf-8'
  return decoderFor(byteOrderMark(bytes) ?? charset).decode(bytes)
}

function metaCharset(head: string): string | undefined {
  for (const [tag] of head.matchAll(META)) {
    const charset = CHARSET.exec(tag)?.[1]
    if (charset !== undefined) return charset
  }
  return undefined
}

function byteOrderMark([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  return undefined
}

function decoderFor(charset: string): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder('utf-8')
  }
}
