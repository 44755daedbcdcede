import type { Clock, Timer } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'
import type { SessionEvent } from '../core/event.ts'
import type { SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, Reply } from '../core/inbound.ts'
import type { LiveEvents } from './live-events.ts'

/** A turn as a page that comes late needs it. */
interface LiveTurn {
  readonly key: SessionKey
  readonly channel: string
  readonly startedAt: number
  round: number
  text: string
  tool: string | undefined
}

export interface TurnWatchDeps {
  readonly clock: Clock
  readonly live: LiveEvents
  /** The row of the list as it is now; undefined after a delete. */
  row(key: SessionKey): Promise<JsonObject | undefined>
  status(): Promise<JsonObject>
  /** Whether this node still works on it: one that another node took over, or that is to be resumed, gets no answer here. */
  isRunning(key: SessionKey, run: string): boolean
  /** A turn event as a frame of the webhook wire, without its address; undefined for what clients do not see. */
  frameOf(event: SessionEvent): JsonObject | undefined
  replyFrame(reply: Reply): JsonObject
}

const ROWS_EVERY_MS = 200
const STATUS_EVERY_MS = 1_000

/** Follows every turn of every channel, without taking part in its delivery. */
export class TurnWatch {
  readonly #deps: TurnWatchDeps
  readonly #turns = new Map<string, LiveTurn>()
  readonly #changedRows = new Set<SessionKey>()
  readonly #messages: MinuteCount
  readonly #answers: MinuteCount
  #rowsTimer: Timer | undefined
  #statusTimer: Timer | undefined

  constructor(deps: TurnWatchDeps) {
    this.#deps = deps
    this.#messages = new MinuteCount(deps.clock)
    this.#answers = new MinuteCount(deps.clock)
  }

  /** What runs now, for the status and the live page. */
  running(): JsonObject[] {
    return this.#current().map(([run, { key, startedAt, round, tool }]) => ({
      key,
      run,
      startedAt,
      round: round + 1,
      ...(tool === undefined ? {} : { tool }),
    }))
  }

  /** Of the last minute. */
  rates(): JsonObject {
    return { messagesPerMinute: this.#messages.perMinute, answersPerMinute: this.#answers.perMinute }
  }

  accepted(message: AcceptedMessage): void {
    this.#messages.add()
    if (!this.#deps.live.isFollowed) return this.#deps.live.skip()
    this.#emit(message.key, message.run, { type: 'accepted', messageId: message.messageId, channel: message.channel })
    this.changed(message.key)
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    const turn = this.#turnOf(event, message)
    if (event.event.type === 'text-delta') return this.#delta(event, turn)
    follow(turn, event)
    if (!this.#deps.live.isFollowed) return this.#deps.live.skip()
    const frame = this.#deps.frameOf(event)
    if (frame !== undefined) this.#emit(event.session, event.run, frame)
    if (event.event.type === 'turn-start') this.changed(event.session)
  }

  /** The durable end of a message: the first time it is sent, whatever becomes of the sending. */
  answered(reply: Reply): void {
    this.#turns.delete(reply.run)
    if (!reply.redelivered) this.#answers.add()
    if (!this.#deps.live.isFollowed) return this.#deps.live.skip()
    if (!reply.redelivered) this.#emit(reply.key, reply.run, this.#deps.replyFrame(reply))
    this.changed(reply.key)
  }

  /** A row of the list changed: several changes of one moment are sent once. */
  changed(key: SessionKey): void {
    if (!this.#deps.live.isFollowed) return this.#deps.live.skip()
    this.#changedRows.add(key)
    this.#rowsTimer ??= this.#deps.clock.after(ROWS_EVERY_MS, () => void this.#emitRows())
    if (this.#deps.live.hasReaders)
      this.#statusTimer ??= this.#deps.clock.after(STATUS_EVERY_MS, () => void this.#emitStatus())
  }

  /** What a page that opens this conversation must be shown at once. */
  soFar(key: string): readonly JsonObject[] {
    return this.#current().flatMap(([run, turn]) => {
      if (turn.key !== key) return []
      const at = turn.startedAt
      return [{ key, run, at, event: { type: 'delta', offset: 0, delta: turn.text } }]
    })
  }

  close(): void {
    this.#rowsTimer?.cancel()
    this.#statusTimer?.cancel()
    this.#deps.live.close()
  }

  #current(): readonly (readonly [string, LiveTurn])[] {
    for (const [run, { key }] of this.#turns) if (!this.#deps.isRunning(key, run)) this.#turns.delete(run)
    return [...this.#turns]
  }

  #turnOf({ run, at, session }: SessionEvent, { channel }: AcceptedMessage): LiveTurn {
    const known = this.#turns.get(run)
    if (known !== undefined) return known
    const turn: LiveTurn = { key: session, channel, startedAt: at, round: 0, text: '', tool: undefined }
    this.#turns.set(run, turn)
    return turn
  }

  #delta({ session, run, at, event }: SessionEvent, turn: LiveTurn): void {
    if (event.type !== 'text-delta') return
    if (event.round !== turn.round) {
      turn.round = event.round
      turn.text = ''
    }
    const offset = turn.text.length
    turn.text += event.delta
    if (!this.#deps.live.isWatched(session)) return
    this.#deps.live.emitDelta(
      session,
      { key: session, run, at, event: { type: 'delta', offset, delta: event.delta } },
      joinDeltas,
    )
  }

  #emit(key: SessionKey, run: string, frame: JsonObject): void {
    this.#deps.live.emit('turn', { key, run, at: this.#deps.clock.now(), event: frame }, key)
  }

  async #emitRows(): Promise<void> {
    this.#rowsTimer = undefined
    const keys = [...this.#changedRows]
    this.#changedRows.clear()
    for (const key of keys) {
      // A row that cannot be read now is shown with its next change.
      const row = await this.#deps.row(key).catch(() => 'unreadable' as const)
      if (row !== 'unreadable') this.#deps.live.emit('session', row ?? { key, deleted: true }, key)
    }
  }

  async #emitStatus(): Promise<void> {
    this.#statusTimer = undefined
    const status = await this.#deps.status().catch(() => undefined)
    if (status !== undefined) this.#deps.live.emitStatus(status)
  }
}

function follow(turn: LiveTurn, { event }: SessionEvent): void {
  if (event.type === 'tool-start') turn.tool = event.tool
  if (event.type === 'tool-end') turn.tool = undefined
  if (event.type === 'round-end') {
    turn.round = event.round + 1
    turn.text = ''
  }
}

function joinDeltas(waiting: JsonObject, added: JsonObject): JsonObject {
  const before = waiting['event'] as { offset: number; delta: string }
  const after = added['event'] as { offset: number; delta: string }
  if (waiting['run'] !== added['run'] || before.offset + before.delta.length !== after.offset) return added
  return { ...waiting, event: { type: 'delta', offset: before.offset, delta: before.delta + after.delta } }
}

const SECONDS = 60

/** How often something happened within the last minute, second by second: its memory does not grow. */
export class MinuteCount {
  readonly #clock: Clock
  readonly #counts = Array.from({ length: SECONDS }, () => 0)
  #latest: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#latest = this.#second()
  }

  add(): void {
    this.#forget()
    const at = this.#latest % SECONDS
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
  }

  get perMinute(): number {
    this.#forget()
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  #second(): number {
    return Math.floor(this.#clock.monotonic() / 1_000)
  }

  /** Seconds that have passed since hold nothing yet. */
  #forget(): void {
    const now = this.#second()
    for (let at = Math.max(this.#latest + 1, now - SECONDS + 1); at <= now; at++) this.#counts[at % SECONDS] = 0
    this.#latest = now
  }
}
