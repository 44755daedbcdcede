import type { Clock, Timer } from '../base/clock.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { Notice, Progress } from '../storage/storage.ts'
import type { Channels } from './delivery.ts'

export interface ProgressRelayDeps {
  readonly clock: Clock
  readonly storage: { tell?(notice: Notice): void }
  readonly channels: Channels
}

/** A turn that works here. */
interface RelayedTurn {
  readonly about: Progress['about']
  round: number
  /** Of the round. */
  text: string
  /** How many of its characters were sent to the other nodes. */
  sentChars: number
  sentWholeAt: number
  pending: SessionEvent[]
  timer: Timer | undefined
}

const RELAY_EVERY_MS = 100
/** A client that comes in the middle of an answer sees all of it after this time. */
const WHOLE_EVERY_MS = 2_000
/** The longest text of a round that is sent again from its beginning. */
const WHOLE_CHARS = 16_000
/** A notice takes 8000 bytes; of a character JSON makes six at most. */
const PIECE_CHARS = 1_000
/** Events of one turn that wait to be sent; more are dropped. */
const MOST_PENDING = 100
/** Turns that are relayed, and turns of other nodes that are shown here; the oldest is forgotten first. */
const MOST_TURNS = 1_000

/**
 * Shows what happens in a turn to a client that is connected to another node than the one that works. Events are sent
 * every 100 ms, of a text only what is new. Any of them may be lost; the text goes on when its beginning was sent again.
 */
export class ProgressRelay {
  readonly #deps: ProgressRelayDeps
  readonly #relayed = new Map<RunId, RelayedTurn>()
  readonly #shown = new Map<RunId, { round: number; length: number }>()

  constructor(deps: ProgressRelayDeps) {
    this.#deps = deps
  }

  /** Of a turn that works here. */
  show(event: SessionEvent, message: AcceptedMessage): void {
    const relayed = this.#relayedOf(message)
    const { event: what } = event
    if (what.type === 'text-delta') {
      if (what.round !== relayed.round)
        Object.assign(relayed, { round: what.round, text: '', sentChars: 0, sentWholeAt: 0 })
      relayed.text += what.delta
    }
    if (this.#isHere(message)) relayed.sentChars = 0
    else this.#add(event, relayed)
    if (what.type === 'turn-end') this.end(message.run)
  }

  /** Of a turn that works elsewhere, for a client that is connected here. */
  hear({ about, event, from }: Progress): void {
    const channel = this.#deps.channels.get(about.channel)
    if (channel?.reaches?.(about.account) !== true && channel?.awaited?.has(about.run) !== true) return
    const message: AcceptedMessage = { ...about, text: '', attachments: [], route: {} }
    const { event: what } = event
    if (what.type !== 'text-delta') this.#deps.channels.show(event, message)
    else {
      const delta = this.#newOf(about.run, { round: what.round, from: from ?? 0, text: what.delta })
      if (delta !== '') this.#deps.channels.show({ ...event, event: { ...what, delta } }, message)
    }
    if (what.type === 'turn-end') this.#shown.delete(about.run)
  }

  /** Its answer follows: nothing of it may come behind that. */
  end(run: RunId): void {
    const relayed = this.#relayed.get(run)
    if (relayed === undefined) return
    relayed.timer?.cancel()
    this.#relay(relayed)
    this.#relayed.delete(run)
  }

  close(): void {
    for (const run of [...this.#relayed.keys()]) this.end(run)
  }

  #isHere({ channel: name, account, run }: AcceptedMessage): boolean {
    const channel = this.#deps.channels.get(name)
    return channel?.reaches?.(account) ?? channel?.follows?.(run) ?? true
  }

  #relayedOf({ run, key, channel, account, messageId, replyTo, acceptedAt }: AcceptedMessage): RelayedTurn {
    const known = this.#relayed.get(run)
    if (known !== undefined) return known
    const about = { run, key, channel, account, messageId, replyTo, acceptedAt }
    const relayed: RelayedTurn = {
      about,
      round: -1,
      text: '',
      sentChars: 0,
      sentWholeAt: 0,
      pending: [],
      timer: undefined,
    }
    this.#relayed.set(run, relayed)
    // One that was stopped or taken away says nothing at its end.
    const [oldest] = this.#relayed.size > MOST_TURNS ? this.#relayed.keys() : []
    if (oldest !== undefined) this.end(oldest)
    return relayed
  }

  #add(event: SessionEvent, relayed: RelayedTurn): void {
    const { pending } = relayed
    const isText = event.event.type === 'text-delta'
    // The text is kept in `relayed`: one event is enough to have what is new of it sent.
    if (isText && pending.at(-1)?.event.type === 'text-delta') pending.pop()
    if (pending.length < MOST_PENDING) pending.push(event)
    relayed.timer ??= this.#deps.clock.after(RELAY_EVERY_MS, () => this.#relay(relayed))
  }

  #relay(relayed: RelayedTurn): void {
    const { about, pending } = relayed
    relayed.timer = undefined
    relayed.pending = []
    for (const event of pending) {
      const { event: what } = event
      if (what.type !== 'text-delta') this.#send({ about, event })
      else if (what.round === relayed.round) this.#relayText(event, relayed)
    }
  }

  #relayText(event: SessionEvent, relayed: RelayedTurn): void {
    const { about, round, text } = relayed
    const now = this.#deps.clock.monotonic()
    if (now - relayed.sentWholeAt >= WHOLE_EVERY_MS && text.length <= WHOLE_CHARS) {
      relayed.sentChars = 0
      relayed.sentWholeAt = now
    }
    for (; relayed.sentChars < text.length; relayed.sentChars += PIECE_CHARS) {
      const delta = text.slice(relayed.sentChars, relayed.sentChars + PIECE_CHARS)
      this.#send({ about, event: { ...event, event: { type: 'text-delta', round, delta } }, from: relayed.sentChars })
    }
    relayed.sentChars = text.length
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
