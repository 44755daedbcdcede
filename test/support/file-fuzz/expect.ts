import { isRecord, parseJson } from '../../../src/base/json.ts'
import { REQUEST_ENTRY_TYPE } from '../../../src/history/request-record.ts'
import { WORD, type Line } from './lines.ts'

/** What a damaged file still says, read without any code of the store's. */
export interface Expected {
  /** Words of people and tools by the entry that holds them; none of entries that other lines hide, replace or cut. */
  readonly words: ReadonlyMap<string, readonly string[]>
  /** The last entry and its ancestors, as far as their ids are beyond doubt and no summary stands for them. */
  readonly path: readonly string[]
}

export function expectedOf(file: Buffer): Expected {
  const lines = file
    .toString('utf8')
    .split('\n')
    .map((text) => parseJson(text))
    .filter(isRecord)
    .filter(({ type }) => type !== 'session')
  const byId = uniqueIds(lines)
  const named = idsNamed(lines)
  const words = new Map<string, readonly string[]>()
  for (const [id, line] of byId) {
    const said = named.has(id) ? [] : wordsOf(line)
    if (said.length > 0) words.set(id, said)
  }
  return { words, path: pathOf(lines, byId) }
}

function uniqueIds(lines: readonly Line[]): ReadonlyMap<string, Line> {
  const byId = new Map<string, Line>()
  const twice = new Set<string>()
  for (const line of lines) {
    const { id } = line
    if (typeof id !== 'string' || id === '') continue
    if (byId.has(id)) twice.add(id)
    byId.set(id, line)
  }
  for (const id of twice) byId.delete(id)
  return byId
}

/** Ids that records of cleanups, edits and decisions speak of. Records of requests name entries too, and change none. */
function idsNamed(lines: readonly Line[]): ReadonlySet<string> {
  const named = new Set<string>()
  for (const { id: _id, parentId: _parentId, message: _message, ...rest } of lines) {
    if (rest['customType'] !== REQUEST_ENTRY_TYPE) collectStrings(rest, named)
  }
  return named
}

function collectStrings(value: unknown, into: Set<string>): void {
  const waiting = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') into.add(next)
    else if (typeof next === 'object' && next !== null) waiting.push(...Object.values(next))
  }
}

const OTHER_ROLES: readonly unknown[] = [
  'assistant',
  'bashExecution',
  'system',
  'compactionSummary',
  'branchSummary',
  'hookMessage',
]

function wordsOf(line: Line): readonly string[] {
  const { type, message } = line
  if (type === 'custom_message') return wordsIn(line['content'])
  const isMessage =
    type === 'message' || (typeof type !== 'string' && isRecord(message) && typeof message['role'] === 'string')
  if (!isMessage) return []
  if (!isRecord(message)) return wordsIn(message)
  const { role, details } = message
  if (OTHER_ROLES.includes(role)) return []
  const isMadeUp = isRecord(details) && details['reason'] !== undefined
  return isMadeUp ? [] : wordsIn(message)
}

function wordsIn(value: unknown): readonly string[] {
  const strings = new Set<string>()
  collectStrings(value, strings)
  return [...strings].flatMap((text) => text.match(WORD) ?? [])
}

function pathOf(lines: readonly Line[], byId: ReadonlyMap<string, Line>): readonly string[] {
  const path: string[] = []
  const last = lines.at(-1)
  // A pointer says that the leaf is elsewhere.
  if (last === undefined || last['customType'] === 'clew.leaf') return path
  if (isInCircle(last['id'], lines)) return path
  for (let id = last['id']; typeof id === 'string' && byId.has(id); id = byId.get(id)?.['parentId']) path.push(id)
  const summary = path.findIndex((id) => isCompaction(byId.get(id)))
  return summary < 0 ? path : path.slice(0, summary + 1)
}

/** A circle of parents, with whichever of the lines that share an id, is cut somewhere; where, is the store's affair. */
function isInCircle(from: unknown, lines: readonly Line[]): boolean {
  const parents = new Map<unknown, Set<unknown>>()
  for (const { id, parentId } of lines) parents.set(id, (parents.get(id) ?? new Set()).add(parentId))
  const above = reachable(from, parents)
  return [...above].some((id) => [...(parents.get(id) ?? [])].some((parent) => reachable(parent, parents).has(id)))
}

function reachable(from: unknown, parents: ReadonlyMap<unknown, ReadonlySet<unknown>>): ReadonlySet<unknown> {
  const seen = new Set<unknown>()
  const waiting = [from]
  while (waiting.length > 0) {
    const id = waiting.pop()
    if (seen.has(id) || !parents.has(id)) continue
    seen.add(id)
    waiting.push(...(parents.get(id) ?? []))
  }
  return seen
}

function isCompaction(line: Line | undefined): boolean {
  return line?.['type'] === 'compaction' && typeof line['summary'] === 'string'
}
