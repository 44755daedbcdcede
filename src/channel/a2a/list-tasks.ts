import type { KnownRun } from '../channel.ts'
import { contextOf, type TaskView } from './task.ts'

export interface TaskQuery {
  /** A context as its client wrote it, or a session. */
  readonly contextId?: string
  readonly state?: string
  /** Unix ms; only tasks that changed then or later. */
  readonly since?: number
  readonly pageSize: number
  /** From the page before. */
  readonly pageToken?: string
}

export interface TaskPage {
  readonly tasks: readonly TaskView[]
  readonly nextPageToken: string
  readonly totalSize: number
}

interface Row {
  readonly known: KnownRun
  readonly view: TaskView
  readonly at: number
}

/** The latest change first; a page goes on where the one before ended, whatever has changed meanwhile. */
export function listTasks(
  all: readonly KnownRun[],
  toView: (known: KnownRun) => TaskView,
  { contextId, state, since, pageSize, pageToken }: TaskQuery,
): TaskPage {
  const rows = all
    .filter(({ message }) => contextId === undefined || isOfContext(message, contextId))
    .map((known): Row => rowOf(known, toView(known)))
    .filter((row) => since === undefined || row.at >= since)
    .filter((row) => state === undefined || row.view.status.state === state)
    .toSorted(byTime)
  const after = pageToken === undefined ? undefined : decodeToken(pageToken)
  const rest = after === undefined ? rows : rows.filter((row) => byTime(row, after) > 0)
  const page = rest.slice(0, pageSize)
  const last = page.at(-1)
  return {
    tasks: page.map(({ view }) => view),
    nextPageToken: last === undefined || rest.length === page.length ? '' : encodeToken(last),
    totalSize: rows.length,
  }
}

function rowOf(known: KnownRun, view: TaskView): Row {
  return { known, view, at: Date.parse(view.status.timestamp) }
}

/** True for what a page token may be. */
export function isPageToken(token: string): boolean {
  return /^\d{1,15}-[\w-]{1,100}$/u.test(token)
}

function isOfContext(message: KnownRun['message'], contextId: string): boolean {
  return contextOf(message) === contextId || message.key === contextId.trim().toLowerCase() || message.key === contextId
}

interface Position {
  readonly at: number
  readonly run: string
}

function byTime(a: Row | Position, b: Row | Position): number {
  return b.at - a.at || (runOf(a) < runOf(b) ? -1 : runOf(a) > runOf(b) ? 1 : 0)
}

function runOf(row: Row | Position): string {
  return 'run' in row ? row.run : row.known.message.run
}

function encodeToken(row: Row): string {
  return `${row.at}-${row.known.message.run}`
}

function decodeToken(token: string): Position {
  const dash = token.indexOf('-')
  return { at: Number(token.slice(0, dash)), run: token.slice(dash + 1) }
}
