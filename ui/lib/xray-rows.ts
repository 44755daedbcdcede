import type { NotSent, RequestDetail, SentMessage } from './types.ts'

export type Kind = 'system' | 'tools' | 'user' | 'model' | 'result' | 'summary'

/** One line of the X-ray: a message that was sent, or a group that was left out at this place. */
export interface TableRow {
  readonly id: string
  readonly kind: Kind | 'ghost'
  readonly state: 'same' | 'new' | 'changed'
  readonly text: string
  readonly tokens: number
  readonly entries: readonly string[]
  readonly changes: SentMessage['changes']
  readonly tool?: string
  readonly by?: string
  readonly reason?: string
  readonly cleanup?: string
  readonly hidden: readonly NotSent[]
}

export function kindOf(row: TableRow): Kind {
  return row.kind === 'ghost' ? 'summary' : row.kind
}

/** One line of the table as it stands in the page. */
export type XrayLine = { readonly key: string } & (
  | { readonly kind: 'sent' | 'ghost'; readonly row: TableRow }
  | { readonly kind: 'left out'; readonly one: NotSent }
  | { readonly kind: 'cache' }
)

/** The rows with what was unfolded of them, and the line up to which the prompt cache may reach. */
export function linesOf(rows: readonly TableRow[], n: number, unfolded: ReadonlySet<string>): readonly XrayLine[] {
  // What was left out stands in no request: only what was sent ends the cache.
  const cacheEnd = rows.findIndex((row) => row.kind !== 'ghost' && row.state !== 'same') - 1
  const showsCache = n > 1 && cacheEnd >= 0
  return rows.flatMap((row, at) => [
    { key: row.id, kind: row.kind === 'ghost' ? 'ghost' : 'sent', row } as const,
    ...(unfolded.has(row.id) ? row.hidden.map((one) => ({ key: hiddenId(one), kind: 'left out', one }) as const) : []),
    ...(showsCache && at === cacheEnd ? [{ key: 'cache', kind: 'cache' } as const] : []),
  ])
}

export function hiddenId({ entry }: NotSent): string {
  return `hidden ${entry}`
}

export function kindOfRole(role: string): Kind {
  if (role === 'toolResult') return 'result'
  return role === 'assistant' ? 'model' : role === 'user' ? 'user' : 'summary'
}

export function kindOfMessage({ role, kind }: Pick<SentMessage, 'role' | 'kind'>): Kind {
  if (kind === 'summary' || kind === 'context' || kind === 'filler') return 'summary'
  return kindOfRole(role)
}

/** Tools and system prompt, then every message in order, with what was left out where it would have stood. */
export function rowsOf(detail: RequestDetail): readonly TableRow[] {
  const fixed = fixedTokens(detail)
  const rows: TableRow[] = [
    plain('tools', 'tools', detail.toolsState, detail.tools.map((tool) => tool.name).join(', '), fixed.tools),
    plain('system', 'system', detail.systemState, detail.system, fixed.system),
  ]
  const groups = groupsOf(detail.notSent)
  const after = placesOf(detail, groups)
  for (const [at, message] of detail.messages.entries()) {
    rows.push(...(after.get(at) ?? []).map(ghost), sent(message, at))
  }
  rows.push(...(after.get(detail.messages.length) ?? []).map(ghost))
  return rows
}

function plain(id: string, kind: Kind, state: TableRow['state'], text: string, tokens: number): TableRow {
  return { id, kind, state, text, tokens, entries: [], changes: [], hidden: [] }
}

function sent(message: SentMessage, at: number): TableRow {
  const { state, text, tokens, changes, tool } = message
  const entries = [...message.entries, ...(message.continues ?? [])]
  return {
    id: `message ${at}`,
    kind: kindOfMessage(message),
    state,
    text,
    tokens,
    entries,
    changes,
    hidden: [],
    ...(tool === undefined ? {} : { tool }),
  }
}

interface Group {
  readonly by: string
  readonly reason: string
  readonly cleanup?: string
  readonly hidden: NotSent[]
}

/** What one cleanup left out stands together, and what one step of the pipeline left out at one place. */
function groupsOf(notSent: readonly NotSent[]): readonly Group[] {
  const groups = new Map<string, Group>()
  for (const one of notSent) {
    const { by, reason, cleanup } = one
    const name = cleanup ?? JSON.stringify([by, reason, one.before])
    const known = groups.get(name)
    if (known === undefined)
      groups.set(name, { by, reason, hidden: [one], ...(cleanup === undefined ? {} : { cleanup }) })
    else known.hidden.push(one)
  }
  return [...groups.values()]
}

/**
 * Where each group stood: before the first sent message that comes after it. The gateway lists what was not sent in
 * transcript order together with `before`, the entry that follows; without one it stood at the end.
 */
function placesOf(detail: RequestDetail, groups: readonly Group[]): ReadonlyMap<number, readonly Group[]> {
  const placeOf = new Map(
    detail.messages.flatMap((message, at) => message.entries.map((entry) => [entry, at] as const)),
  )
  const places = new Map<number, Group[]>()
  for (const group of groups) {
    const next = group.hidden.map((one) => one.before).find((entry) => entry !== undefined && placeOf.has(entry))
    const at = next === undefined ? detail.messages.length : (placeOf.get(next) ?? detail.messages.length)
    places.set(at, [...(places.get(at) ?? []), group])
  }
  return places
}

function ghost({ by, reason, cleanup, hidden }: Group): TableRow {
  const tokens = hidden.reduce((sum, one) => sum + one.tokens, 0)
  return {
    id: `ghost ${cleanup ?? `${by} ${hidden[0]?.entry ?? ''}`}`,
    kind: 'ghost',
    state: 'same',
    text: '',
    tokens,
    entries: hidden.map((one) => one.entry),
    changes: [],
    by,
    reason,
    hidden,
    ...(cleanup === undefined ? {} : { cleanup }),
  }
}

function fixedTokens(detail: RequestDetail): { readonly system: number; readonly tools: number } {
  const system = detail.systemTokens ?? 0
  return { system, tools: detail.toolTokens ?? Math.max(0, detail.fixed - system) }
}

export function sumsOf(detail: RequestDetail): readonly { readonly kind: Kind; readonly tokens: number }[] {
  const fixed = fixedTokens(detail)
  const sums: Record<Kind, number> = {
    system: fixed.system,
    tools: fixed.tools,
    user: 0,
    model: 0,
    result: 0,
    summary: 0,
  }
  for (const message of detail.messages) sums[kindOfMessage(message)] += message.tokens
  return (Object.keys(sums) as Kind[]).map((kind) => ({ kind, tokens: sums[kind] }))
}
