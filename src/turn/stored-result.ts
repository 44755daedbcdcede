import { isRecord } from '../base/json.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import type { ToolResultMessage } from '../core/message.ts'
import type { BlobReference } from '../transcript/cap-tool-result.ts'
import type { Transcript } from '../transcript/store.ts'

export interface StoredResult {
  readonly text: string
  /** Absent when a blob was named by its own id. */
  readonly toolName?: string
}

/**
 * A tool result as the tool gave it, whatever the model saw of it: named by a blob's id, by the id of its call, or by
 * the id of its entry. Of several calls with one id the latest counts.
 */
export async function findStoredResult(
  transcript: Pick<Transcript, 'blob' | 'branch'>,
  id: string,
): Promise<StoredResult | undefined> {
  const blob = await transcript.blob(id)
  if (blob !== undefined) return { text: blob }
  const entry = (await transcript.branch()).findLast((each): each is ResultEntry => isResult(each) && isNamed(each, id))
  if (entry === undefined) return undefined
  return { text: await wholeText(entry.message, transcript), toolName: entry.message.toolName }
}

type ResultEntry = MessageEntry & { readonly message: ToolResultMessage }

function isResult(entry: Entry): entry is ResultEntry {
  return entry.type === 'message' && entry.message.role === 'toolResult'
}

/** Providers are sent ids without their special characters, and models name a call by what they were sent. */
function isNamed({ id: entryId, message: { toolCallId } }: ResultEntry, id: string): boolean {
  return entryId === id || toolCallId === id || (id !== '' && plain(toolCallId) === plain(id))
}

const plain = (id: string): string => id.replaceAll(/[^A-Za-z0-9]/gu, '').slice(0, 40)

async function wholeText(message: ToolResultMessage, transcript: Pick<Transcript, 'blob'>): Promise<string> {
  const references = referencesOf(message)
  const texts = await Promise.all(
    message.content.map(async (block, at) => {
      if (block.type !== 'text') return `[${block.type}]`
      // A block that was cut twice has two references; the first is the text before any cut.
      const reference = references.find((each) => each.block === at)
      return (reference && (await transcript.blob(reference.blob))) ?? block.text
    }),
  )
  return texts.join('\n')
}

function referencesOf(message: ToolResultMessage): readonly BlobReference[] {
  const { clewBlobs } = message as { readonly clewBlobs?: unknown }
  return Array.isArray(clewBlobs) ? clewBlobs.filter(isReference) : []
}

function isReference(value: unknown): value is BlobReference {
  return isRecord(value) && typeof value['block'] === 'number' && typeof value['blob'] === 'string'
}
