import { isRecord } from '../../base/json.ts'
import { type AnthropicFindings, type AnthropicMessage, checkFields } from './anthropic-shape.ts'
import { BASE64_SOURCE, FILE_SOURCE, URL_SOURCE } from './anthropic-fields.ts'
import { type ImageInfo, imageInfo, isBase64 } from './image-info.ts'

const MEDIA_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const MAX_IMAGES = 100
const MAX_IMAGE_BYTES = 5 * 1024 * 1024
const MANY_IMAGES = 20
const MAX_SIDE = 8000
const MAX_SIDE_OF_MANY = 2000

interface Found {
  readonly path: string
  readonly block: Record<string, unknown>
}

/** Sizes depend on the whole request: the images of earlier turns and of tool results count. */
export function checkAnthropicImages(findings: AnthropicFindings, messages: readonly AnthropicMessage[]): void {
  const images = messages.flatMap(imagesOf)
  if (images.length > MAX_IMAGES) {
    findings.add('image-count', 'messages', `messages: Too many images: ${images.length} > ${MAX_IMAGES}`)
  }
  for (const { path, block } of images) {
    const source = block.source
    if (!isRecord(source)) continue
    if (source.type === 'url') checkFields(findings, `${path}.image.source.url`, source, URL_SOURCE)
    else if (source.type === 'file') checkFields(findings, `${path}.image.source.file`, source, FILE_SOURCE)
    else checkBytes(findings, `${path}.image.source.base64`, source, images.length > MANY_IMAGES)
  }
}

function imagesOf(message: AnthropicMessage): Found[] {
  if (typeof message.content === 'string') return []
  return message.content.flatMap((block, index): Found[] => {
    const path = `messages.${message.index}.content.${index}`
    if (block.type === 'image') return [{ path, block }]
    if (block.type !== 'tool_result' || !Array.isArray(block.content)) return []
    return block.content.flatMap((inner, place) =>
      isRecord(inner) && inner.type === 'image' ? [{ path: `${path}.tool_result.content.${place}`, block: inner }] : [],
    )
  })
}

function checkBytes(findings: AnthropicFindings, path: string, source: Record<string, unknown>, isMany: boolean): void {
  if (!checkFields(findings, path, source, BASE64_SOURCE)) return
  const { media_type: mediaType, data } = source
  if (typeof data !== 'string' || typeof mediaType !== 'string') return
  if (!MEDIA_TYPES.includes(mediaType)) {
    const types = MEDIA_TYPES.map((type) => `'${type}'`).join(', ')
    findings.add('image-media-type', `${path}.media_type`, `${path}.media_type: Input should be ${types}`)
    return
  }
  if (data.length > MAX_IMAGE_BYTES) {
    const text = `${path}.data: image exceeds 5 MB maximum: ${data.length} bytes > ${MAX_IMAGE_BYTES} bytes`
    findings.add('image-bytes', `${path}.data`, text)
  }
  const info = isBase64(data) ? imageInfo(data) : undefined
  if (info === undefined) {
    const text = isBase64(data) ? 'Could not process image' : `${path}.data: invalid base64 data`
    findings.add('image-data', `${path}.data`, text)
    return
  }
  if (info.mimeType !== mediaType) {
    const text = `${path}: The image was specified using the ${mediaType} media type, but the image appears to be a ${info.mimeType} image`
    findings.add('image-media-type', path, text)
  }
  checkDimensions(findings, `${path}.data`, info, isMany)
}

function checkDimensions(findings: AnthropicFindings, path: string, info: ImageInfo, isMany: boolean): void {
  const side = Math.max(info.width ?? 0, info.height ?? 0)
  if (side <= (isMany ? MAX_SIDE_OF_MANY : MAX_SIDE)) return
  const limit = isMany ? `for many-image requests: ${MAX_SIDE_OF_MANY}` : `: ${MAX_SIDE}`
  const text = `${path}: At least one of the image dimensions exceed max allowed size${isMany ? ' ' : ''}${limit} pixels`
  findings.add('image-dimensions', path, text)
}
