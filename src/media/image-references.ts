/** A picture named in a text: a file of this machine, never a web address. */
export interface ImageReference {
  /** As it stands in the text. */
  readonly raw: string
  /** Decoded: an absolute path, or one that begins with `./`, `../`, `~/` or a drive letter. */
  readonly path: string
}

const EXTENSION = String.raw`\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|heif)`
/** `/a/b.pngx` and `/a/b.png.txt` are other files; Chinese text may follow without a space. */
const BOUNDARY = String.raw`(?![A-Za-z0-9_/\\-]|\.[A-Za-z0-9])`
const PATH_START = String.raw`(?:~[/\\]|\.{1,2}[/\\]|/(?!/)|[A-Za-z]:[/\\])`
const NO_SPACE = String.raw`[^\s"'\u0060<>()[\]{}|*?\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\u2018-\u201d]`
const LONGEST = 500

/** Most texts have none, and what is far from one need not be looked at: this keeps long texts cheap. */
const ANY_EXTENSION = new RegExp(EXTENSION, 'gi')

/** In this order at each place: what is more specific decides how far a reference reaches. */
const MARKER = /\[(?:media attached(?: \d+\/\d+)?|image):\s*(?:source:\s*)?([^\]\n]{1,2000})\]/iy
const WEB_ADDRESS = /(?:https?|ftp|wss?):\/\/[^\s<>"'`\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+/iy
const FILE_URL = new RegExp(String.raw`file://${NO_SPACE}{0,${LONGEST}}?${EXTENSION}${BOUNDARY}`, 'iy')
const QUOTED = new RegExp(String.raw`(["'\u0060])(${PATH_START}[^"'\u0060\n]{0,${LONGEST}}?${EXTENSION})\1`, 'iy')
const BARE = new RegExp(String.raw`${PATH_START}${NO_SPACE}{0,${LONGEST}}?${EXTENSION}${BOUNDARY}`, 'iy')
const IN_MARKER = new RegExp(String.raw`^(.{1,${LONGEST}}?${EXTENSION})(?=\s*(?:\(|\||$))`, 'i')

/** Where a reference may begin: at these signs, or at a letter that begins a word. Keeps the search fast. */
const SIGN = /[["'`~./]/
const LETTER = /[A-Za-z]/
const IN_WORD = /[A-Za-z0-9_]/
/** A path begins after a space, a quote, an opening bracket, a colon or a letter of a script without spaces. */
const MAY_PRECEDE_PATH = /[\s"'`([{<=:：,，;；|。、！？（【「“‘》\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]/u

/** How far before its ending a reference can begin, markers included. */
const FARTHEST = 2_100

export function findImageReferences(text: string, maxReferences = 20): readonly ImageReference[] {
  const found = new Map<string, ImageReference>()
  const endings = text.matchAll(ANY_EXTENSION)
  let ending = endings.next()
  let at = 0
  while (found.size < maxReferences) {
    while (ending.done !== true && ending.value.index < at) ending = endings.next()
    if (ending.done === true) break
    at = Math.max(at, ending.value.index - FARTHEST)
    const next = referenceAt(text, at)
    at = next.end
    if (next.reference !== undefined && !found.has(next.reference.path)) found.set(next.reference.path, next.reference)
  }
  return [...found.values()]
}

function referenceAt(text: string, at: number): { readonly reference?: ImageReference; readonly end: number } {
  if (!mayBegin(text, at)) return { end: at + 1 }
  const marker = matchAt(MARKER, text, at)
  if (marker !== undefined) return withEnd(fromMarker(marker[0], marker[1] ?? ''), at + marker[0].length)
  const web = matchAt(WEB_ADDRESS, text, at)
  if (web !== undefined) return { end: at + web[0].length }
  const quoted = matchAt(QUOTED, text, at)
  if (quoted !== undefined) return withEnd({ raw: quoted[2] ?? '', path: quoted[2] ?? '' }, at + quoted[0].length)
  if (at > 0 && !MAY_PRECEDE_PATH.test(text[at - 1] ?? '')) return { end: at + 1 }
  const url = matchAt(FILE_URL, text, at)
  if (url !== undefined) return withEnd(fromFileUrl(url[0]), at + url[0].length)
  const bare = matchAt(BARE, text, at)
  if (bare === undefined) return { end: at + 1 }
  return withEnd({ raw: bare[0], path: bare[0] }, at + bare[0].length)
}

function mayBegin(text: string, at: number): boolean {
  const letter = text[at] ?? ''
  return SIGN.test(letter) || (LETTER.test(letter) && !IN_WORD.test(text[at - 1] ?? ''))
}

/** `/a/my cat.png (image/png) | https://…`: the path may have spaces and ends before a bracket or a bar. */
function fromMarker(raw: string, content: string): ImageReference | undefined {
  const path = IN_MARKER.exec(content.trim())?.[1]
  if (path === undefined || /^(?:https?|ftp):/i.test(path)) return undefined
  if (path.toLowerCase().startsWith('file:')) return fromFileUrl(path)
  return { raw, path: isPlainPath(path) ? path : `./${path}` }
}

/** A host other than this machine, and escapes that hide a slash or a NUL, make it no file of ours. */
function fromFileUrl(raw: string): ImageReference | undefined {
  if (!URL.canParse(raw)) return undefined
  const url = new URL(raw)
  if (url.hostname !== '' && url.hostname !== 'localhost') return undefined
  if (/%(?:2f|5c|00)/i.test(url.pathname)) return undefined
  try {
    const path = decodeURIComponent(url.pathname)
    return { raw, path: /^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path }
  } catch {
    return undefined
  }
}

function isPlainPath(path: string): boolean {
  return /^(?:[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\])/.test(path)
}

function withEnd(reference: ImageReference | undefined, end: number): { reference?: ImageReference; end: number } {
  return reference === undefined ? { end } : { reference, end }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
