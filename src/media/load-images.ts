import { errnoOf, type Files, type FileStat } from '../base/files.ts'
import { type ImageResizer, imageSizeOf } from '../base/images.ts'
import { mediaTypeOf } from '../base/media-type.ts'
import type { ImageBlock } from '../core/message.ts'
import type { ImageLimits } from './image-limits.ts'
import type { ImageReference } from './image-references.ts'

export interface ImageSources {
  readonly files: Files
  readonly resizer: ImageResizer
  /** Absolute. Pictures are read below these folders and nowhere else; links are resolved first. */
  readonly roots: readonly string[]
  /** What `./` and `../` start from. */
  readonly workspace: string
  /** What `~/` means. Undefined: nothing. */
  readonly userHome?: string
  /** Drive letters mean something here. */
  readonly isWindows?: boolean
  /** Of a file that is read at all. */
  readonly maxFileBytes?: number
}

export interface LoadedImages {
  readonly images: readonly ImageBlock[]
  /** What was not loaded, by the name it has in the text, and why. */
  readonly skipped: readonly SkippedImage[]
}

export interface SkippedImage {
  readonly name: string
  readonly reason: string
}

const MAX_FILE_BYTES = 25 * 1024 * 1024
const OUTSIDE = 'outside the allowed folders'

/** Pictures in the order they are named. One that cannot be used is skipped with a reason; only an abort throws. */
export async function loadImages(
  references: readonly ImageReference[],
  limits: ImageLimits,
  sources: ImageSources,
  signal: AbortSignal,
): Promise<LoadedImages> {
  const images: ImageBlock[] = []
  const skipped: SkippedImage[] = []
  for (const reference of references) {
    signal.throwIfAborted()
    if (images.length >= limits.maxImages) {
      skipped.push({ name: reference.path, reason: `more than ${limits.maxImages} images` })
      continue
    }
    const loaded = await loadOne(reference, limits, sources, signal)
    if (typeof loaded === 'string') skipped.push({ name: reference.path, reason: loaded })
    else images.push(loaded)
  }
  return { images, skipped }
}

/** The picture, or why not. */
async function loadOne(
  reference: ImageReference,
  limits: ImageLimits,
  sources: ImageSources,
  signal: AbortSignal,
): Promise<ImageBlock | string> {
  const path = toAbsolute(reference.path, sources)
  if (path === undefined) return 'a path of another system'
  try {
    const bytes = await readInsideRoots(path, sources)
    return typeof bytes === 'string' ? bytes : await toBlock(bytes, limits, sources.resizer, signal)
  } catch (error) {
    signal.throwIfAborted()
    return describeErrno(errnoOf(error))
  }
}

function toAbsolute(path: string, { workspace, userHome, isWindows = false }: ImageSources): string | undefined {
  if (/^[A-Za-z]:[/\\]/.test(path)) return isWindows ? path.replaceAll('\\', '/') : undefined
  const plain = isWindows ? path.replaceAll('\\', '/') : path
  if (plain.startsWith('~/')) return userHome === undefined ? undefined : `${userHome}/${plain.slice(2)}`
  return plain.startsWith('/') ? plain : `${workspace}/${plain}`
}

async function readInsideRoots(path: string, sources: ImageSources): Promise<Uint8Array | string> {
  const { files, roots, maxFileBytes = MAX_FILE_BYTES } = sources
  const real = await files.realPath(path).catch(() => undefined)
  // An answer must not say whether a file outside exists.
  if (real === undefined) return isBelow(roots, normalise(path)) ? 'not found' : OUTSIDE
  if (!isBelow(await realRoots(files, roots), real)) return OUTSIDE
  // Before it is opened: opening a pipe would wait for its writer.
  if ((await files.stat(real))?.kind !== 'file') return 'not a file'
  const handle = await files.open(real, 'read')
  try {
    const stat = handle.stat()
    if (!(await isStillThere(files, real, stat))) return 'it changed while it was opened'
    if (stat.size > maxFileBytes) return `larger than ${maxFileBytes} bytes`
    return await handle.read(0, stat.size)
  } finally {
    await handle.close()
  }
}

async function realRoots(files: Files, roots: readonly string[]): Promise<readonly string[]> {
  const real = await Promise.all(roots.map((root) => files.realPath(root).catch(() => undefined)))
  return real.filter((root) => root !== undefined)
}

function isBelow(roots: readonly string[], path: string): boolean {
  return roots.some((root) => path.startsWith(`${root}/`))
}

function normalise(path: string): string {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}

async function isStillThere(files: Files, real: string, opened: FileStat): Promise<boolean> {
  return (await files.realPath(real)) === real && (await files.stat(real))?.identity === opened.identity
}

/** The content decides what it is; the name only made us look. */
async function toBlock(
  bytes: Uint8Array,
  limits: ImageLimits,
  resizer: ImageResizer,
  signal: AbortSignal,
): Promise<ImageBlock | string> {
  const mediaType = mediaTypeOf(bytes)
  if (mediaType === undefined || !mediaType.startsWith('image/')) return 'not an image'
  if (fits(bytes, mediaType, limits)) return imageBlock(bytes, mediaType)
  const resized = await resizer.resize(bytes, limits, signal)
  if (resized !== undefined && limits.mediaTypes.includes(resized.mediaType)) {
    return imageBlock(resized.bytes, resized.mediaType)
  }
  if (!limits.mediaTypes.includes(mediaType)) return `${mediaType} is not accepted by the model`
  return `too large (${bytes.length} bytes) and could not be resized`
}

function fits(bytes: Uint8Array, mediaType: string, limits: ImageLimits): boolean {
  if (!limits.mediaTypes.includes(mediaType) || bytes.length > limits.maxBytes) return false
  const size = imageSizeOf(bytes, mediaType)
  return size === undefined || Math.max(size.width, size.height) <= limits.maxSide
}

function imageBlock(bytes: Uint8Array, mimeType: string): ImageBlock {
  return {
    type: 'image',
    data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    mimeType,
  }
}

function describeErrno(errno: string | undefined): string {
  return errno === 'EACCES' || errno === 'EPERM' ? 'not readable' : 'it could not be read'
}
