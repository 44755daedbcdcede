import type { UserBlock, UserMessage } from '../core/message.ts'
import { userBlocksOf } from './blocks.ts'
import { change, editItems, type Change, type StepResult, type Item } from './item.ts'

const PREFIX = '[Inter-session message]'

/** The original's `annotateInterSessionUserMessages`: the model has to know that no person wrote this. */
export function annotateInterSessionUserMessages(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const annotated = editItems(items, (item) => {
    if (item.message.role !== 'user' || item.message.provenance?.kind !== 'inter_session') return item
    // Once the text says it, the field would only mark it again after a merge.
    const { provenance: _, ...message } = item.message
    const content = withPrefix(userBlocksOf(message), prefixOf(item.message))
    changes.push(change('annotate-inter-session', 'rewritten', 'another session wrote it', item))
    return { ...item, message: { ...message, content } }
  })
  return { items: annotated, changes }
}

function prefixOf({ provenance }: UserMessage): string {
  const facts = [
    ['sourceSession', provenance?.sourceSessionKey],
    ['sourceChannel', provenance?.sourceChannel],
    ['sourceTool', provenance?.sourceTool],
  ].flatMap(([name, value]) => (typeof value === 'string' && value.trim() !== '' ? [`${name}=${value.trim()}`] : []))
  return [PREFIX, ...facts].join(' ')
}

function withPrefix(blocks: readonly UserBlock[], prefix: string): readonly UserBlock[] {
  const at = blocks.findIndex((block) => block.type === 'text')
  const block = blocks[at]
  if (block?.type !== 'text') return [{ type: 'text', text: prefix }, ...blocks]
  if (block.text.startsWith(PREFIX)) return blocks
  return blocks.with(at, { ...block, text: `${prefix}\n${block.text}` })
}
