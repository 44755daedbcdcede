import { isRecord } from '../../base/json.ts'
import type { UserBlock } from '../../core/message.ts'
import { capText } from '../cap-output.ts'
import type { ToolResult } from '../tool.ts'

const MAX_BLOCKS = 100
const MAX_UNKNOWN_CHARS = 2_000

/** What a server answered, whatever it is, as blocks a model can read. */
export function toToolResult(result: Readonly<Record<string, unknown>>): ToolResult {
  const { content, structuredContent, isError } = result
  const blocks = Array.isArray(content) ? content.slice(0, MAX_BLOCKS).map(toBlock) : []
  if (blocks.length === 0 && structuredContent !== undefined) blocks.push(text(JSON.stringify(structuredContent)))
  if (Array.isArray(content) && content.length > MAX_BLOCKS)
    blocks.push(text(`[${content.length - MAX_BLOCKS} more blocks]`))
  return { content: blocks.length > 0 ? blocks : [text('[no output]')], isError: isError === true }
}

function toBlock(block: unknown): UserBlock {
  if (!isRecord(block)) return unknownBlock(block)
  const { type, data, mimeType } = block
  if (type === 'text' && typeof block['text'] === 'string') return text(block['text'])
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string' && mimeType.startsWith('image/')) {
    return { type: 'image', data, mimeType }
  }
  if (type === 'audio' && typeof data === 'string') return text(`[audio, ${data.length} base64 characters]`)
  if (type === 'resource' && isRecord(block['resource'])) return resourceBlock(block['resource'])
  if (type === 'resource_link') return text(`[resource ${shown(block['name'])}: ${shown(block['uri'])}]`)
  return unknownBlock(block)
}

function resourceBlock(resource: Record<string, unknown>): UserBlock {
  const { blob, uri } = resource
  if (typeof resource['text'] === 'string') return text(`[resource ${shown(uri)}]\n${resource['text']}`)
  const size = typeof blob === 'string' ? `, ${blob.length} base64 characters` : ''
  return text(`[resource ${shown(uri)}, ${shown(resource['mimeType'])}${size}]`)
}

function unknownBlock(block: unknown): UserBlock {
  return text(capText(JSON.stringify(block) ?? '', MAX_UNKNOWN_CHARS))
}

function shown(value: unknown): string {
  return typeof value === 'string' ? capText(value, 500) : 'unknown'
}

function text(content: string): UserBlock {
  return { type: 'text', text: content }
}
