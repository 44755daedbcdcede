import { computed, signal } from '@preact/signals'
import { api, ApiError, query } from './api.ts'
import { feed } from './feed.ts'
import type { GatewayStatus, Me, ModelRow, SessionPage, SessionRow } from './types.ts'

const PAGE = 200

const rows = signal<ReadonlyMap<string, SessionRow>>(new Map())
const nextCursor = signal<string | undefined>(undefined)
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

export function rowOf(key: string): SessionRow | undefined {
  return rows.value.get(key)
}

export async function loadSessions(): Promise<void> {
  try {
    const page = await api.get<SessionPage>(`/api/sessions${query({ limit: PAGE, archived: filter.value.archived })}`)
    rows.value = new Map(page.sessions.map((row) => [row.key, row]))
    nextCursor.value = page.nextCursor
    sessionsState.value = 'ready'
  } catch (error) {
    if (rows.value.size === 0)
      sessionsState.value = error instanceof ApiError && error.code === 'OFFLINE' ? 'loading' : 'failed'
  }
}

let loadingMore = false

export async function loadMoreSessions(): Promise<void> {
  if (loadingMore || nextCursor.value === undefined) return
  loadingMore = true
  try {
    const page = await api.get<SessionPage>(
      `/api/sessions${query({ limit: PAGE, cursor: nextCursor.value, archived: filter.value.archived })}`,
    )
    rows.value = new Map([...rows.value, ...page.sessions.map((row) => [row.key, row] as const)])
    nextCursor.value = page.nextCursor
  } finally {
    loadingMore = false
  }
}

/** Asks the gateway for conversations the loaded pages do not hold. */
export async function findSessions(text: string): Promise<void> {
  if (text.trim() === '') return
  const page = await api.get<SessionPage>(
    `/api/sessions${query({ q: text.trim(), limit: PAGE, archived: filter.value.archived })}`,
  )
  rows.value = new Map([...rows.value, ...page.sessions.map((row) => [row.key, row] as const)])
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

export function startSessions(): void {
  feed.on('session', (row: SessionRow & { readonly deleted?: boolean }) => {
    const changed = new Map(rows.value)
    if (row.deleted === true) changed.delete(row.key)
    else changed.set(row.key, { ...changed.get(row.key), ...row })
    rows.value = changed
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
