import { assertNever } from '../../base/assert-never.ts'
import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import type { TurnEvent } from '../../core/event.ts'
import type { RunId } from '../../core/ids.ts'
import type { DeliveryFate, ReplyContent } from '../../core/inbound.ts'
import { phoneText, reasonFor, toWireError, type Language } from './errors.ts'
import { type ReplyAddress, encodeArtifact, encodeStatus } from './frames.ts'
import type { Link } from './link.ts'
import { Preview } from './preview.ts'
import type { XiaoyiSettings } from './settings.ts'
import { TimerSlot } from './timer-slot.ts'
import { cutMiddle } from '../../base/text.ts'

export interface TaskDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly settings: XiaoyiSettings
  /** The link that takes frames of a task from this one, or undefined while they must wait. */
  route(preferred: number, sessionId: string): Link | undefined
  /** The task has outlived what a phone waits for. */
  onLimit(task: Task): void
}

/** Short beside `pieceMs`, long enough to bring the pieces of a few tasks together. */
const BEAT_MS = 20

/** `open` → `closing` (the end is known, previews are over) → `closed` (its one terminal frame has gone out). */
type Phase = 'open' | 'closing' | 'closed'

/**
 * One message on the phone, from its acknowledgement to its one `final`. Every frame of a task passes here, and
 * nothing passes after the end.
 */
export class Task {
  readonly run: RunId
  readonly address: ReplyAddress
  readonly #deps: TaskDeps
  readonly #preview: Preview
  readonly #keepAlive: TimerSlot
  readonly #pieces: TimerSlot
  readonly #limit: TimerSlot
  #phase: Phase = 'open'
  #acknowledged = false
  #muted = false
  #started = false
  /** What its user is asked, while a tool call waits for that. */
  #question: string | undefined
  #link: number
  #finishing: Promise<DeliveryFate> | undefined

  constructor(run: RunId, address: ReplyAddress, link: number, deps: TaskDeps) {
    this.run = run
    this.address = address
    this.#link = link
    this.#deps = deps
    this.#preview = new Preview(deps.settings)
    this.#keepAlive = new TimerSlot(deps.clock)
    this.#pieces = new TimerSlot(deps.clock)
    this.#limit = new TimerSlot(deps.clock)
  }

  get link(): number {
    return this.#link
  }

  get isOpen(): boolean {
    return this.#phase === 'open'
  }

  /** Whether its turn has begun; a task that only waits in the queue has nothing to lose by a restart. */
  get hasStarted(): boolean {
    return this.#started
  }

  /** What the phone has seen so far. */
  get shownText(): string {
    return this.#preview.shownText
  }

  /** The acknowledgement. Only after the message is durable. The phone's patience is counted from `acceptedAt`. */
  acknowledge(acceptedAt: number): void {
    const { clock, settings } = this.#deps
    // The stamp is durable and may be from an earlier start; a wall clock that was set back must not prolong the limit.
    const leftMs = Math.min(settings.taskLimitMs, Math.max(0, acceptedAt + settings.taskLimitMs - clock.now()))
    this.#limit.set(leftMs, () => this.#deps.onLimit(this))
    this.#sayWorking()
  }

  /** The same message came again over this link. */
  rebind(link: number): void {
    if (this.#route()?.index !== this.#link) this.#link = link
  }

  observe(event: TurnEvent): void {
    if (this.#phase !== 'open') return
    this.#started = true
    if (event.type === 'approval-requested' || event.type === 'approval-decided') return this.#ask(event)
    const { reasoning, streamMode } = this.#deps.settings
    if (event.type === 'text-delta' && streamMode !== 'final-only') this.#preview.addText(event.round, event.delta)
    else if (event.type === 'thinking-delta' && reasoning) this.#preview.addReasoning(event.delta)
    else return
    if (!this.#pieces.isSet) this.flush()
  }

  /** The phone shows that its user is asked, and shows it until there is an answer. */
  #ask(event: Extract<TurnEvent, { readonly type: `approval-${string}` }>): void {
    this.#question = event.type === 'approval-requested' ? questionText(event, this.#deps.settings.language) : undefined
    this.#sayWorking()
  }

  /** While a cancel is being carried out nothing more of the task may appear. */
  mute(): void {
    this.#muted = true
  }

  unmute(): void {
    this.#muted = false
    this.flush()
  }

  /** Sends what is new, when there is a link that takes it; called again whenever the routes change. */
  flush(): void {
    if (!this.#acknowledged) this.#sayWorking()
    if (this.#phase !== 'open' || this.#muted || !this.#preview.hasNews) return
    const link = this.#route()
    if (link === undefined) return
    this.#pieces.set(this.#untilNextBeat(), () => this.flush())
    if (link.isCongested) return
    for (const piece of this.#preview.take(`${link.index}:${link.epoch}`)) {
      const artifactId = this.#deps.ids.uuid()
      link.writeSoon(encodeArtifact(this.#deps.settings.agentId, this.address, { artifactId, final: false, ...piece }))
    }
    this.#keepAliveLater()
  }

  /** The terminal frame, at most once: a second call while one is under way gets the same fate. */
  finish(content: ReplyContent): Promise<DeliveryFate> {
    return this.#finishWith(() => this.#terminalFrame(content))
  }

  /** Ends the task on the phone with a sentence of ours, after what it has seen. */
  finishWithNotice(sentence: string): Promise<DeliveryFate> {
    return this.#finishWith(() => this.#textFrame(joined(this.shownText, sentence)))
  }

  /** Stops all timers; frames that were not sent are dropped. */
  abandon(): void {
    this.#phase = 'closed'
    this.#stopTimers()
  }

  #finishWith(frame: () => string): Promise<DeliveryFate> {
    if (this.#phase === 'closed') return Promise.resolve('delivered')
    this.#finishing ??= this.#sendTerminal(frame()).finally(() => (this.#finishing = undefined))
    return this.#finishing
  }

  async #sendTerminal(frame: string): Promise<DeliveryFate> {
    this.#phase = 'closing'
    this.#stopTimers()
    const link = this.#route()
    if (link === undefined) return 'waiting'
    try {
      await link.writeTerminal(frame)
    } catch {
      return 'unknown'
    }
    this.#phase = 'closed'
    return 'delivered'
  }

  #terminalFrame(content: ReplyContent): string {
    const { agentId, language } = this.#deps.settings
    switch (content.kind) {
      case 'complete':
        return this.#textFrame(content.text)
      case 'error': {
        const text = joined(content.partialText, phoneText(reasonFor(content.code), language))
        return this.#textFrame(text, toWireError(content.code))
      }
      case 'cancelled':
        return encodeStatus(agentId, this.address, { state: 'canceled', final: true })
      default:
        return assertNever(content)
    }
  }

  #textFrame(text: string, error?: ReturnType<typeof toWireError>): string {
    return encodeArtifact(this.#deps.settings.agentId, this.address, {
      artifactId: this.#deps.ids.uuid(),
      // An empty text that replaces would wipe what the phone shows.
      append: text === '',
      lastChunk: true,
      final: true,
      part: { text },
      ...(error === undefined ? {} : { error }),
    })
  }

  #sayWorking(): void {
    if (this.#phase !== 'open') return
    const { agentId, keepAliveText } = this.#deps.settings
    const state = this.#question === undefined ? 'working' : 'input-required'
    const said = this.#question ?? keepAliveText
    const text = said === undefined ? {} : { text: said }
    const link = this.#muted ? undefined : this.#route()
    link?.write(encodeStatus(agentId, this.address, { state, final: false, ...text }))
    this.#acknowledged ||= link !== undefined
    this.#keepAliveLater()
  }

  /** The pieces of all tasks go out on one beat, and so together. */
  #untilNextBeat(): number {
    const { pieceMs } = this.#deps.settings
    if (pieceMs < BEAT_MS) return pieceMs
    const now = this.#deps.clock.monotonic()
    return Math.ceil((now + pieceMs) / BEAT_MS) * BEAT_MS - now
  }

  #keepAliveLater(): void {
    this.#keepAlive.set(this.#deps.settings.keepAliveMs, () => this.#sayWorking())
  }

  #route(): Link | undefined {
    return this.#deps.route(this.#link, this.address.sessionId)
  }

  #stopTimers(): void {
    for (const slot of [this.#keepAlive, this.#pieces, this.#limit]) slot.cancel()
  }
}

export function joined(before: string, after: string): string {
  return before.trim() === '' ? after : `${before}\n\n${after}`
}

type Asked = Extract<TurnEvent, { readonly type: 'approval-requested' }>

const MAX_ARGUMENT_CHARS = 500

/** What the phone shows while a tool call waits for its user. */
export function questionText({ id, tool, arguments: given }: Asked, language: Language): string {
  const call = `${tool} ${cutMiddle(JSON.stringify(given), MAX_ARGUMENT_CHARS, () => '…')}`
  return language === 'zh'
    ? `需要你的同意才能运行：${call}\n回复 /approve ${id} 同意，或 /deny ${id} 拒绝。`
    : `May this run? ${call}\nAnswer /approve ${id} or /deny ${id}.`
}
