import { computed, signal, type ReadonlySignal } from '@preact/signals'
import { api, ApiError, query, sessionPath } from './api.ts'
import { feed } from './feed.ts'
import { forgetOutgoing, outgoing } from './sender.ts'
import type {
  CleanupRow,
  CompactionRow,
  Message,
  MessagePage,
  RequestRow,
  SessionDetail,
  TurnEvent,
  TurnFrame,
} from './types.ts'

export interface LiveTool {
  readonly id: string
  readonly tool: string
  readonly detail: string
  readonly startedAt: number
  readonly durationMs?: number
  readonly failed?: boolean
}

/** A turn that runs now, as far as it is not stored yet. */
export interface LiveTurn {
  readonly run: string
  readonly startedAt: number
  readonly round: number
  readonly text: string
  readonly tools: readonly LiveTool[]
  readonly note?: string
  readonly ended?: 'complete' | 'error'
  readonly error?: string
}

/** One instruction with everything it led to. */
export interface Step {
  readonly id: string
  readonly messages: readonly Message[]
  readonly cleanup?: CleanupRow
  readonly compaction?: CompactionRow
}

const PAGE = 200
const CATCH_UP_AGAIN_MS = 2_000

/** What one conversation shows: stored messages by entry id, turns in the making, and how to get the rest. */
export class Conversation {
  readonly key: string
  readonly messages = signal<readonly Message[]>([])
  readonly cleanups = signal<readonly CleanupRow[]>([])
  readonly compactions = signal<readonly CompactionRow[]>([])
  readonly live = signal<ReadonlyMap<string, LiveTurn>>(new Map())
  readonly detail = signal<SessionDetail | undefined>(undefined)
  readonly requests = signal<readonly RequestRow[]>([])
  readonly older = signal<string | undefined>(undefined)
  readonly state = signal<'loading' | 'ready' | 'missing' | 'failed'>('loading')
  readonly error = signal<ApiError | undefined>(undefined)
  readonly steps: ReadonlySignal<readonly Step[]>
  readonly #close: (() => void)[]
  #catchingUp: Promise<void> | undefined
  #again = false
  #later: ReturnType<typeof setTimeout> | undefined

  constructor(key: string) {
    this.key = key
    this.steps = computed(() => stepsOf(this.messages.value, this.cleanups.value, this.compactions.value))
    this.#close = [
      feed.on('turn', (turn: TurnEvent) => {
        if (turn.key === key) this.#onTurn(turn)
      }),
      feed.on('reset', () => {
        // Another start of the gateway, or events that were missed: what was being written is told anew, or is stored.
        this.live.value = new Map()
        void this.reload()
      }),
    ]
  }

  async reload(): Promise<void> {
    try {
      const [page] = await Promise.all([this.#page({ limit: PAGE }), this.loadDetail(), this.loadRequests()])
      this.messages.value = page.messages
      this.older.value = page.before
      this.#takeMarks(page)
      this.state.value = 'ready'
      this.error.value = undefined
      this.#settle()
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  async loadOlder(): Promise<void> {
    const before = this.older.value
    if (before === undefined) return
    const page = await this.#page({ before, limit: PAGE })
    this.messages.value = [...page.messages, ...this.messages.value]
    this.older.value = page.before
  }

  /** Loads what was stored since the last known entry, and marks that changed meanwhile. */
  catchUp(): Promise<void> {
    if (this.#catchingUp !== undefined) {
      this.#again = true
      return this.#catchingUp
    }
    this.#catchingUp = this.#catchUpOnce().finally(() => {
      this.#catchingUp = undefined
      if (!this.#again) return
      this.#again = false
      void this.catchUp()
    })
    return this.#catchingUp
  }

  async loadDetail(): Promise<void> {
    this.detail.value = await api.get<SessionDetail>(sessionPath(this.key, '?limit=1'))
  }

  async loadRequests(): Promise<void> {
    const after = this.requests.value.at(-1)?.n ?? 0
    const found = await api.get<{ requests: readonly RequestRow[] }>(
      sessionPath(this.key, `/requests${query({ after: after || undefined, limit: 1_000 })}`),
    )
    const known = new Map([...this.requests.value, ...found.requests].map((row) => [row.n, row]))
    this.requests.value = [...known.values()].sort((a, b) => a.n - b.n)
  }

  async restoreCleanup(id: string): Promise<void> {
    await api.post(sessionPath(this.key, '/restore'), { cleanup: id })
    await this.reload()
  }

  async undoCompaction(): Promise<void> {
    await api.post(sessionPath(this.key, '/restore'), { compaction: true })
    await this.reload()
  }

  close(): void {
    clearTimeout(this.#later)
    for (const end of this.#close) end()
  }

  async #catchUpOnce(): Promise<void> {
    const last = this.messages.value.at(-1)
    if (last === undefined) return this.reload()
    try {
      const page = await this.#page({ after: last.id, limit: PAGE })
      const known = new Set(this.messages.value.map((message) => message.id))
      const hidden = new Set(page.cleanups.flatMap((cleanup) => cleanup.hidden))
      const fresh = page.messages.filter((message) => !known.has(message.id))
      this.messages.value = [...this.messages.value, ...fresh].map((message) => withMark(message, hidden))
      this.#takeMarks(page)
      this.#settle()
      await Promise.all([this.loadDetail(), this.loadRequests()])
      if (fresh.length >= PAGE) this.#again = true
    } catch (thrown) {
      // A reset gave the conversation a new transcript: the entry asked after is not in it.
      if (thrown instanceof ApiError && thrown.status === 404) return this.reload()
      if (thrown instanceof ApiError && thrown.code === 'OFFLINE') this.#catchUpLater()
      else this.#fail(thrown)
    }
  }

  #catchUpLater(): void {
    clearTimeout(this.#later)
    this.#later = setTimeout(() => {
      if (feed.state.value === 'open') void this.catchUp()
    }, CATCH_UP_AGAIN_MS)
  }

  #page(fields: { before?: string; after?: string; limit: number }): Promise<MessagePage> {
    return api.get<MessagePage>(sessionPath(this.key, `/messages${query(fields)}`))
  }

  #takeMarks(page: MessagePage): void {
    this.cleanups.value = page.cleanups
    this.compactions.value = page.compactions
  }

  #fail(thrown: unknown): void {
    const error = thrown instanceof ApiError ? thrown : new ApiError(0, 'FAILED', String(thrown))
    this.error.value = error
    this.state.value = error.status === 404 ? 'missing' : 'failed'
  }

  /** Stored messages take the place of what was sent from here and of turns that ended. */
  #settle(): void {
    const stored = new Set(this.messages.value.filter(({ role }) => role === 'user').map((message) => message.stepId))
    for (const message of outgoing.value) {
      if (message.key === this.key && message.run !== undefined && stored.has(message.run)) forgetOutgoing(message.id)
    }
    const answered = new Set(this.messages.value.filter(isFinalAnswer).map((message) => message.stepId))
    const running = [...this.live.value].filter(([run, turn]) => turn.ended === undefined && !answered.has(run))
    if (running.length !== this.live.value.size) this.live.value = new Map(running)
  }

  #onTurn({ run, at, event }: TurnEvent): void {
    const before = this.live.value.get(run) ?? { run, startedAt: at, round: 1, text: '', tools: [] }
    if (event.type === 'delta' && Number(event['offset'] ?? 0) > before.text.length) feed.resync()
    const after = nextTurn(before, event, at)
    this.live.value = new Map([...this.live.value, [run, after]])
    if (event.type === 'accepted' || after.ended !== undefined || isStored(event)) void this.catchUp()
  }
}

function isFinalAnswer(message: Message): boolean {
  return message.role === 'assistant' && message.blocks.every(({ type }) => type !== 'call')
}

function isStored(event: TurnFrame): boolean {
  return (
    event.type === 'event' &&
    ['round_end', 'tool_end', 'step_completed', 'step_cleanup_completed'].includes(textOf(event['event']))
  )
}

function nextTurn(turn: LiveTurn, event: TurnFrame, at: number): LiveTurn {
  switch (event.type) {
    case 'delta': {
      const offset = Number(event['offset'] ?? 0)
      // A gap: this reader was too slow. What is shown stays until the whole text comes.
      if (offset > turn.text.length) return turn
      return { ...turn, text: turn.text.slice(0, offset) + textOf(event['delta']), note: '' }
    }
    case 'progress':
      return { ...turn, text: textOf(event['content']), note: '' }
    case 'complete':
      return { ...turn, ended: 'complete' }
    case 'error':
      return { ...turn, ended: 'error', error: textOf(event['error']) }
    case 'event':
      return withEvent(turn, textOf(event['event']), (event['data'] ?? {}) as Readonly<Record<string, unknown>>, at)
    default:
      return turn
  }
}

function withEvent(turn: LiveTurn, name: string, data: Readonly<Record<string, unknown>>, at: number): LiveTurn {
  const id = textOf(data['callId'])
  switch (name) {
    case 'tool_start': {
      const tool = { id, tool: textOf(data['tool']), detail: detailOf(data), startedAt: at }
      return { ...turn, tools: [...turn.tools.filter((one) => one.id !== id), tool] }
    }
    case 'tool_end':
      return {
        ...turn,
        tools: turn.tools.map((one) =>
          one.id === id ? { ...one, durationMs: at - one.startedAt, failed: data['failed'] === true } : one,
        ),
      }
    case 'round_end':
      return { ...turn, round: turn.round + 1, text: '' }
    case 'model_retry':
      return { ...turn, note: textOf(data['code']) }
    default:
      return turn
  }
}

function detailOf(data: Readonly<Record<string, unknown>>): string {
  const input = data['arguments'] ?? data['input'] ?? data['args']
  return typeof input === 'string' ? input : input === undefined ? '' : shortArguments(input)
}

/** A value of a frame as text; what is neither text nor number says nothing. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** A call's arguments as one line: values of short fields, then JSON for the rest. */
export function shortArguments(input: unknown): string {
  if (typeof input !== 'object' || input === null) return textOf(input)
  const values = Object.values(input)
  const isSimple = values.every((value) => ['string', 'number', 'boolean'].includes(typeof value))
  const line = isSimple ? values.map(String).join(' ') : JSON.stringify(input)
  return line.replaceAll(/\s+/gu, ' ').slice(0, 200)
}

function withMark(message: Message, hidden: ReadonlySet<string>): Message {
  if (hidden.has(message.id) === (message.hidden === true)) return message
  const { hidden: _, ...rest } = message
  return hidden.has(message.id) ? { ...rest, hidden: true } : rest
}

export function stepsOf(
  messages: readonly Message[],
  cleanups: readonly CleanupRow[],
  compactions: readonly CompactionRow[],
): readonly Step[] {
  const steps: { id: string; messages: Message[] }[] = []
  for (const message of messages) {
    const last = steps.at(-1)
    const id = message.stepId ?? (message.role === 'user' || last === undefined ? message.id : last.id)
    if (last !== undefined && last.id === id) last.messages.push(message)
    else steps.push({ id, messages: [message] })
  }
  return steps.map((step) => {
    const cleanup = cleanups.find((one) => one.stepId === step.id)
    const end = step.messages.at(-1)
    const compaction = compactions.find((one) => end !== undefined && one.id === end.id)
    return {
      ...step,
      ...(cleanup === undefined ? {} : { cleanup }),
      ...(compaction === undefined ? {} : { compaction }),
    }
  })
}
