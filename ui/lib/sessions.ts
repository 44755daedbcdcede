import { computed, signal } from '@preact/signals'
import { api, ApiError, query } from './api.ts'
import { feed } from './feed.ts'
import type { GatewayStatus, Me, ModelRow, SessionPage, SessionRow } from './types.ts'

const PAGE = 200

/** Changed rows of one moment become visible together. */
const APPLY_AFTER_MS = 50

const rows = signal<ReadonlyMap<string, SessionRow>>(new Map())
/** Of all conversations, loaded or not. */
export const total = signal(0)
export const sessionsState = signal<'loading' | 'ready' | 'failed'>('loading')
export const filter = signal<{
  readonly text: string
  readonly state: 'all' | 'running'
  readonly channel: string
  readonly archived: boolean
}>({
  text: '',
  state: 'all',
  channel: '',
  archived: false,
})

export const status = signal<GatewayStatus | undefined>(undefined)
export const models = signal<readonly ModelRow[]>([])
export const me = signal<Me | undefined>(undefined)

/** All known rows, newest first. */
export const sessions = computed(() => [...rows.value.values()].sort((a, b) => b.updatedAt - a.updatedAt))

export const shownSessions = computed(() => {
  const { text, state, channel, archived } = filter.value
  const wanted = text.trim().toLowerCase()
  return sessions.value.filter(
    (row) =>
      (row.archived === true) === archived &&
      (state === 'all' || row.state === 'running' || row.state === 'queued') &&
      (channel === '' || row.lastChannel === channel) &&
      (wanted === '' ||
        [row.key, row.title, row.preview].some((field) => field?.toLowerCase().includes(wanted) === true)),
  )
})

export const channelsSeen = computed(() =>
  [...new Set(sessions.value.flatMap((row) => (row.lastChannel === undefined ? [] : [row.lastChannel])))].sort(),
)
export const runningCount = computed(() => sessions.value.filter((row) => row.state === 'running').length)

/** The demo model alone is set: the first steps are offered. */
export function isDemoOnly(): boolean {
  return status.value?.model === 'demo' || status.value?.model === 'demo/demo'
}

export function rowOf(key: string): SessionRow | undefined {
  return rows.value.get(key)
}

/** Pages of one filter, in their order; a newer first page makes what is still on its way to these void. */
interface Pages {
  readonly asked: string
  next?: string | undefined
}

const PLAIN = JSON.stringify({ q: '', channel: '', archived: false, state: '' })
let pages: Pages = { asked: '' }
let loading: Promise<void> | undefined

const askedNow = (): string => {
  const { text, state, channel, archived } = filter.value
  return JSON.stringify({ q: text.trim(), channel, archived, state: state === 'all' ? '' : state })
}

/** Rows that changed while a page of the list was on its way: the page may be older than they are. */
type Newer = Map<string, ChangedRow>

const onTheirWay = new Set<Newer>()

async function fetchPage({ asked, next }: Pages): Promise<SessionPage & { readonly newer: Newer }> {
  const fields = JSON.parse(asked) as Parameters<typeof query>[0]
  const newer: Newer = new Map()
  onTheirWay.add(newer)
  try {
    return { ...(await api.get<SessionPage>(`/api/sessions${query({ limit: PAGE, cursor: next, ...fields })}`)), newer }
  } finally {
    onTheirWay.delete(newer)
  }
}

function merge(known: Iterable<readonly [string, SessionRow]>, page: SessionPage & { readonly newer: Newer }): void {
  const merged = new Map([...known, ...page.sessions.map((row) => [row.key, row] as const)])
  for (const [key, row] of page.newer) {
    if (row.deleted === true) merged.delete(key)
    else merged.set(key, row)
  }
  rows.value = merged
}

/** A fresh list forgets what may have changed or gone unnoticed. */
async function loadFirst(isFresh: boolean): Promise<void> {
  const mine: Pages = { asked: askedNow() }
  pages = mine
  try {
    const page = await fetchPage(mine)
    mine.next = page.nextCursor
    const isPlain = mine.asked === PLAIN
    merge(isFresh && isPlain && pages === mine ? [] : rows.value, page)
    if (isPlain && page.total !== undefined) total.value = page.total
  } catch (error) {
    if (pages === mine) pages = { asked: '' }
    throw error
  }
}

export async function loadSessions(): Promise<void> {
  try {
    await loadFirst(true)
    sessionsState.value = 'ready'
  } catch (error) {
    if (rows.value.size === 0)
      sessionsState.value = error instanceof ApiError && error.code === 'OFFLINE' ? 'loading' : 'failed'
  }
}

/** The list was read to its end. */
export function loadMoreSessions(): Promise<void> {
  if (pages.next === undefined) return Promise.resolve()
  loading ??= loadNext(pages).finally(() => (loading = undefined))
  return loading
}

async function loadNext(mine: Pages): Promise<void> {
  const page = await fetchPage(mine)
  if (pages !== mine) return
  mine.next = page.nextCursor
  merge(rows.value, page)
}

/** Asks the gateway for conversations of the present filter that the loaded pages do not hold. */
export async function findSessions(): Promise<void> {
  if (pages.asked !== askedNow()) await loadFirst(false)
}

const FOUND_AT_ONCE = 12

/** The latest conversations with these words, for a place that shows a few. */
export async function findByName(words: string, signal: AbortSignal): Promise<void> {
  const page = await api.get<SessionPage>(`/api/sessions${query({ limit: FOUND_AT_ONCE, q: words })}`, signal)
  for (const row of page.sessions) learnRow(row)
}

/** A conversation that was opened by its address may be in no page of the list. */
export function learnRow(row: SessionRow): void {
  if (!rows.value.has(row.key)) rows.value = new Map([...rows.value, [row.key, row]])
}

/** An archived conversation that was brought back stands under its own key again. */
export function forgetRow(key: string): void {
  rows.value = new Map([...rows.value].filter(([known]) => known !== key))
}

export async function loadStatus(): Promise<void> {
  status.value = await api.get<GatewayStatus>('/api/status')
}

export async function loadModels(): Promise<void> {
  models.value = (await api.get<{ models: readonly ModelRow[] }>('/api/models')).models
}

export async function loadMe(): Promise<void> {
  me.value = await api.get<Me>('/api/me')
}

export async function loadAll(): Promise<void> {
  await Promise.allSettled([loadMe(), loadStatus(), loadSessions(), loadModels()])
}

type ChangedRow = SessionRow & { readonly deleted?: boolean }

const changed = new Map<string, ChangedRow>()
let applying: ReturnType<typeof setTimeout> | undefined

function applyChanged(): void {
  applying = undefined
  const next = new Map(rows.value)
  for (const [key, row] of changed) {
    const isNew = !next.has(key)
    if (row.deleted === true) next.delete(key)
    // A row comes whole: what it lacks is gone.
    else next.set(key, row)
    if (isNew !== !next.has(key)) total.value += isNew ? 1 : -1
  }
  changed.clear()
  rows.value = next
}

export function startSessions(): void {
  feed.on('session', (row: ChangedRow) => {
    changed.set(row.key, row)
    for (const newer of onTheirWay) newer.set(row.key, row)
    applying ??= setTimeout(applyChanged, APPLY_AFTER_MS)
  })
  feed.on('status', (change: Partial<GatewayStatus>) => {
    if (status.value !== undefined) status.value = { ...status.value, ...change }
  })
  feed.on('link', () => void loadStatus())
  feed.on('reset', () => void loadAll())
  // After a lost connection rows and status may have changed without an event.
  let wasWaiting = false
  feed.state.subscribe((state) => {
    if (state === 'open' && wasWaiting) void loadAll()
    if (state !== 'connecting') wasWaiting = state === 'waiting'
  })
}
