import { textOf, type UserBlock } from '../core/message.ts'
import { userBlocksOf } from './blocks.ts'
import { change, type Change, type Item, type StepResult } from './item.ts'
import type { Reason } from './reasons.ts'
import { PLACEHOLDERS, QUEUED_MARKER } from './texts.ts'

/**
 * Messages without an answer go in front of the next one, marked, with their images: the original dropped them, which its
 * users called amnesia. One that the next message repeats (a person sent it again) is in there already. Summaries and
 * context join the user message they stand next to as they are, for every provider: they were not written as a turn.
 */
export function mergeQueuedMessages(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const merged: Item[] = []
  for (let at = 0; at < items.length;) {
    let end = at + 1
    if (items[at]?.message.role === 'user') while (items[end]?.message.role === 'user') end++
    merged.push(...mergeRun(items.slice(at, end), changes))
    at = end
  }
  return changes.length === 0 ? { items, changes } : { items: merged, changes }
}

/** Neighbours of the user role as one message, with the fields of the last. */
function mergeRun(run: readonly Item[], changes: Change[]): readonly Item[] {
  const last = run.at(-1)
  if (run.length < 2 || last?.message.role !== 'user') return run
  const latest = run.findLastIndex((item) => item.kind === 'user')
  const said = latest < 0 ? [] : blocksOf(run[latest])
  const content = run.flatMap((item, at): readonly UserBlock[] => {
    const own = blocksOf(item)
    const queued = item.kind === 'user' && at < latest
    const repeated = queued && isRepeated(own, said)
    if (item !== last) changes.push(change('queued-messages', 'merged', reasonFor(queued, repeated), item))
    if (repeated) return []
    return queued ? marked(own) : own
  })
  const kind = latest < 0 ? last.kind : 'user'
  return [{ kind, sources: run.flatMap((item) => item.sources), message: { ...last.message, content } }]
}

function reasonFor(queued: boolean, repeated: boolean): Reason {
  if (!queued) return 'context of the message next to it'
  return repeated ? 'repeated by the next message' : 'not answered yet'
}

const blocksOf = (item: Item | undefined): readonly UserBlock[] =>
  item?.message.role === 'user' ? userBlocksOf(item.message) : []

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
