import type { Clock } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import { textOf, type Message } from '../core/message.ts'

export interface SearchDeps {
  readonly clock: Clock
  /** Conversations newest first, behind a cursor of the index; then those that are archived. */
  sessions(cursor: string | undefined): Promise<SearchPage>
  /** The messages of one conversation, oldest first; undefined when it cannot be read. */
  branch(sessionId: SessionId): Promise<readonly Entry[] | undefined>
  /** Lets everything else have its turn. */
  pause(): Promise<void>
}

export interface SearchPage {
  readonly rows: readonly SearchRow[]
  readonly next: string | undefined
}

export interface SearchRow {
  readonly key: SessionKey
  readonly sessionId: SessionId
}

export interface SearchQuery {
  readonly text: string
  readonly limit: number
  readonly cursor?: string
}

/** One call looks for at most this long and then says where to go on. */
const MAX_MS = 1_000
const CONTEXT_CHARS = 80
const MAX_MARKS = 5

/**
 * Places in all transcripts, newest conversation first. A scan, because a transcript is a plain file that other programs
 * may change: an index would have to be kept true to files we do not own. It stops after a second and goes on by cursor.
 */
export async function searchTranscripts({ text, limit, cursor }: SearchQuery, deps: SearchDeps): Promise<JsonObject> {
  const wanted = text.toLowerCase()
  if (wanted.trim() === '') throw new GatewayError('FIELD_INVALID', 'q must hold what to look for', { field: 'q' })
  const until = deps.clock.monotonic() + MAX_MS
  const hits: JsonObject[] = []
  let place: string | undefined = cursor
  for (;;) {
    const { rows, next } = await deps.sessions(place)
    for (const row of rows) hits.push(...(await hitsIn(row, wanted, deps)))
    place = next
    if (place === undefined) return { hits }
    if (hits.length >= limit || deps.clock.monotonic() >= until) return { hits, nextCursor: place }
    await deps.pause()
  }
}

async function hitsIn({ key, sessionId }: SearchRow, wanted: string, deps: SearchDeps): Promise<JsonObject[]> {
  const branch = await deps.branch(sessionId)
  const hits: JsonObject[] = []
  for (const entry of branch ?? []) {
    if (entry.type !== 'message') continue
    const hit = hitIn(entry, wanted)
    if (hit !== undefined) hits.push({ key, ...hit })
  }
  return hits.toReversed()
}

function hitIn(entry: MessageEntry, wanted: string): JsonObject | undefined {
  const text = searchableText(entry.message)
  const folded = text.toLowerCase()
  const at = folded.indexOf(wanted)
  if (at === -1) return undefined
  // Folding may change a text's length (İ becomes two characters): then places are not comparable.
  const comparable = folded.length === text.length
  const from = comparable ? Math.max(0, at - CONTEXT_CHARS) : 0
  const snippet = text.slice(from, (comparable ? at : 0) + wanted.length + CONTEXT_CHARS * 2)
  return {
    entry: entry.id,
    at: entry.timestamp,
    role: entry.message.role,
    snippet,
    marks: comparable ? marksIn(snippet.toLowerCase(), wanted) : [],
  }
}

function marksIn(folded: string, wanted: string): number[][] {
  const marks: number[][] = []
  for (
    let at = folded.indexOf(wanted);
    at !== -1 && marks.length < MAX_MARKS;
    at = folded.indexOf(wanted, at + wanted.length)
  ) {
    marks.push([at, at + wanted.length])
  }
  return marks
}

function searchableText(message: Message): string {
  switch (message.role) {
    case 'bashExecution':
      return `${message.command}\n${message.output}`
    case 'compactionSummary':
    case 'branchSummary':
      return message.summary
    case 'assistant':
      return message.content
        .flatMap((block) => {
          if (block.type === 'text') return [block.text]
          return block.type === 'toolCall' ? [JSON.stringify(block.arguments)] : []
        })
        .join('\n')
    case 'user':
    case 'toolResult':
    case 'custom':
    case 'system':
      return textOf(message.content)
  }
}
