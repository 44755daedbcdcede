import type { Attachment } from '../core/inbound.ts'
import type { ImageBlock, UserBlock } from '../core/message.ts'
import type { ImageLimits } from './image-limits.ts'
import { findImageReferences, type ImageReference } from './image-references.ts'
import { type ImageSources, loadImages, type SkippedImage } from './load-images.ts'

export interface PromptImages {
  readonly images: readonly ImageBlock[]
  /** To be added to the prompt: which pictures the model does not get to see, and why. */
  readonly note: string | undefined
  readonly references: readonly ImageReference[]
  readonly skipped: readonly SkippedImage[]
}

/** Undefined limits: the model takes no images. */
export type AcceptedImages = ImageLimits | undefined

/** The pictures of a message: attached ones first, then those its text names. */
export async function loadPromptImages(
  prompt: { readonly text: string; readonly attachments: readonly Attachment[] },
  accepted: AcceptedImages,
  sources: ImageSources,
  signal: AbortSignal,
): Promise<PromptImages> {
  const references = promptReferences(prompt)
  if (references.length === 0) return { images: [], note: undefined, references, skipped: [] }
  if (accepted === undefined) {
    const skipped = references.map(({ path }) => ({ name: path, reason: 'this model does not accept images' }))
    return { images: [], note: describeSkipped(skipped), references, skipped }
  }
  const { images, skipped } = await loadImages(references, accepted, sources, signal)
  return { images, note: describeSkipped(skipped), references, skipped }
}

function promptReferences(prompt: {
  readonly text: string
  readonly attachments: readonly Attachment[]
}): readonly ImageReference[] {
  const attached = prompt.attachments
    .filter((attachment) => attachment.mimeType.startsWith('image/'))
    .map(({ name, path }) => ({ raw: name, path }))
  const named = findImageReferences(prompt.text)
  return [...attached, ...named.filter(({ path }) => !attached.some((reference) => reference.path === path))]
}

/** The content of the user message as the model gets it. Without pictures it stays a plain text. */
export function withPromptImages(text: string, found: PromptImages): string | readonly UserBlock[] {
  const shown = found.note === undefined ? text : `${text}\n\n${found.note}`
  return found.images.length === 0 ? shown : [{ type: 'text', text: shown }, ...found.images]
}

/** One line that a later turn finds again: put it into the stored text of a message with attachments. */
export function mediaMarker(attachment: Attachment): string {
  return `[media attached: ${attachment.path} (${attachment.mimeType})]`
}

const MAX_NAMED = 10

export function describeSkipped(skipped: readonly SkippedImage[]): string | undefined {
  if (skipped.length === 0) return undefined
  const named = skipped.slice(0, MAX_NAMED).map(({ name, reason }) => `${shortName(name)} (${reason})`)
  const more = skipped.length > MAX_NAMED ? `, and ${skipped.length - MAX_NAMED} more` : ''
  return `[images not attached: ${named.join(', ')}${more}]`
}

function shortName(path: string): string {
  const name = path.split(/[/\\]/).at(-1) ?? path
  return name.length > 80 ? `…${name.slice(-79)}` : name
}
