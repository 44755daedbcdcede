import { isRecord } from '../base/json.ts'
import { digestOfText, type SentMessage } from '../channel/openai/sent-message.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { textOf, toolCallsOf, type AssistantMessage, type ToolResultMessage } from '../core/message.ts'

/** A message of a transcript with those that were ever said behind it. */
export interface TreeNode {
  readonly entry: MessageEntry | undefined
  readonly children: TreeNode[]
  /** The last entry that belongs to it: its own, or a record behind it. */
  tip: EntryId | undefined
}

/** How far a list of messages is in the tree. */
export interface TreeMatch {
  readonly matched: number
  readonly node: TreeNode
}

/** Places that a list may have come to at the same time; regenerated answers with the same words make several. */
const MAX_PLACES = 64

/** All messages of a transcript, on every branch; the root holds none. */
export async function readTree(entries: AsyncIterable<Entry>): Promise<TreeNode> {
  const root: TreeNode = { entry: undefined, children: [], tip: undefined }
  /** The message that an entry belongs to, or stands behind. */
  const owners = new Map<EntryId, TreeNode>()
  for await (const entry of entries) {
    const owner = (entry.parentId === null ? undefined : owners.get(entry.parentId)) ?? root
    if (entry.type === 'message') {
      const node: TreeNode = { entry, children: [], tip: entry.id }
      owner.children.push(node)
      owners.set(entry.id, node)
    } else {
      owner.tip = entry.id
      owners.set(entry.id, owner)
    }
  }
  return root
}

/** The longest beginning of the list that the tree holds below a node; the newest place, where there are several. */
export function longestMatch(from: TreeNode, messages: readonly SentMessage[]): TreeMatch {
  let places: readonly TreeNode[] = [from]
  for (const [index, message] of messages.entries()) {
    const next = [...new Set(places.flatMap((place) => followers(place, message)))].slice(-MAX_PLACES)
    if (next.length === 0) return { matched: index, node: places.at(-1) ?? from }
    places = next
  }
  return { matched: messages.length, node: places.at(-1) ?? from }
}

/** Every message below a node, in the order they were stored on each branch. */
export function* nodesBelow(from: TreeNode): Iterable<TreeNode> {
  const waiting = [from]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    yield node
    waiting.push(...node.children.toReversed())
  }
}

function followers(place: TreeNode, message: SentMessage): readonly TreeNode[] {
  switch (message.role) {
    case 'user':
      return behindResults(place).flatMap((node) => node.children.filter((child) => isSameQuestion(child, message)))
    case 'tool':
      return behindResults(place).filter((node) => node !== place && isSameResult(node, message))
    case 'assistant':
      return answersBehind(place, message)
  }
}

/** The node, and the results that follow it: those of our own tools, and those written for calls left open. */
export function behindResults(from: TreeNode): readonly TreeNode[] {
  const found = [from]
  for (const node of found) found.push(...node.children.filter(({ entry }) => entry?.message.role === 'toolResult'))
  return found
}

function isSameQuestion({ entry }: TreeNode, { digest }: Extract<SentMessage, { role: 'user' }>): boolean {
  if (entry?.message.role !== 'user') return false
  return (entry.message.sent ?? digestOfText(textOf(entry.message.content))) === digest
}

function isSameResult({ entry }: TreeNode, sent: Extract<SentMessage, { role: 'tool' }>): boolean {
  if (entry?.message.role !== 'toolResult' || entry.message.toolCallId !== sent.callId) return false
  return digestOfResult(entry.message) === sent.digest
}

function digestOfResult({ details, content }: ToolResultMessage): string {
  if (isRecord(details) && typeof details['sent'] === 'string') return details['sent']
  return digestOfText(textOf(content))
}

type SentAnswer = Extract<SentMessage, { role: 'assistant' }>

/**
 * Rounds of our own tools are passed over: a client was shown the last answer, or, while it streamed, what was said in all
 * of them.
 */
function answersBehind(place: TreeNode, sent: SentAnswer): readonly TreeNode[] {
  const found: TreeNode[] = []
  const waiting = behindResults(place).map((node) => ({ node, said: [] as readonly string[] }))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const child of next.node.children) {
      const message = child.entry?.message
      if (message?.role !== 'assistant') continue
      const said = [...next.said, textOf(message.content)].filter((text) => text.trim() !== '')
      if (isSameAnswer(message, said, sent)) found.push(child)
      else if (toolCallsOf(message).length > 0) waiting.push(...behindResults(child).map((node) => ({ node, said })))
    }
  }
  return found.toReversed()
}

function isSameAnswer(message: AssistantMessage, said: readonly string[], { text, calls }: SentAnswer): boolean {
  const names = new Map(toolCallsOf(message).map((call) => [call.id, call.name]))
  if (calls.length === 0 ? names.size > 0 : !calls.every(({ id, name }) => names.get(id) === name)) return false
  const shown = text.trim()
  // Some clients keep no words beside calls.
  if (shown === '' && calls.length > 0) return true
  return shown === textOf(message.content).trim() || shown === said.join('\n\n').trim()
}
