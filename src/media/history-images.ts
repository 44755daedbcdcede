import type { ImageBlock, Message, UserMessage } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import { findImageReferences, type ImageReference } from './image-references.ts'
import { type ImageSources, loadImages } from './load-images.ts'
import type { AcceptedImages } from './prompt-images.ts'

/** A message of the last turns that names pictures it does not hold. */
export interface MissingImages {
  readonly index: number
  readonly references: readonly ImageReference[]
}

const KEPT_TURNS = 3

/**
 * Looks at the completed turns of a history (without the prompt that is about to be answered). Pure. A picture is shown
 * once: in the prompt if that names it, else in the first message of the last turns that does.
 */
export function findMissingImages(
  messages: readonly Message[],
  prompt: readonly ImageReference[] = [],
  keptTurns = KEPT_TURNS,
): readonly MissingImages[] {
  const firstKept = startOfLastTurns(messages, keptTurns)
  const shown = new Set(prompt.map(({ path }) => path))
  return messages.flatMap((message, index) => {
    if (index < firstKept || message.role !== 'user' || hasImages(message)) return []
    const references = findImageReferences(textOf(message.content)).filter(({ path }) => !shown.has(path))
    for (const { path } of references) shown.add(path)
    return references.length === 0 ? [] : [{ index, references }]
  })
}

/**
 * The seed's history images: what earlier messages name is put back into them, for the last three completed turns. The
 * messages of transcripts other programs wrote, or that were written while a model without image support answered, hold only the
 * names. Taking out what is older, or what the model does not accept, is the history's business.
 */
export async function withHistoryImages<M extends Message>(
  messages: readonly M[],
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
): Promise<readonly (M | UserMessage)[]> {
  const { accepted } = options
  if (accepted === undefined) return messages
  const missing = findMissingImages(messages, options.promptReferences, options.keptTurns)
  const loaded = new Map<number, readonly ImageBlock[]>()
  let room = accepted.maxImages - options.promptImages - countImages(messages)
  // Newest first: when there is not room for all, the older ones go without.
  for (const { index, references } of missing.toReversed()) {
    if (room <= 0) break
    const { images } = await loadImages(references, { ...accepted, maxImages: room }, sources, signal)
    loaded.set(index, images)
    room -= images.length
  }
  return messages.map((message, index) => {
    const images = loaded.get(index) ?? []
    return message.role === 'user' && images.length > 0 ? addImages(message, images) : message
  })
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
  const text =
    typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
  return { ...message, content: [...text, ...images] }
}
