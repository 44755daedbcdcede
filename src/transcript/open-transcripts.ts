import type { Clock, Timer } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import type { SessionId } from '../core/ids.ts'
import type { FileLog } from './file-log.ts'
import type { TranscriptLimits } from './limits.ts'
import { GatewayError } from '../core/errors.ts'
import type { Blobs } from './blobs.ts'
import type { Transcript } from './store.ts'
import type { LogTranscript } from './transcript.ts'

export interface OpenTranscript {
  readonly log: FileLog
  readonly blobs: Blobs
  readonly transcript: LogTranscript
}

export interface TranscriptInUse extends Pick<OpenTranscript, 'transcript' | 'blobs'> {
  /** Lets go of it. Once. */
  release(): Promise<void>
}

export interface OpenTranscriptsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly limits: Pick<TranscriptLimits, 'cacheIdleMs' | 'cacheBytes' | 'cacheCount'>
  open(sessionId: SessionId, signal: AbortSignal): Promise<OpenTranscript>
}

interface Slot {
  readonly sessionId: SessionId
  readonly opening: Promise<OpenTranscript>
  /** The one whose wait it is: when they give up, others that wait try for themselves. */
  readonly openedFor: AbortSignal
  opened: OpenTranscript | undefined
  users: number
  /** It had to leave for want of room not long ago: more are in use than there is room for. */
  isBack: boolean
}

const REMEMBERED_LEFT = 4_096

interface Idle {
  readonly since: number
  readonly bytes: number
}

/**
 * The transcripts that are open, one object per session however many use it. Those not in use stay for a while, the
 * next message of a conversation is often close. What is kept is counted as it comes and goes: a look at every one of
 * them for each that is closed would cost more than it saves.
 */
export class OpenTranscripts {
  readonly #deps: OpenTranscriptsDeps
  readonly #slots = new Map<SessionId, Slot>()
  /** Those not in use, idle longest first. All of them are in `#slots`. */
  readonly #idle = new Map<Slot, Idle>()
  #idleBytes = 0
  /** Those that left last for want of room. */
  readonly #left = new Set<SessionId>()
  #sweep: Timer | undefined
  #closed = false

  constructor(deps: OpenTranscriptsDeps) {
    this.#deps = deps
  }

  /** Opens it, or joins those who have. */
  async use(sessionId: SessionId, signal: AbortSignal): Promise<TranscriptInUse> {
    for (;;) {
      const slot = this.#slotFor(sessionId, signal)
      slot.users++
      this.#noLongerIdle(slot)
      try {
        slot.opened = await slot.opening
        const { transcript, blobs } = slot.opened
        return { transcript, blobs, release: () => this.#release(slot) }
      } catch (error) {
        slot.users--
        this.#drop(slot)
        if (slot.openedFor === signal) throw error
        signal.throwIfAborted()
      }
    }
  }

  /** The one that is open under this id, if any; nothing is opened. */
  async peek(sessionId: SessionId): Promise<OpenTranscript | undefined> {
    return this.#slots.get(sessionId)?.opening.catch(() => undefined)
  }

  /** Ends it, also while it is in use: what was asked of it is finished, and its file can be moved. */
  async end(sessionId: SessionId): Promise<void> {
    const slot = this.#slots.get(sessionId)
    if (slot === undefined) return
    this.#drop(slot)
    const opened = await slot.opening.catch(() => undefined)
    await opened?.transcript.close()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweep?.cancel()
    for (const sessionId of this.#slots.keys()) await this.end(sessionId).catch(() => undefined)
  }

  #slotFor(sessionId: SessionId, signal: AbortSignal): Slot {
    const known = this.#slots.get(sessionId)
    if (known !== undefined && known.opened?.log.hasFailed !== true) return known
    if (known !== undefined) this.#drop(known)
    const slot: Slot = {
      sessionId,
      opening: this.#open(sessionId, known?.opened, signal),
      openedFor: signal,
      opened: undefined,
      users: 0,
      isBack: this.#left.delete(sessionId),
    }
    this.#slots.set(sessionId, slot)
    return slot
  }

  async #open(sessionId: SessionId, failed: OpenTranscript | undefined, signal: AbortSignal): Promise<OpenTranscript> {
    await failed?.transcript.close()
    return this.#deps.open(sessionId, signal)
  }

  #drop(slot: Slot): void {
    this.#noLongerIdle(slot)
    if (this.#slots.get(slot.sessionId) === slot) this.#slots.delete(slot.sessionId)
  }

  /** Of all transcripts in memory, in use or not. */
  get heldBytes(): number {
    let bytes = 0
    for (const { opened } of this.#slots.values()) bytes += opened?.transcript.heldBytes ?? 0
    return bytes
  }

  async #release(slot: Slot): Promise<void> {
    slot.users--
    await slot.opened?.transcript.settled()
    if (slot.users > 0 || this.#slots.get(slot.sessionId) !== slot) return
    this.#nowIdle(slot)
    await this.#evict(slot)
  }

  #nowIdle(slot: Slot): void {
    this.#noLongerIdle(slot)
    const bytes = slot.opened?.transcript.heldBytes ?? 0
    this.#idle.set(slot, { since: this.#deps.clock.monotonic(), bytes })
    this.#idleBytes += bytes
  }

  #noLongerIdle(slot: Slot): void {
    this.#idleBytes -= this.#idle.get(slot)?.bytes ?? 0
    this.#idle.delete(slot)
  }

  /**
   * Transcripts that are not in use are closed when they are old, or when all of them are too many or too large. One that
   * came back leaves before those that stayed: with more conversations than there is room for, one after the other, each
   * would otherwise drive out the one that is needed next, and none would be found here.
   */
  async #evict(released?: Slot): Promise<void> {
    const { clock, limits } = this.#deps
    const now = clock.monotonic()
    if (released?.isBack === true && this.#idle.has(released) && released.opened?.log.isBehind !== true) {
      if (!this.#fits) await this.#leave(released)
      released.isBack = false
    }
    for (let looks = this.#idle.size; looks > 0; looks--) {
      const [slot, { since }] = this.#idle.entries().next().value ?? [undefined, { since: now }]
      const isOld = now - since >= limits.cacheIdleMs
      if (slot === undefined || (this.#fits && !isOld)) break
      // Lines that are in the journal alone are written when the disk allows it again: that needs the transcript.
      if (slot.opened?.log.isBehind === true) this.#nowIdle(slot)
      else if (isOld) await this.end(slot.sessionId)
      else await this.#leave(slot)
    }
    if (this.#idle.size > 0) this.#startSweep()
  }

  get #fits(): boolean {
    const { cacheBytes, cacheCount } = this.#deps.limits
    return this.#idleBytes <= cacheBytes && this.#idle.size <= cacheCount
  }

  async #leave({ sessionId }: Slot): Promise<void> {
    this.#left.add(sessionId)
    const [first] = this.#left.size > REMEMBERED_LEFT ? this.#left : []
    if (first !== undefined) this.#left.delete(first)
    await this.end(sessionId)
  }

  #startSweep(): void {
    if (this.#closed) return
    const { clock, log, limits } = this.#deps
    this.#sweep ??= clock.after(limits.cacheIdleMs, () => {
      this.#sweep = undefined
      void this.#evict().catch((error: unknown) => {
        log.warn('idle transcripts could not be closed', { errno: errnoOf(error) })
      })
    })
  }
}

/** One opener's view of a shared transcript. Closing it ends this view only. */
export function createHandle(shared: LogTranscript, blobs: Blobs, onClose: () => Promise<void>): Transcript {
  let closed = false
  const live = (): LogTranscript => {
    if (closed)
      throw new GatewayError('TRANSCRIPT_CLOSED', 'the transcript was closed', { sessionId: shared.sessionId })
    return shared
  }
  const ask = <T>(question: (transcript: LogTranscript) => Promise<T>): Promise<T> => {
    try {
      return question(live())
    } catch (error) {
      return Promise.reject(error)
    }
  }
  return {
    sessionId: shared.sessionId,
    get header() {
      return shared.header
    },
    get leafId() {
      return shared.leafId
    },
    get repairs() {
      return shared.repairs
    },
    append: (drafts, options) => ask((transcript) => transcript.append(drafts, options)),
    context: () => ask((transcript) => transcript.context()),
    branch: (from) => ask((transcript) => transcript.branch(from)),
    async *entries() {
      yield* live().entries()
    },
    entry: (id) => ask((transcript) => transcript.entry(id)),
    branchTo: (id, options) => ask((transcript) => transcript.branchTo(id, options)),
    branchWithSummary: (id, summary, options) =>
      ask((transcript) => transcript.branchWithSummary(id, summary, options)),
    blob: (id) => blobs.get(id),
    async close() {
      if (closed) return
      closed = true
      await onClose()
    },
  }
}
