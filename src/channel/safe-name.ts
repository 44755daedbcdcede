/** A disk takes 255 bytes of a name. */
const MAX_NAME_BYTES = 200

/** The last path component without control characters, cut by bytes because that is what disks count, its extension kept. */
export function safeName(name: string): string {
  const base = name.slice(-4_096).split(/[/\\]/).at(-1) ?? ''
  const clean = base.replaceAll(/[\p{Cc}\p{Cs}<>:"|?*]/gu, '_').replace(/^\.+/, '')
  if (clean === '') return 'file'
  if (Buffer.byteLength(clean) <= MAX_NAME_BYTES) return clean
  const dot = clean.lastIndexOf('.')
  const extension = dot > 0 && clean.length - dot <= 16 ? clean.slice(dot) : ''
  const room = MAX_NAME_BYTES - Buffer.byteLength(extension)
  return `${cutToBytes(clean, room)}${extension}`
}

function cutToBytes(text: string, maxBytes: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read)
}
