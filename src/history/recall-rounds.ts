import { cutMiddle } from '../base/text.ts'
import type { Entry } from '../core/entry.ts'
import { activeCleanups, hiddenInAll } from './view-records.ts'
import { longTextNotice } from './texts.ts'

/**
 * The answer of the `recall_rounds` tool: hidden rounds as text, newest step first when none is named. Undefined when
 * nothing is hidden.
 */
export function recallRounds(
  entries: readonly Entry[],
  options: { readonly stepId?: string; readonly maxChars: number },
): string | undefined {
  const cleanups = activeCleanups(entries)
  const chosen = cleanups.filter(({ record }) => options.stepId === undefined || record.stepId === options.stepId)
  if (chosen.length === 0) return undefined
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const text = chosen
    .toReversed()
    .map(({ record }) => {
      const lines = record.hidden.flatMap((id) => describe(byId.get(id)))
      return [`Step ${record.stepId}`, ...lines].join('\n')
    })
    .join('\n\n')
  return cutMiddle(text, options.maxChars, longTextNotice)
}

/** Rounds as text, as the tool shows them. */
export function textOfEntries(entries: readonly Entry[], maxChars: number): string {
  return cutMiddle(entries.flatMap(describe).join('\n'), maxChars, longTextNotice)
}

export const hasHiddenRounds = (entries: readonly Entry[]): boolean => hiddenInAll(entries) !== undefined

/** Whether there is anything to read in it. */
export const isRecallable = (entry: Entry): boolean => describe(entry).length > 0

function describe(entry: Entry | undefined): readonly string[] {
  if (entry?.type !== 'message') return []
  const { message } = entry
  if (message.role === 'toolResult') {
    return [`result of ${message.toolName}${message.isError ? ' (failed)' : ''}: ${textsIn(message.content)}`]
  }
  if (message.role !== 'assistant') return []
  return message.content.flatMap((block) => {
    if (block.type === 'text') return [`answer: ${block.text}`]
    return block.type === 'toolCall' ? [`call of ${block.name}: ${JSON.stringify(block.arguments)}`] : []
  })
}

function textsIn(content: readonly { readonly type: string; readonly text?: string }[]): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : [`[${block.type}]`])).join('\n')
}
