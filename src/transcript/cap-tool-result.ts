import { cutMiddle, shareOut } from '../base/text.ts'
import type { ToolResultMessage, UserBlock } from '../core/message.ts'
import type { Blobs } from './blobs.ts'

export interface ToolResultCap {
  /** Characters of text one tool result may hold in the transcript. */
  readonly maxCharacters: number
  /** What each text block keeps as long as the total allows. */
  readonly minBlockCharacters: number
}

/** What a cut block names, so that programs find the original without reading the notice. */
export interface BlobReference {
  /** Index of the content block. */
  readonly block: number
  readonly blob: string
  readonly characters: number
}

/** The field a capped message carries beside pi's own; pi ignores and keeps it. */
export interface CappedFields {
  readonly clewBlobs?: readonly BlobReference[]
}

/** Keeps the whole text of every block it cuts as a blob, durable before the cut text can be stored. */
export async function capToolResult(
  message: ToolResultMessage,
  cap: ToolResultCap,
  blobs: Blobs,
): Promise<ToolResultMessage> {
  const blocks = message.content
  const lengths = blocks.map((block) => (block.type === 'text' ? block.text.length : 0))
  const shares = shareOut(lengths, cap.maxCharacters, cap.minBlockCharacters)
  if (shares.every((share, at) => share === lengths[at])) return message
  const references: BlobReference[] = []
  const capped: UserBlock[] = []
  for (const [at, block] of blocks.entries()) {
    const share = shares[at] ?? 0
    if (block.type !== 'text' || block.text.length <= share) {
      capped.push(block)
      continue
    }
    const blob = await blobs.put(block.text)
    references.push({ block: at, blob, characters: block.text.length })
    capped.push({ ...block, text: cutMiddle(block.text, share, (omitted) => noticeOf(omitted, blob)) })
  }
  const earlier = (message as CappedFields).clewBlobs ?? []
  return {
    ...message,
    content: capped,
    clewBlobs: [...earlier, ...references],
  } as ToolResultMessage
}

function noticeOf(omitted: number, blob: string): string {
  return `[… ${omitted} characters omitted to keep the transcript small; the full text is kept: read_result with id "${blob}" and an offset shows the rest …]`
}
