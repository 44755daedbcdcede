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
  /** Entries of one conversation that may hold the text, the newest first; a piece of it at a time, read from disk. */
  find(sessionId: SessionId, wanted: string, before: number | undefined): Promise<FoundEntries>
}

export interface FoundEntries {
  readonly found: readonly { readonly entry: Entry; readonly offset: number }[]
  /** Where the next piece ends; 0 when the conversation is through. */
  readonly rest: number
}

export interface SearchPage {
  readonly rows: readonly SearchRow[]
  readonly next: string | undefined
  /** Of all pages together, as far as the index counts them. */
  readonly total: number
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

/** One call looks for at most this long and then says how far it is. */
const MAX_MS = 800
const CONTEXT_CHARS = 80
const MAX_MARKS = 5

/** Where a search goes on. */
interface Place {
  /** Conversations that are through. */
  readonly searched: number
  /** The page of the index, and the conversation and place in it. */
  readonly page: string | undefined
  readonly sessionId?: string
  readonly before?: number
}

/**
 * Places in all transcripts, newest conversation first, its newest message first (decision 0082: a scan, not an index).
 * A call ends after a second at the latest and says how far it is and where to go on, also in the middle of a file.
 */
export async function searchTranscripts({ text, limit, cursor }: SearchQuery, deps: SearchDeps): Promise<JsonObject> {
  const wanted = text.toLowerCase()
  if (wanted.trim() === '') throw new GatewayError('FIELD_INVALID', 'q must hold what to look for', { field: 'q' })
  const until = deps.clock.monotonic() + MAX_MS
  const hits: JsonObject[] = []
  let place = decodePlace(cursor)
  let total: number
  const answer = (next?: Place): JsonObject => ({
    hits,
    searched: { conversations: place.searched, of: Math.max(total, place.searched) },
    ...(next === undefined ? {} : { nextCursor: encodePlace(next) }),
  })
  for (;;) {
    const page = await deps.sessions(place.page)
    total = page.total
    for (const row of page.rows.slice(resumeAt(page.rows, place))) {
      for (let before = row.sessionId === place.sessionId ? place.before : undefined; before !== 0;) {
        const { found, rest } = await deps.find(row.sessionId, wanted, before)
        before = rest
        for (const { entry, offset } of found) {
          const hit = entry.type === 'message' ? hitIn(entry, wanted) : undefined
          if (hit === undefined) continue
          hits.push({ key: row.key, ...hit })
          if (hits.length >= limit) return answer({ ...place, sessionId: row.sessionId, before: offset })
        }
        if (rest > 0 && deps.clock.monotonic() >= until)
          return answer({ ...place, sessionId: row.sessionId, before: rest })
      }
      place = { searched: place.searched + 1, page: place.page, sessionId: row.sessionId, before: 0 }
      if (deps.clock.monotonic() >= until && row !== page.rows.at(-1)) return answer(place)
    }
    place = { searched: place.searched, page: page.next }
    if (page.next === undefined) return answer()
    if (deps.clock.monotonic() >= until) return answer(place)
  }
}

/** A conversation that moved to the front meanwhile is not in its page any more: the page is searched from its start. */
function resumeAt(rows: readonly SearchRow[], { sessionId, before }: Place): number {
  const at = rows.findIndex((row) => row.sessionId === sessionId)
  return at === -1 ? 0 : before === 0 ? at + 1 : at
}

function encodePlace({ searched, page = '', sessionId = '', before }: Place): string {
  return [searched, before ?? '', sessionId, page].join('.')
}

function decodePlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { searched: 0, page: undefined }
  const [, searched, before = '', sessionId = '', page = ''] =
    /^(\d{1,12})\.(\d{0,15})\.([\w-]{0,100})\.(.{0,2000})$/su.exec(cursor) ?? []
  if (searched === undefined)
    throw new GatewayError('FIELD_INVALID', 'this is no cursor of a search', { field: 'cursor' })
  return {
    searched: Number(searched),
    page: page === '' ? undefined : page,
    ...(sessionId === '' ? {} : { sessionId }),
    ...(before === '' ? {} : { before: Number(before) }),
  }
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
