import type { Clock, Timer } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'

export type LiveEventName = 'session' | 'turn' | 'status' | 'link' | 'log' | 'reset'

export interface LiveLimits {
  readonly streams: number
  /** How many events a reader can have missed and still go on where it was. */
  readonly remembered: number
  /** What those may hold together; the oldest go first. */
  readonly rememberedBytes: number
  /** What one reader may have unread before its stream ends. */
  readonly bufferedBytes: number
}

export const LIVE_LIMITS: LiveLimits = {
  streams: 32,
  remembered: 2_000,
  rememberedBytes: 4 * 1024 * 1024,
  bufferedBytes: 1024 * 1024,
}

const HEARTBEAT_MS = 15_000
const DELTA_EVERY_MS = 50
/** A page that was away for longer reads everything anew. */
const COMES_BACK_WITHIN_MS = 60 * 60_000

export interface StreamOptions {
  /** Deltas come only for this conversation. */
  readonly session?: string
  /** Go on behind this event; 0 is the beginning. */
  readonly since?: number
  readonly logs: boolean
  /** True for clients that may see the status and the links, which name every conversation and channel. */
  readonly admin: boolean
  /** Which conversations the reader may hear of. */
  maySee(key: string): boolean
}

interface Remembered {
  readonly id: number
  readonly name: LiveEventName
  readonly key: string | undefined
  readonly json: string
}

interface Reader extends StreamOptions {
  write(text: string): void
  end(): void
  unread(): number
  /** A delta that waits for its beat. */
  pending: JsonObject | undefined
}

/**
 * What happens, for pages that watch. Every event has a number of its own, and numbers rise over restarts too; the latest
 * events are remembered so that a reader that lost its connection goes on where it was. A slow reader loses deltas
 * first, then its stream.
 */
export class LiveEvents {
  readonly #clock: Clock
  readonly #limits: LiveLimits
  readonly #remembered: Remembered[] = []
  readonly #readers = new Set<Reader>()
  readonly #firstId: number
  /** Events up to here cannot be sent again. */
  #forgottenId: number
  #rememberedBytes = 0
  #lastId: number
  #lastLeftAt = -Infinity
  #beat: Timer | undefined
  #heartbeat: Timer | undefined
  readonly #heartbeatData: () => Promise<JsonObject>

  constructor(deps: { readonly clock: Clock; heartbeat(): Promise<JsonObject> }, limits: LiveLimits = LIVE_LIMITS) {
    this.#clock = deps.clock
    this.#limits = limits
    this.#heartbeatData = () => deps.heartbeat()
    // From the time: a number of an earlier life must not be taken for one of this life.
    this.#firstId = Math.max(0, deps.clock.now())
    this.#lastId = this.#firstId
    this.#forgottenId = this.#firstId
  }

  get streams(): number {
    return this.#readers.size
  }

  get isFull(): boolean {
    return this.#readers.size >= this.#limits.streams
  }

  /** True while a page watches this conversation: without one, deltas are not made. */
  isWatched(key: string): boolean {
    for (const reader of this.#readers) if (reader.session === key) return true
    return false
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  /** A page is open, or was not long ago and may ask for what it missed: without one, events are not made. */
  get isFollowed(): boolean {
    return this.hasReaders || this.#clock.monotonic() - this.#lastLeftAt < COMES_BACK_WITHIN_MS
  }

  /** Something happened that no event was made of: a page that asks for what was before is to read everything anew. */
  skip(): void {
    this.#forgottenId = ++this.#lastId
    this.#remembered.length = 0
    this.#rememberedBytes = 0
  }

  /** An event that is remembered, also while there is no reader: one that comes back has missed it. */
  emit(name: LiveEventName, data: JsonObject, key?: string): void {
    const event: Remembered = { id: ++this.#lastId, name, key, json: JSON.stringify(data) }
    this.#remember(event)
    for (const reader of this.#readers) {
      if (!isFor(reader, name, key)) continue
      // A delta that came after the end of its turn would look like the beginning of another.
      if (name === 'turn') this.#sendDelta(reader)
      this.#send(reader, name, event.json, event.id)
    }
  }

  /** The state as it is now: the next one replaces it, so it is not remembered. */
  emitStatus(data: JsonObject): void {
    for (const reader of this.#readers) this.#sendStatus(reader, data)
  }

  /** A piece of a growing answer: not remembered, at most one per beat, `merge` joins what waits with what is new. */
  emitDelta(key: string, data: JsonObject, merge: (waiting: JsonObject, added: JsonObject) => JsonObject): void {
    for (const reader of this.#readers) {
      if (reader.session !== key || !reader.maySee(key)) continue
      reader.pending = reader.pending === undefined ? data : merge(reader.pending, data)
    }
    this.#beat ??= this.#clock.after(DELTA_EVERY_MS, () => this.#flushDeltas())
  }

  open(
    options: StreamOptions,
    first: readonly { readonly name: LiveEventName; readonly data: JsonObject }[],
  ): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder()
    let reader: Reader | undefined
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          reader = {
            ...options,
            pending: undefined,
            write: (text) => controller.enqueue(encoder.encode(text)),
            end: () => controller.close(),
            unread: () => -(controller.desiredSize ?? 0),
          }
          this.#begin(reader, first)
        },
        cancel: () => {
          if (reader !== undefined) this.#forget(reader)
        },
      },
      { highWaterMark: 0, size: (chunk) => chunk?.byteLength ?? 0 },
    )
  }

  close(): void {
    this.#beat?.cancel()
    this.#heartbeat?.cancel()
    for (const reader of [...this.#readers]) this.#end(reader)
  }

  #begin(reader: Reader, first: readonly { readonly name: LiveEventName; readonly data: JsonObject }[]): void {
    this.#readers.add(reader)
    reader.write(': clew\n\n')
    this.#catchUp(reader)
    for (const { name, data } of first) this.#sendNew(reader, name, data)
    this.#heartbeat ??= this.#clock.after(HEARTBEAT_MS, () => void this.#beatHeart())
  }

  #catchUp(reader: Reader): void {
    const { since } = reader
    if (since === undefined) return
    const behind = since === 0 ? this.#firstId : since
    if (behind > this.#lastId || behind < this.#forgottenId) return this.#sendNew(reader, 'reset', {})
    for (const { id, name, key, json } of this.#remembered) {
      if (id > behind && isFor(reader, name, key)) this.#send(reader, name, json, id)
    }
  }

  #remember(event: Remembered): void {
    this.#remembered.push(event)
    this.#rememberedBytes += event.json.length
    const { remembered, rememberedBytes } = this.#limits
    while (this.#remembered.length > remembered || this.#rememberedBytes > rememberedBytes) {
      const oldest = this.#remembered.shift()
      if (oldest === undefined) return
      this.#forgottenId = oldest.id
      this.#rememberedBytes -= oldest.json.length
    }
  }

  #sendNew(reader: Reader, name: LiveEventName, data: JsonObject): void {
    this.#send(reader, name, JSON.stringify(data), ++this.#lastId)
  }

  #send(reader: Reader, name: LiveEventName, json: string, id: number): void {
    if (!this.#readers.has(reader)) return
    if (reader.unread() > this.#limits.bufferedBytes) return this.#end(reader)
    reader.write(`id: ${id}\nevent: ${name}\ndata: ${json}\n\n`)
  }

  #flushDeltas(): void {
    this.#beat = undefined
    for (const reader of this.#readers) this.#sendDelta(reader)
  }

  #sendDelta(reader: Reader): void {
    const { pending } = reader
    reader.pending = undefined
    // Half full: deltas are the first to go, the stored answer is whole.
    if (pending !== undefined && reader.unread() < this.#limits.bufferedBytes / 2)
      this.#sendNew(reader, 'turn', pending)
  }

  /** Others than admins get the sign of life alone. */
  #sendStatus(reader: Reader, data: JsonObject): void {
    this.#sendNew(reader, 'status', reader.admin ? data : {})
  }

  async #beatHeart(): Promise<void> {
    this.#heartbeat = undefined
    if (this.#readers.size === 0) return
    this.#heartbeat = this.#clock.after(HEARTBEAT_MS, () => void this.#beatHeart())
    // Without a status the stream still has to show that it lives.
    this.emitStatus(await this.#heartbeatData().catch(() => ({})))
  }

  #end(reader: Reader): void {
    if (!this.#readers.has(reader)) return
    this.#forget(reader)
    reader.end()
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader)
    this.#lastLeftAt = this.#clock.monotonic()
  }
}

function isFor(reader: Reader, name: LiveEventName, key: string | undefined): boolean {
  if (name === 'log') return reader.logs
  if (name === 'link') return reader.admin
  return key === undefined || reader.maySee(key)
}
