import type { RequestLimits } from '../core/history-rules.ts'
import type { ImageBlock, PreparedMessage, UserBlock } from '../core/message.ts'
import { canonicalBase64, imageFactsOf } from './image-facts.ts'
import { change, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import type { ImageFault, Reason } from './reasons.ts'
import { PLACEHOLDERS } from './texts.ts'

/**
 * The original's `sanitizeSessionMessagesImages`: only images that this model accepts, that are valid, recent and within
 * the limits of the whole request; each other one leaves a marker where it stood. The newest are kept first, because
 * one image too many refuses the request for ever.
 */
export function sanitizeSessionMessagesImages(items: readonly Item[], context: StepContext): StepResult {
  if (!items.some(hasImage)) return { items, changes: [] }
  const oldestTurn = startOfRecentTurns(items, context.budget.keepImagesOfTurns)
  const room = {
    images: context.policy.limits.maxImages,
    bytes: context.policy.limits.maxRequestBytes * IMAGE_SHARE_OF_REQUEST,
  }
  const changes: Change[] = []
  const sanitized = [...items]
  for (let at = items.length - 1; at >= 0; at--) {
    const item = items[at]
    if (item === undefined || !hasImage(item)) continue
    const content = contentOf(item.message)
      .toReversed()
      .map((block) => {
        if (block.type !== 'image') return block
        const next = at < oldestTurn ? PLACEHOLDERS.imageAlreadySeen : admit(block, item, context, room)
        if (next === block) return block
        const isText = typeof next === 'string'
        changes.push(change('images', isText ? 'dropped' : 'rewritten', isText ? next : 'image encoding', item))
        return isText ? ({ type: 'text', text: next } as const) : next
      })
    sanitized[at] = withContent(item, content.toReversed())
  }
  return changes.length === 0 ? { items, changes } : { items: sanitized, changes: changes.toReversed() }
}

/** The rest of the body is text, and the text has its own budget. */
const IMAGE_SHARE_OF_REQUEST = 0.6

function contentOf(message: PreparedMessage): readonly UserBlock[] {
  return message.role === 'assistant' || typeof message.content === 'string' ? [] : message.content
}

export const hasImage = ({ message }: Item): boolean => contentOf(message).some((block) => block.type === 'image')

function withContent(item: Item, content: readonly UserBlock[]): Item {
  const { message } = item
  const same = contentOf(message).every((block, at) => block === content[at])
  return message.role === 'assistant' || same ? item : { ...item, message: { ...message, content } }
}

/** The turn in progress and the last `turns` before it; messages that queued up are one turn. */
function startOfRecentTurns(items: readonly Item[], turns: number): number {
  let seen = 0
  for (let at = items.length - 1; at >= 0; at--) {
    if (items[at]?.message.role !== 'user' || items[at - 1]?.message.role === 'user') continue
    if (seen++ === turns) return at
  }
  return 0
}

/** How many turns there are, messages that queued up as one. */
export function userRuns(items: readonly Item[]): number {
  return items.filter(({ message }, at) => message.role === 'user' && items[at - 1]?.message.role !== 'user').length
}

interface ImageRoom {
  images: number
  bytes: number
}

/** The image as it may be sent, or the text that stands in for it. */
function admit(
  block: ImageBlock,
  { message }: Item,
  context: StepContext,
  room: ImageRoom,
): ImageBlock | Extract<Reason, `[image left out${string}`> {
  // Anthropic takes text only in an error result.
  if (message.role === 'toolResult' && message.isError) return PLACEHOLDERS.imageLeftOut('it belongs to an error')
  if (!context.target.acceptsImages) return PLACEHOLDERS.imageLeftOut('this model does not accept images')
  const checked = checkImage(block, context.policy.limits)
  if (typeof checked === 'string') return PLACEHOLDERS.imageLeftOut(checked)
  if (room.images < 1) return PLACEHOLDERS.imageLeftOut('too many images in one request')
  if (room.bytes < checked.data.length) return PLACEHOLDERS.imageLeftOut('the images of one request are too large')
  room.images -= 1
  room.bytes -= checked.data.length
  return checked
}

const checkedImages = new WeakMap<
  ImageBlock,
  { readonly limits: RequestLimits; readonly result: ImageBlock | ImageFault }
>()

function checkImage(block: ImageBlock, limits: RequestLimits): ImageBlock | ImageFault {
  const before = checkedImages.get(block)
  if (before?.limits === limits) return before.result
  const result = inspect(block, limits)
  checkedImages.set(block, { limits, result })
  return result
}

function inspect(block: ImageBlock, limits: RequestLimits): ImageBlock | ImageFault {
  const data = canonicalBase64(block.data)
  if (data === undefined) return 'its data is not valid'
  const facts = imageFactsOf(data)
  if (facts === undefined) return 'not a PNG, JPEG, GIF or WebP image'
  if (!limits.imageTypes.includes(facts.mimeType)) return 'this model does not accept its format'
  if (data.length > limits.maxImageBytes) return 'it is too large'
  if (Math.max(facts.width, facts.height) > limits.maxImageSidePx) return 'its sides are too long'
  if (Math.min(facts.width, facts.height) < 1) return 'it is empty'
  if (data === block.data && facts.mimeType === block.mimeType) return block
  return { ...block, data, mimeType: facts.mimeType }
}
