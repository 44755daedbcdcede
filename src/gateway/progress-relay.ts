import type { Clock, Timer } from '../base/clock.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { Notice, Progress } from '../storage/storage.ts'
import type { Channels } from './channels.ts'

export interface ProgressRelayDeps {
  readonly clock: Clock
  readonly storage: { tell?(notice: Notice): void }
  readonly channels: Channels
}

/** A turn that works here. */
interface Telling {
  readonly about: Progress['about']
  round: number
  /** Of the round. */
  text: string
  /** How much of it the other nodes were told. */
  told: number
  toldWholeAt: number
  pending: SessionEvent[]
  timer: Timer | undefined
}

const TELL_EVERY_MS = 100
/** A client that comes in the middle of an answer sees all of it after this time. */
const WHOLE_EVERY_MS = 2_000
/** The longest text of a round that is told again from its beginning. */
const WHOLE_CHARS = 16_000
/** A notice takes 8000 bytes; of a character JSON makes six at most. */
const PIECE_CHARS = 1_000
/** Events of one turn between two tellings; more are dropped. */
const MOST_PENDING = 100
/** Turns that are told of, and turns of other nodes that are shown here; the oldest is forgotten first. */
const MOST_TURNS = 1_000

/**
 * Shows what happens in a turn to a client that is connected to another node than the one that works: told every 100 ms,
 * texts as what is new of them. Anything of it may be lost; a text goes on once its beginning was told again.
 */
export class ProgressRelay {
  readonly #deps: ProgressRelayDeps
  readonly #telling = new Map<RunId, Telling>()
  readonly #shown = new Map<RunId, { round: number; length: number }>()

  constructor(deps: ProgressRelayDeps) {
    this.#deps = deps
  }

  /** Of a turn that works here. */
  show(event: SessionEvent, message: AcceptedMessage): void {
    if (this.#deps.storage.tell === undefined) return
    const telling = this.#tellingOf(message)
    const { event: what } = event
    if (what.type === 'text-delta') {
      if (what.round !== telling.round) Object.assign(telling, { round: what.round, text: '', told: 0, toldWholeAt: 0 })
      telling.text += what.delta
    }
    if (this.#isHere(message)) telling.told = 0
    else this.#add(event, telling)
    if (what.type === 'turn-end') this.end(message.run)
  }

  /** Of a turn that works elsewhere, for a client that is connected here. */
  hear({ about, event, from }: Progress): void {
    const channel = this.#deps.channels.get(about.channel)
    if (channel?.reaches?.(about.account) !== true && channel?.awaited?.has(about.run) !== true) return
    const message: AcceptedMessage = { ...about, text: '', attachments: [], route: {} }
    const { event: what } = event
    if (what.type !== 'text-delta') channel.observe(event, message)
    else {
      const delta = this.#newOf(about.run, { round: what.round, from: from ?? 0, text: what.delta })
      if (delta !== '') channel.observe({ ...event, event: { ...what, delta } }, message)
    }
    if (what.type === 'turn-end') this.#shown.delete(about.run)
  }

  /** Its answer follows: nothing of it may come behind that. */
  end(run: RunId): void {
    const telling = this.#telling.get(run)
    if (telling === undefined) return
    telling.timer?.cancel()
    this.#tell(telling)
    this.#telling.delete(run)
  }

  close(): void {
    for (const run of [...this.#telling.keys()]) this.end(run)
  }

  #isHere({ channel: name, account, run }: AcceptedMessage): boolean {
    const channel = this.#deps.channels.get(name)
    return channel?.reaches?.(account) ?? channel?.follows?.(run) ?? true
  }

  #tellingOf({ run, key, channel, account, messageId, replyTo, acceptedAt }: AcceptedMessage): Telling {
    const known = this.#telling.get(run)
    if (known !== undefined) return known
    const about = { run, key, channel, account, messageId, replyTo, acceptedAt }
    const telling: Telling = { about, round: -1, text: '', told: 0, toldWholeAt: 0, pending: [], timer: undefined }
    this.#telling.set(run, telling)
    // One that was stopped or taken away says nothing at its end.
    const [oldest] = this.#telling.size > MOST_TURNS ? this.#telling.keys() : []
    if (oldest !== undefined) this.end(oldest)
    return telling
  }

  #add(event: SessionEvent, telling: Telling): void {
    const { pending } = telling
    const isText = event.event.type === 'text-delta'
    // What is told of a text is what is new when it is told.
    if (isText && pending.at(-1)?.event.type === 'text-delta') pending.pop()
    if (pending.length < MOST_PENDING) pending.push(event)
    telling.timer ??= this.#deps.clock.after(TELL_EVERY_MS, () => this.#tell(telling))
  }

  #tell(telling: Telling): void {
    const { about, pending } = telling
    telling.timer = undefined
    telling.pending = []
    for (const event of pending) {
      const { event: what } = event
      if (what.type !== 'text-delta') this.#send({ about, event })
      else if (what.round === telling.round) this.#tellText(event, telling)
    }
  }

  #tellText(event: SessionEvent, telling: Telling): void {
    const { about, round, text } = telling
    const now = this.#deps.clock.monotonic()
    if (now - telling.toldWholeAt >= WHOLE_EVERY_MS && text.length <= WHOLE_CHARS) {
      telling.told = 0
      telling.toldWholeAt = now
    }
    for (; telling.told < text.length; telling.told += PIECE_CHARS) {
      const delta = text.slice(telling.told, telling.told + PIECE_CHARS)
      this.#send({ about, event: { ...event, event: { type: 'text-delta', round, delta } }, from: telling.told })
    }
    telling.told = text.length
  }

  #send(progress: Progress): void {
    this.#deps.storage.tell?.({ kind: 'progress', progress })
  }

  /** What of a piece was not shown yet; nothing when something before it is missing. */
  #newOf(run: RunId, piece: { readonly round: number; readonly from: number; readonly text: string }): string {
    const known = this.#shown.get(run)
    const length = known?.round === piece.round ? known.length : 0
    const end = piece.from + piece.text.length
    if (piece.from > length || end <= length || piece.round < (known?.round ?? 0)) return ''
    this.#shown.delete(run)
    this.#shown.set(run, { round: piece.round, length: end })
    const [oldest] = this.#shown.size > MOST_TURNS ? this.#shown.keys() : []
    if (oldest !== undefined) this.#shown.delete(oldest)
    return piece.text.slice(length - piece.from)
  }
}
