import { textOf, type UserBlock } from '../core/message.ts'
import { userBlocksOf } from './blocks.ts'
import { change, type Change, type Item, type StepResult } from './item.ts'
import { PLACEHOLDERS, QUEUED_MARKER } from './texts.ts'

/**
 * Messages nobody answered go in front of the next one, marked, with their images: the original dropped them, which its
 * users called amnesia. One that the next message repeats (a person sent it again) is in there already.
 */
export function mergeQueuedMessages(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const merged: Item[] = []
  for (const item of items) {
    const previous = merged.at(-1)
    if (previous?.kind === 'user' && item.kind === 'user')
      merged[merged.length - 1] = mergeInto(previous, item, changes)
    else merged.push(item)
  }
  return changes.length === 0 ? { items, changes } : { items: merged, changes }
}

function mergeInto(queued: Item, next: Item, changes: Change[]): Item {
  if (queued.message.role !== 'user' || next.message.role !== 'user') return next
  const earlier = userBlocksOf(queued.message)
  const later = userBlocksOf(next.message)
  const said = isRepeated(earlier, later)
  changes.push(change('queued-messages', 'merged', said ? 'repeated by the next message' : 'not answered yet', queued))
  const content = said ? later : [...marked(earlier), ...later]
  return { kind: 'user', sources: [...queued.sources, ...next.sources], message: { ...next.message, content } }
}

function isRepeated(earlier: readonly UserBlock[], later: readonly UserBlock[]): boolean {
  if (earlier.some((block) => block.type !== 'text')) return false
  const text = textOf(earlier).trim()
  return text === PLACEHOLDERS.blankUser || `\n${textOf(later).trim()}\n`.includes(`\n${text}\n`)
}

function marked(blocks: readonly UserBlock[]): readonly UserBlock[] {
  const at = blocks.findIndex((block) => block.type === 'text')
  const block = blocks[at]
  if (block?.type !== 'text') return [{ type: 'text', text: QUEUED_MARKER }, ...blocks]
  if (block.text.startsWith(QUEUED_MARKER)) return blocks
  return blocks.with(at, { ...block, text: `${QUEUED_MARKER}\n${block.text}` })
}
