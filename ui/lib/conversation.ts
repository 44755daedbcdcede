import { computed, signal, type ReadonlySignal } from '@preact/signals'
import { api, ApiError, query, sessionPath } from './api.ts'
import { feed } from './feed.ts'
import { forgetOutgoing, outgoing } from './sender.ts'
import { earlierOf } from './router.ts'
import { learnRow } from './sessions.ts'
import type {
  CleanupRow,
  CompactionRow,
  LiveTurn,
  Message,
  MessagePage,
  RequestRow,
  SessionDetail,
  Step,
  TurnEvent,
  TurnFrame,
  UndeliveredAnswer,
} from './types.ts'

const PAGE = 200
/** As many as the gateway gives at once. */
const LARGEST_PAGE = 500
const MOST_REQUESTS = 1_000
const BACKGROUND_MS = 500
const CATCH_UP_AGAIN_MS = 2_000
/** The end of a turn, which was caught up with already, changes the row too. */
const OTHERS_MS = 300
/** An answer is on its way for a moment; only after that it is unknown whether it arrived. */
const ON_ITS_WAY_MS = 5_000
const LOOK_AGAIN_MS = 15_000

const BEGINNINGS: readonly string[] = ['accepted', 'delta', 'progress']

export interface Said {
  readonly what: 'start' | 'tool' | 'end'
  readonly tool?: string
}

/** What one conversation shows: stored messages by entry id, turns in the making, and how to get the rest. */
export class Conversation {
  readonly key: string
  readonly messages = signal<readonly Message[]>([])
  readonly cleanups = signal<readonly CleanupRow[]>([])
  readonly compactions = signal<readonly CompactionRow[]>([])
  /** Answers that may be missed, by step. */
  readonly undelivered = signal<ReadonlyMap<string, UndeliveredAnswer>>(new Map())
  readonly live = signal<ReadonlyMap<string, LiveTurn>>(new Map())
  readonly detail = signal<SessionDetail | undefined>(undefined)
  readonly requests = signal<readonly RequestRow[]>([])
  readonly older = signal<string | undefined>(undefined)
  readonly state = signal<'loading' | 'ready' | 'missing' | 'deleted' | 'failed'>('loading')
  readonly error = signal<ApiError | undefined>(undefined)
  /** The entry that an address or a search points at. */
  readonly found = signal<string | undefined>(undefined)
  /** What was unfolded or loaded whole, by the name of its part: it outlives being scrolled away. */
  readonly rowStates = new Map<string, unknown>()
  readonly steps: ReadonlySignal<readonly Step[]>
  readonly isRunning: ReadonlySignal<boolean>
  /** The latest of what is read out to a person who sees nothing: start, tools and end of an answer. */
  readonly said = signal<Said | undefined>(undefined)
  readonly #close: (() => void)[]
  #loadingOlder: Promise<void> | undefined
  /** Turns in the making as the latest event left them; `live` follows with the next frame. */
  readonly #turns = new Map<string, LiveTurn>()
  #frame: (() => void) | undefined
  #catchingUp: Promise<void> | undefined
  #again = false
  #later: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  constructor(key: string) {
    this.key = key
    this.steps = computed(() => stepsOf(this.messages.value, this.cleanups.value))
    this.isRunning = computed(() => [...this.live.value.values()].some((turn) => turn.ended === undefined))
    this.#close = [
      feed.on('turn', (turn: TurnEvent) => {
        if (turn.key === key) this.#onTurn(turn)
      }),
      feed.on('session', (row: { readonly key: string; readonly state?: string; readonly deleted?: boolean }) => {
        if (row.key === key && row.deleted === true) return this.#clear('deleted')
        // Another tab or program may have brought back what was left out, or started over.
        if (row.key === key && (row.state === 'idle' || this.#lacksInstruction())) this.#catchUpLater(OTHERS_MS)
      }),
      feed.on('reset', () => {
        // Another start of the gateway, or events that were missed: what was being written is sent anew, or is stored.
        this.#turns.clear()
        this.#publish()
        void this.reload()
      }),
    ]
  }

  /** Loads what is shown anew, as far back as it was loaded. */
  async reload(): Promise<void> {
    try {
      const [page] = await Promise.all([this.#lastMessages(), this.loadDetail(), this.#loadRequestsAfter(undefined)])
      const newest = this.messages.value.at(-1)
      this.messages.value = page.messages
      this.older.value = page.before
      this.#takeMarks(page)
      this.state.value = 'ready'
      this.error.value = undefined
      this.#settle()
      // What was stored while this was on its way had been caught up with already.
      if (newest !== undefined && !page.messages.some(({ id }) => id === newest.id)) void this.catchUp()
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  /** Loads the page before what is shown; asked twice at once it loads one page. */
  loadOlder(limit = LARGEST_PAGE): Promise<void> {
    const before = this.older.value
    if (before === undefined) return Promise.resolve()
    this.#loadingOlder ??= this.#loadOlderPage(before, limit)
    return this.#loadingOlder
  }

  /** Points at an entry, and loads as far back as it stands; false when it is not there. */
  async find(entry: string): Promise<boolean> {
    this.found.value = entry
    const isLoaded = (): boolean => this.messages.value.some((message) => message.id === entry)
    while (!isLoaded() && this.older.value !== undefined && this.found.value === entry) await this.loadOlder()
    return isLoaded() || this.found.value !== entry
  }

  async #loadOlderPage(before: string, limit: number): Promise<void> {
    // Whatever reacts to the new messages may ask for the next page at once.
    const page = await this.#page({ before, limit }).finally(() => (this.#loadingOlder = undefined))
    // A reset may have replaced the conversation meanwhile.
    if (this.older.value !== before) return
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
    if (earlierOf(this.key) !== undefined) return
    const detail = await api.get<SessionDetail>(sessionPath(this.key, '?limit=0'))
    learnRow(detail.session)
    this.detail.value = detail
  }

  loadRequests(): Promise<void> {
    return this.#loadRequestsAfter(this.requests.value.at(-1)?.n)
  }

  async #loadRequestsAfter(known: number | undefined): Promise<void> {
    let after = known
    const found: RequestRow[] = []
    for (;;) {
      const page = await api.get<{ requests: readonly RequestRow[]; nextCursor?: string }>(
        sessionPath(this.key, `/requests${query({ after, limit: MOST_REQUESTS })}`),
      )
      found.push(...page.requests)
      if (page.nextCursor === undefined) break
      after = Number(page.nextCursor)
    }
    if (known === undefined) this.requests.value = found
    else if (found.length > 0)
      this.requests.value = [...this.requests.value.filter((row) => row.n < (found[0]?.n ?? 0)), ...found]
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
    this.#isClosed = true
    clearTimeout(this.#later)
    this.#frame?.()
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
      if (namesOf(page.compactions) !== namesOf(this.compactions.value)) {
        // Which messages a summary stands for is marked in each of them.
        await this.reload()
        return this.#clearStoredText(fresh)
      }
      this.messages.value = [...this.messages.value, ...fresh].map((message) => withMark(message, hidden))
      this.#takeMarks(page)
      this.state.value = 'ready'
      this.error.value = undefined
      this.#settle()
      this.#clearStoredText(fresh)
      await Promise.all([this.loadDetail(), this.loadRequests()])
      if (fresh.length >= PAGE) this.#again = true
    } catch (thrown) {
      // A reset gave the conversation a new transcript: the entry asked after is not in it.
      if (thrown instanceof ApiError && thrown.status === 404) return this.reload()
      this.#fail(thrown)
    }
  }

  #catchUpLater(ms: number): void {
    clearTimeout(this.#later)
    if (this.#isClosed) return
    this.#later = setTimeout(() => {
      if (feed.state.value === 'open') void this.catchUp()
    }, ms)
  }

  /** The end of the conversation, as many messages as are shown now. */
  async #lastMessages(): Promise<MessagePage> {
    const wanted = this.messages.value.length
    let all = await this.#page({ limit: PAGE })
    while (all.before !== undefined && all.messages.length < wanted) {
      const { messages, before } = await this.#page({ before: all.before, limit: LARGEST_PAGE })
      const { before: _, ...marks } = all
      all = {
        ...marks,
        messages: [...messages, ...all.messages],
        ...(before === undefined ? {} : { before }),
      }
    }
    return all
  }

  #page(fields: { before?: string; after?: string; limit: number }): Promise<MessagePage> {
    return api.get<MessagePage>(sessionPath(this.key, `/messages${query(fields)}`))
  }

  #takeMarks(page: MessagePage): void {
    this.cleanups.value = page.cleanups
    this.compactions.value = page.compactions
    const shown = page.undelivered.filter(({ ageMs }) => ageMs >= ON_ITS_WAY_MS)
    this.undelivered.value = new Map(shown.map((answer) => [answer.stepId, answer]))
    // Nothing announces a delivery, so it is asked for.
    if (page.undelivered.length > 0)
      this.#catchUpLater(shown.length < page.undelivered.length ? ON_ITS_WAY_MS : LOOK_AGAIN_MS)
  }

  #fail(thrown: unknown): void {
    const error = thrown instanceof ApiError ? thrown : new ApiError(0, 'FAILED', String(thrown))
    if (error.status === 404) return this.#clear('missing')
    // What is shown stays, and the gateway is asked again: it may be busy, or starting.
    const isShown = this.messages.value.length > 0
    const mayPass = error.status === 0 || error.status === 429 || error.status >= 500
    if (isShown && mayPass) this.#catchUpLater(CATCH_UP_AGAIN_MS)
    if (isShown && error.code === 'OFFLINE') return
    this.error.value = error
    this.state.value = 'failed'
  }

  /** The gateway has nothing under this key (any more). */
  #clear(state: 'missing' | 'deleted'): void {
    this.messages.value = []
    this.older.value = undefined
    this.cleanups.value = []
    this.compactions.value = []
    this.requests.value = []
    this.undelivered.value = new Map()
    this.detail.value = undefined
    this.#turns.clear()
    this.#publish()
    this.error.value = undefined
    // A new conversation is missing until its first message is stored; a deleted one had some.
    if (state === 'deleted' || this.state.value !== 'deleted') this.state.value = state
  }

  /** Stored messages take the place of what was sent from here and of turns that ended. */
  #settle(): void {
    const stored = new Set(this.messages.value.filter(({ role }) => role === 'user').map((message) => message.stepId))
    for (const message of outgoing.value) {
      if (message.key === this.key && message.run !== undefined && stored.has(message.run)) forgetOutgoing(message.id)
    }
    const answered = new Set(this.messages.value.filter(isFinalAnswer).map((message) => message.stepId))
    const ended = [...this.#turns].filter(([run, turn]) => turn.ended !== undefined || answered.has(run))
    if (ended.length === 0) return
    this.#keepShownText()
    for (const [run] of ended) this.#turns.delete(run)
    this.#publish()
    this.#say({ what: 'end' })
  }

  /** Text of a round that is over goes when the message that holds it comes. */
  #clearStoredText(fresh: readonly Message[]): void {
    const stored = new Set(fresh.flatMap((message) => (message.role === 'assistant' ? [message.stepId] : [])))
    for (const [run, turn] of this.#turns) {
      if (turn.isRoundOver !== true || !stored.has(run)) continue
      this.#turns.set(run, { ...turn, text: '', isRoundOver: false })
      this.#publish()
    }
  }

  /** A long answer that was read while it was written stays whole; its stored form is cut. */
  #keepShownText(): void {
    for (const message of this.messages.value.slice(-PAGE)) {
      if (message.cut !== true || message.role !== 'assistant') continue
      const text = this.#turns.get(message.stepId ?? '')?.text ?? ''
      const blocks = message.blocks.map((block) =>
        block.type === 'text' && block.text !== '' && text.startsWith(block.text) ? { ...block, text } : block,
      )
      if (blocks.some((block, at) => block !== message.blocks[at])) this.rowStates.set(`blocks ${message.id}`, blocks)
    }
  }

  #onTurn({ run, at, event }: TurnEvent): void {
    const before = this.#turns.get(run) ?? { run, startedAt: at, round: 1, text: '', tools: [] }
    if (event.type === 'delta' && Number(event['offset'] ?? 0) > before.text.length) feed.resync()
    const after = nextTurn(before, event, at)
    const tool = after.tools.length > before.tools.length ? after.tools.at(-1)?.tool : undefined
    if (tool !== undefined) this.#say({ what: 'tool', tool })
    else if (after.ended !== undefined) this.#say({ what: 'end' })
    else if (!this.#turns.has(run) && BEGINNINGS.includes(event.type)) this.#say({ what: 'start' })
    this.#turns.set(run, after)
    this.#publishSoon()
    const hasBegun = before.text === '' && after.text !== '' && this.#lacksInstruction()
    if (event.type === 'accepted' || hasBegun || after.ended !== undefined || isStored(event)) void this.catchUp()
  }

  /** A message is accepted before its turn stores it: what was loaded in between does not have it yet. */
  #lacksInstruction(): boolean {
    const stored = new Set(this.messages.value.map(({ stepId }) => stepId))
    return [...this.#turns.values()].some(({ run, ended }) => ended === undefined && !stored.has(run))
  }

  /** Said once: the same again would be read out again. */
  #say(said: Said): void {
    if (said.what !== this.said.value?.what || said.tool !== this.said.value.tool) this.said.value = said
  }

  /** Words that come faster than the screen is drawn are shown together. */
  #publishSoon(): void {
    if (this.#frame !== undefined) return
    // A page in the background draws nothing.
    const soon = document.visibilityState === 'visible' ? nextFrame : later
    this.#frame = soon(() => this.#publish())
  }

  #publish(): void {
    this.#frame?.()
    this.#frame = undefined
    this.live.value = new Map(this.#turns)
  }
}

function namesOf(compactions: readonly CompactionRow[]): string {
  return compactions.map(({ id }) => id).join(' ')
}

/** Both give back how to call it off. */
function nextFrame(act: () => void): () => void {
  const id = requestAnimationFrame(act)
  return () => cancelAnimationFrame(id)
}

function later(act: () => void): () => void {
  const id = setTimeout(act, BACKGROUND_MS)
  return () => clearTimeout(id)
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
      const text = turn.text.slice(0, offset) + textOf(event['delta'])
      return { ...turn, text, isRoundOver: false, note: '' }
    }
    case 'progress':
      return { ...turn, text: textOf(event['content']), isRoundOver: false, note: '' }
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
      return { ...turn, round: turn.round + 1, isRoundOver: true }
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

export function stepsOf(messages: readonly Message[], cleanups: readonly CleanupRow[]): readonly Step[] {
  const steps: { id: string; messages: Message[] }[] = []
  for (const message of messages) {
    const last = steps.at(-1)
    const id = message.stepId ?? (message.role === 'user' || last === undefined ? message.id : last.id)
    if (last !== undefined && last.id === id) last.messages.push(message)
    else steps.push({ id, messages: [message] })
  }
  const cleanupOf = new Map(cleanups.toReversed().map((one) => [one.stepId, one]))
  return steps.map((step) => {
    const cleanup = cleanupOf.get(step.id)
    return cleanup === undefined ? step : { ...step, cleanup }
  })
}
