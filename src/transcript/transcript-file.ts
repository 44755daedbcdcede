import { directoryOf, openIfThere, type FileHandle, type Files, errnoOf } from '../base/files.ts'
import type { Clock, Timer } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

/** An identity that no file has: forces the next look to differ. */
const TO_BE_READ_AGAIN = 'to be read again'

/** Enough to tell where a line may begin. */
const FIRST_BYTES = 8

/**
 * A transcript's file as its writer sees it: which file stood at the path when it was last read, and how long it was.
 * Only the holder of the session's lock changes it here; others may append without the lock, as pi does.
 */
export class TranscriptFile {
  readonly path: string
  readonly #files: Files
  readonly #onSpoilt: (cause: unknown) => void
  #handle: FileHandle | undefined
  #identity: string | undefined
  #size = 0

  /** `onSpoilt` hears of a part of a batch that could neither be completed nor be taken back. */
  constructor(files: Files, path: string, onSpoilt: (cause: unknown) => void) {
    this.#files = files
    this.path = path
    this.#onSpoilt = onSpoilt
  }

  get size(): number {
    return this.#size
  }

  get isThere(): boolean {
    return this.#identity !== undefined
  }

  /** What a reader found at the path. */
  recordStat(identity: string | undefined, size: number): void {
    this.#identity = identity
    this.#size = size
  }

  /** False when others have appended to the file, replaced it or removed it since we last read or wrote it. */
  matchesLastStat(): boolean {
    const stat = this.#files.statSync(this.path)
    return stat?.identity === this.#identity && (stat?.size ?? 0) === this.#size
  }

  /** Undefined when there is no file. The caller closes it. */
  async openForReading(): Promise<FileHandle | undefined> {
    // Every conversation is new once: a look costs less than an error that comes back through the thread pool.
    if (this.#files.statSync(this.path) === undefined) return undefined
    return openIfThere(this.#files, this.path, 'read')
  }

  /** Writes all of the text behind what the file holds, or nothing. Creates the file when it is missing. */
  async append(text: string): Promise<void> {
    const handle = this.#handle ?? (await this.#open())
    const bytes = Buffer.from(text)
    try {
      await handle.write(bytes)
    } catch (error) {
      await this.#takeBack(handle, bytes)
      throw error
    }
    this.#size += bytes.length
  }

  /**
   * Writes lines behind whatever the file holds by now, on a line of their own. What stands where is known again only
   * after the next read.
   */
  async appendBehindOthers(text: string): Promise<void> {
    await this.close()
    const handle = await this.#files.open(this.path, 'append')
    try {
      const { size } = handle.stat()
      const last = size === 0 ? undefined : (await handle.read(size - 1, 1))[0]
      try {
        await handle.write((last === undefined || last === 10 ? '' : '\n') + text)
      } catch (error) {
        await handle.truncate(size)
        throw error
      }
    } finally {
      await handle.close()
    }
    this.#identity = TO_BE_READ_AGAIN
  }

  /** Makes what was appended durable. Throws when nothing was: a sync without a file must not look like a durable one. */
  async sync(): Promise<void> {
    if (this.#handle === undefined) throw new Error('the transcript file is not open')
    await this.#handle.sync()
  }

  async syncName(): Promise<void> {
    await this.#files.syncDirectory(directoryOf(this.path))
  }

  /**
   * A last line without its newline gets one, and that is made durable before anything follows: a power cut that keeps
   * a later write and loses this one would glue another program's entry to what comes after it.
   */
  async endLastLine(): Promise<void> {
    // Behind whatever the file holds by now: another program may have appended without the lock.
    const handle = await this.#files.open(this.path, 'append')
    try {
      await handle.write('\n')
      await handle.sync()
    } finally {
      await handle.close()
    }
    this.#size++
  }

  /** Gives the descriptor back; the next append opens the file again. */
  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  async #open(): Promise<FileHandle> {
    const handle = await this.#files.open(this.path, 'append')
    this.#handle = handle
    this.#identity = handle.stat().identity
    return handle
  }

  /**
   * A part of a batch must not stay: the next one would be glued to it. It is what the file ends with; how long the file
   * was before is not certain, since others may have appended without the lock, and theirs must stay.
   */
  async #takeBack(handle: FileHandle, batch: Uint8Array): Promise<void> {
    try {
      const { size } = handle.stat()
      const from = Math.max(this.#size, size - batch.length)
      const end = size > from ? await handle.read(from, size - from) : new Uint8Array()
      const part = overlap(Buffer.from(end.buffer, end.byteOffset, end.length), batch)
      if (part > 0) await handle.truncate(size - part)
    } catch (cause) {
      this.#onSpoilt(cause)
    }
  }
}

/** How many bytes at the end of the one are the beginning of the other, at most. */
function overlap(end: Buffer, beginning: Uint8Array): number {
  const first = beginning.subarray(0, FIRST_BYTES)
  for (let at = end.indexOf(first); at >= 0; at = end.indexOf(first, at + 1)) {
    if (end.subarray(at).equals(beginning.subarray(0, end.length - at))) return end.length - at
  }
  for (let length = Math.min(first.length - 1, end.length); length > 0; length--) {
    if (end.subarray(end.length - length).equals(beginning.subarray(0, length))) return length
  }
  return 0
}

/** Something that keeps descriptors open and can give them back. */
export interface OpenFile {
  /** Gives them back until the next use; does nothing in the middle of one. */
  rest(): Promise<void>
}

export interface OpenFilesDeps {
  readonly clock: Clock
  readonly log: Log
  readonly max: number
  /** Not written for so long, a file and its lock are given back. */
  readonly restAfterMs: number
}

/**
 * Which transcripts keep their file and lock open: those written lately, and no more than the limit. The appends of one
 * message and of the next ones share a lock, and a model that thinks for long holds none.
 */
export class OpenFiles {
  readonly #deps: OpenFilesDeps
  /** With the time of the last use; used longest ago first. */
  readonly #open = new Map<OpenFile, number>()
  readonly #resting = new Set<Promise<void>>()
  #look: Timer | undefined

  constructor(deps: OpenFilesDeps) {
    this.#deps = deps
  }

  use(file: OpenFile): void {
    this.#open.delete(file)
    this.#open.set(file, this.#deps.clock.monotonic())
    this.#lookLater()
    const [oldest] = this.#open.keys()
    if (this.#open.size > this.#deps.max && oldest !== undefined) this.#rest(oldest)
  }

  forget(file: OpenFile): void {
    this.#open.delete(file)
  }

  async close(): Promise<void> {
    this.#look?.cancel()
    while (this.#resting.size > 0) await Promise.all(this.#resting)
  }

  #lookLater(): void {
    const { clock, restAfterMs } = this.#deps
    this.#look ??= clock.after(restAfterMs, () => {
      this.#look = undefined
      const longAgo = clock.monotonic() - restAfterMs
      for (const [file, usedAt] of this.#open) if (usedAt <= longAgo) this.#rest(file)
      if (this.#open.size > 0) this.#lookLater()
    })
  }

  #rest(file: OpenFile): void {
    this.#open.delete(file)
    const resting = file.rest().catch((error: unknown) => {
      this.#deps.log.warn('a transcript file could not be closed', { errno: errnoOf(error) })
    })
    this.#resting.add(resting)
    void resting.finally(() => this.#resting.delete(resting))
  }
}
