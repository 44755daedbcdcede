import type { Clock, Timer } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'

export type LiveEventName = 'session' | 'turn' | 'status' | 'link' | 'log' | 'reset'

export interface LiveEvent {
  readonly id: number
  readonly name: LiveEventName
  readonly data: JsonObject
}

export interface LiveLimits {
  readonly streams: number
  /** How many events a reader can have missed and still go on where it was. */
  readonly remembered: number
  /** What one reader may have unread before its stream ends. */
  readonly bufferedBytes: number
}

export const LIVE_LIMITS: LiveLimits = { streams: 32, remembered: 2_000, bufferedBytes: 1024 * 1024 }

const HEARTBEAT_MS = 15_000
const DELTA_EVERY_MS = 50

export interface StreamOptions {
  /** Deltas come only for this conversation. */
  readonly session?: string
  /** Go on behind this event. */
  readonly since?: number
  readonly logs: boolean
  /** Which conversations the reader may hear of. */
  maySee(key: string): boolean
}

interface Reader extends StreamOptions {
  write(text: string): void
  end(): void
  unread(): number
  /** A delta that waits for its beat. */
  pending: LiveEvent | undefined
}

/**
 * What happens, for pages that watch. Ids rise; the latest events are remembered so that a reader that lost its
 * connection goes on where it was. A slow reader loses deltas first, then its stream.
 */
export class LiveEvents {
  readonly #clock: Clock
  readonly #limits: LiveLimits
  readonly #remembered: LiveEvent[] = []
  readonly #readers = new Set<Reader>()
  #lastId = 0
  #beat: Timer | undefined
  #heartbeat: Timer | undefined
  readonly #heartbeatData: () => JsonObject

  constructor(deps: { readonly clock: Clock; heartbeat(): JsonObject }, limits: LiveLimits = LIVE_LIMITS) {
    this.#clock = deps.clock
    this.#limits = limits
    this.#heartbeatData = () => deps.heartbeat()
  }

  get streams(): number {
    return this.#readers.size
  }

  get isFull(): boolean {
    return this.#readers.size >= this.#limits.streams
  }

  /** True while a page watches this conversation: deltas are made for nobody else. */
  isWatched(key: string): boolean {
    for (const reader of this.#readers) if (reader.session === key) return true
    return false
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  emit(name: LiveEventName, data: JsonObject, key?: string): void {
    const event: LiveEvent = { id: ++this.#lastId, name, data }
    this.#remembered.push(event)
    if (this.#remembered.length > this.#limits.remembered) this.#remembered.shift()
    for (const reader of this.#readers) {
      if (!isFor(reader, name, key)) continue
      // A delta that came after the end of its turn would look like the beginning of another.
      if (name === 'turn') this.#sendDelta(reader)
      this.#send(reader, event)
    }
  }

  /** A piece of a growing answer: not remembered, at most one per beat, `merge` joins what waits with what is new. */
  emitDelta(key: string, data: JsonObject, merge: (waiting: JsonObject, added: JsonObject) => JsonObject): void {
    for (const reader of this.#readers) {
      if (reader.session !== key || !reader.maySee(key)) continue
      const waiting = reader.pending
      // Deltas carry the id of the last event: a reconnect must not skip anything that is remembered.
      const joined = waiting === undefined ? data : merge(waiting.data, data)
      reader.pending = { id: this.#lastId, name: 'turn', data: joined }
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
    for (const { name, data } of first) this.#send(reader, { id: this.#lastId, name, data })
    this.#heartbeat ??= this.#clock.after(HEARTBEAT_MS, () => this.#beatHeart())
  }

  #catchUp(reader: Reader): void {
    const { since } = reader
    if (since === undefined) return
    const oldest = this.#remembered[0]?.id ?? this.#lastId + 1
    if (since > this.#lastId || since < oldest - 1)
      return this.#send(reader, { id: this.#lastId, name: 'reset', data: {} })
    for (const event of this.#remembered) {
      const { key } = event.data
      if (event.id > since && isFor(reader, event.name, typeof key === 'string' ? key : undefined))
        this.#send(reader, event)
    }
  }

  #send(reader: Reader, event: LiveEvent): void {
    if (!this.#readers.has(reader)) return
    if (reader.unread() > this.#limits.bufferedBytes) return this.#end(reader)
    reader.write(`id: ${event.id}\nevent: ${event.name}\ndata: ${JSON.stringify(event.data)}\n\n`)
  }

  #flushDeltas(): void {
    this.#beat = undefined
    for (const reader of this.#readers) this.#sendDelta(reader)
  }

  #sendDelta(reader: Reader): void {
    const { pending } = reader
    reader.pending = undefined
    // Half full: deltas are the first to go, the stored answer is whole.
    if (pending !== undefined && reader.unread() < this.#limits.bufferedBytes / 2) this.#send(reader, pending)
  }

  #beatHeart(): void {
    this.#heartbeat = undefined
    if (this.#readers.size === 0) return
    const data = this.#heartbeatData()
    for (const reader of this.#readers) this.#send(reader, { id: this.#lastId, name: 'status', data })
    this.#heartbeat = this.#clock.after(HEARTBEAT_MS, () => this.#beatHeart())
  }

  #end(reader: Reader): void {
    if (!this.#readers.has(reader)) return
    this.#forget(reader)
    reader.end()
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader)
  }
}

function isFor(reader: Reader, name: LiveEventName, key: string | undefined): boolean {
  if (name === 'log') return reader.logs
  return key === undefined || reader.maySee(key)
}
