import type { ImageBlock, Message, UserBlock, UserMessage } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import { findImageReferences, type ImageReference } from './image-references.ts'
import { type ImageSources, loadImages } from './load-images.ts'
import type { AcceptedImages } from './prompt-images.ts'

/** What is to be done with the pictures of a history; made by `planHistoryImages`, carried out by `applyHistoryImages`. */
export interface HistoryImagePlan {
  /** Messages of the last turns that name pictures they do not hold. */
  readonly toLoad: readonly { readonly index: number; readonly references: readonly ImageReference[] }[]
  /** Everything before this index is older: its pictures become markers. */
  readonly firstKept: number
}

const KEPT_TURNS = 3
const OLD_IMAGE: UserBlock = { type: 'text', text: '[image of an earlier turn, no longer shown]' }
const UNSEEN_IMAGE: UserBlock = { type: 'text', text: '[image: this model does not accept images]' }

/**
 * Looks at the completed turns of a history (without the prompt that is about to be answered). Pure. A picture is shown
 * once: in the prompt if that names it, else in the first message of the last turns that does.
 */
export function planHistoryImages(
  messages: readonly Message[],
  prompt: readonly ImageReference[] = [],
  keptTurns = KEPT_TURNS,
): HistoryImagePlan {
  const firstKept = startOfLastTurns(messages, keptTurns)
  const shown = new Set(prompt.map(({ path }) => path))
  const toLoad = messages.flatMap((message, index) => {
    if (index < firstKept || message.role !== 'user' || hasImages(message)) return []
    const references = findImageReferences(textOf(message.content)).filter(({ path }) => !shown.has(path))
    for (const { path } of references) shown.add(path)
    return references.length === 0 ? [] : [{ index, references }]
  })
  return { toLoad, firstKept }
}

/** Pure: the same messages, pictures put into the last turns and taken out of older ones, tool results included. */
export function applyHistoryImages(
  messages: readonly Message[],
  plan: HistoryImagePlan,
  loaded: ReadonlyMap<number, readonly ImageBlock[]>,
): readonly Message[] {
  return messages.map((message, index) => {
    if (index < plan.firstKept) return replaceImages(message, OLD_IMAGE)
    const images = loaded.get(index) ?? []
    return message.role === 'user' && images.length > 0 ? addImages(message, images) : message
  })
}

/** The whole of it: plan, load, apply. For a model without eyes every picture becomes a marker. */
export async function withHistoryImages(
  messages: readonly Message[],
  options: {
    readonly accepted: AcceptedImages
    /** Of the prompt, so that they are not shown twice. */
    readonly promptReferences: readonly ImageReference[]
    /** How many pictures the prompt already holds: the limit counts all of a request. */
    readonly promptImages: number
    readonly keptTurns?: number
  },
  sources: ImageSources,
  signal: AbortSignal,
): Promise<readonly Message[]> {
  const { accepted } = options
  if (accepted === undefined) return messages.map((message) => replaceImages(message, UNSEEN_IMAGE))
  const plan = planHistoryImages(messages, options.promptReferences, options.keptTurns)
  const loaded = new Map<number, readonly ImageBlock[]>()
  let room = accepted.maxImages - options.promptImages - countImages(messages.slice(plan.firstKept))
  // Newest first: when there is not room for all, the older ones go without.
  for (const { index, references } of plan.toLoad.toReversed()) {
    if (room <= 0) break
    const { images } = await loadImages(references, { ...accepted, maxImages: room }, sources, signal)
    loaded.set(index, images)
    room -= images.length
  }
  return applyHistoryImages(messages, plan, loaded)
}

/** A turn begins with a user message whose predecessor is not one: messages sent in a row belong together. */
function startOfLastTurns(messages: readonly Message[], turns: number): number {
  let left = turns
  for (let index = messages.length - 1; index >= 0; index--) {
    const startsTurn = messages[index]?.role === 'user' && messages[index - 1]?.role !== 'user'
    if (startsTurn && --left === 0) return index
  }
  return 0
}

function hasImages(message: UserMessage): boolean {
  return typeof message.content !== 'string' && message.content.some((block) => block.type === 'image')
}

function countImages(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => {
    if (!('content' in message) || typeof message.content === 'string') return sum
    return sum + message.content.filter((block) => block.type === 'image').length
  }, 0)
}

function addImages(message: UserMessage, images: readonly ImageBlock[]): UserMessage {
  const content =
    typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
  return { ...message, content: [...content, ...images] }
}

function replaceImages(message: Message, marker: UserBlock): Message {
  if (message.role !== 'user' && message.role !== 'toolResult' && message.role !== 'custom') return message
  const { content } = message
  if (typeof content === 'string' || !content.some((block) => block.type === 'image')) return message
  return { ...message, content: content.map((block) => (block.type === 'image' ? marker : block)) }
}
