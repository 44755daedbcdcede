import type { AssistantMessage, LiveTurn, Message, Outgoing, Step, UserMessage } from './types.ts'

/** One line of the thread: what was asked, what was done, what was answered. */
export type ThreadRow = { readonly key: string } & (
  | { readonly kind: 'instruction'; readonly message: UserMessage }
  | { readonly kind: 'rounds'; readonly step: Step; readonly work: readonly Message[]; readonly isLive: boolean }
  | { readonly kind: 'answer'; readonly message: AssistantMessage }
  | { readonly kind: 'live'; readonly turn: LiveTurn }
  | { readonly kind: 'outgoing'; readonly message: Outgoing }
)

/** Rows of steps that do not change any more are made once. */
const rowsOfSteps = new WeakMap<Step, readonly ThreadRow[]>()

export function threadRows(
  steps: readonly Step[],
  live: readonly LiveTurn[],
  waiting: readonly Outgoing[],
): readonly ThreadRow[] {
  const last = steps.at(-1)
  const current = live.find((turn) => turn.run === last?.id)
  const rows = steps.flatMap((step) =>
    step === last && current !== undefined ? rowsOf(step, current) : finished(step),
  )
  rows.push(...waiting.map((message) => ({ key: `outgoing ${message.id}`, kind: 'outgoing' as const, message })))
  const known = live.length === 0 ? undefined : new Set(steps.map(({ id }) => id))
  for (const turn of live) if (known?.has(turn.run) === false) rows.push(liveRow(turn))
  return rows
}

function finished(step: Step): readonly ThreadRow[] {
  const rows = rowsOfSteps.get(step) ?? rowsOf(step, undefined)
  rowsOfSteps.set(step, rows)
  return rows
}

function rowsOf(step: Step, live: LiveTurn | undefined): readonly ThreadRow[] {
  const rows: ThreadRow[] = []
  const rest: Message[] = []
  for (const message of step.messages) {
    if (message.role === 'user') rows.push({ key: `instruction ${message.id}`, kind: 'instruction', message })
    else rest.push(message)
  }
  const final = finalAnswer(rest, live !== undefined)
  const work = rest.filter((message) => message !== final)
  if (work.length > 0) rows.push({ key: `rounds ${step.id}`, kind: 'rounds', step, work, isLive: live !== undefined })
  if (final !== undefined) rows.push({ key: endKey(step.id), kind: 'answer', message: final })
  if (live === undefined) return rows
  // What was shown of an answer that has ended stays until its stored form is there.
  if (final === undefined && (live.ended === undefined || live.text !== '')) rows.push(liveRow(live))
  else if (final !== undefined && live.ended === undefined) rows.push({ ...liveRow(live), key: `live ${live.run}` })
  return rows
}

const endKey = (step: string): string => `end ${step}`

/** The stored answer has the same key: it takes the place of the one that was being written. */
function liveRow(turn: LiveTurn): ThreadRow {
  return { key: endKey(turn.run), kind: 'live', turn }
}

/** The answer that ends a step; while it runs, what is stored so far is work. */
export function finalAnswer(messages: readonly Message[], isLive: boolean): AssistantMessage | undefined {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return undefined
  const hasCalls = last.blocks.some((block) => block.type === 'call')
  return hasCalls && (isLive || last.stopReason === 'toolUse') ? undefined : last
}

/** The row in which an entry is shown. */
export function rowWithEntry(rows: readonly ThreadRow[], entry: string): ThreadRow | undefined {
  return rows.find((row) => {
    if (row.kind === 'instruction' || row.kind === 'answer') return row.message.id === entry
    return row.kind === 'rounds' && row.work.some(({ id }) => id === entry)
  })
}

const LINE_PX = 21
const CHARS_IN_LINE = 76

/** About how high a row will be; it only has to keep the scroll bar honest until the row is measured. */
export function estimateHeight(row: ThreadRow): number {
  switch (row.kind) {
    case 'rounds':
      return 46
    case 'instruction':
      return 90 + (linesOf(row.message.text) - 1) * LINE_PX
    case 'outgoing':
      return 90 + (linesOf(row.message.text) - 1) * LINE_PX
    case 'live':
      return 64 + linesOf(row.turn.text) * LINE_PX
    case 'answer': {
      const texts = row.message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
      return 42 + texts.reduce((sum, text) => sum + linesOf(text) * LINE_PX, 0)
    }
  }
}

function linesOf(text: string): number {
  let lines = 0
  for (const line of text.split('\n')) lines += Math.max(1, Math.ceil(line.length / CHARS_IN_LINE))
  return lines
}
