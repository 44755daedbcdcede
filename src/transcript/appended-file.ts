import { directoryOf, openIfThere, type FileHandle, type Files } from '../base/files.ts'

/** Something nobody finds on a disk: forces the next look to differ. */
const TO_BE_READ_AGAIN = 'to be read again'

/** Enough to tell where a line may begin. */
const FIRST_BYTES = 8

/** What is being written, and how much of it was kept before: characters and bytes. */
interface Batch {
  readonly bytes: Uint8Array
  readonly kept: number
  readonly keptBytes: number
}

/**
 * A transcript's file as its writer sees it: which file stood at the path when it was last read, and how long it was.
 * Open for appending while the lock is ours. Only the holder of the lock changes it here.
 */
export class AppendedFile {
  readonly path: string
  readonly #files: Files
  readonly #onSpoilt: (cause: unknown) => void
  #handle: FileHandle | undefined
  #identity: string | undefined
  /** Bytes the file holds. */
  #written = 0
  /** Lines that follow later, and how long they are. */
  #kept = ''
  #keptBytes = 0
  /** A write that could not be done at once, and what it writes. */
  #writing: Promise<void> | undefined
  #underWay: Batch | undefined
  /** Lines that are durable elsewhere and could not be written here yet. */
  #owed = ''
  #paying: Promise<void> | undefined

  /** `onSpoilt` hears of a part of a batch that could neither be completed nor be taken back. */
  constructor(files: Files, path: string, onSpoilt: (cause: unknown) => void) {
    this.#files = files
    this.path = path
    this.#onSpoilt = onSpoilt
  }

  /** With the lines that follow later. */
  get size(): number {
    return this.#written + this.#keptBytes
  }

  get keptBytes(): number {
    return this.#keptBytes
  }

  /** A write is under way: until it is over the file is not as anybody knows it. Never rejects. */
  get writing(): Promise<void> | undefined {
    return this.#writing?.catch(() => undefined)
  }

  get isThere(): boolean {
    return this.#identity !== undefined
  }

  get isOpen(): boolean {
    return this.#handle !== undefined
  }

  get isOwedLines(): boolean {
    return this.#owed !== ''
  }

  get owedLength(): number {
    return this.#owed.length
  }

  /** What a reader found at the path. */
  wasRead(identity: string | undefined, size: number): void {
    this.#identity = identity
    this.#written = size
  }

  /**
   * Others may have appended, replaced or removed the file, with the lock or, as pi does, without. While we hold the
   * lock and the file open, nobody who respects the lock replaces it: its size tells enough.
   */
  isAsKnown(): boolean {
    if (this.#handle !== undefined) return this.#handle.stat().size === this.#written
    const stat = this.#files.statNow(this.path)
    return stat?.identity === this.#identity && (stat?.size ?? 0) === this.#written
  }

  /** Undefined when there is no file. The caller closes it. */
  async openForReading(): Promise<FileHandle | undefined> {
    // Every conversation is new once: a look costs less than an error that comes back through the thread pool.
    if (this.#files.statNow(this.path) === undefined) return undefined
    return openIfThere(this.#files, this.path, 'read')
  }

  async openForAppending(): Promise<void> {
    this.#handle = await this.#files.open(this.path, 'append')
    this.#identity = this.#handle.stat().identity
  }

  /** Throws instead of doing nothing: a write or sync without a file must never look like a durable one. */
  get #openHandle(): FileHandle {
    if (this.#handle === undefined) throw new Error('the transcript file is not open')
    return this.#handle
  }

  /**
   * All of it, behind the lines that were kept, or nothing: then those are still kept. After `openForAppending`.
   * Undefined when it is done already.
   */
  append(text: string): Promise<void> | undefined {
    const earlier = this.writing
    if (earlier !== undefined) return earlier.then(() => this.append(text))
    const handle = this.#openHandle
    const batch = { bytes: Buffer.from(this.#kept + text), kept: this.#kept.length, keptBytes: this.#keptBytes }
    try {
      const writing = handle.write(batch.bytes)
      if (writing !== undefined) return this.#finish(handle, writing, batch)
    } catch (error) {
      return this.#finish(handle, Promise.reject(error), batch)
    }
    this.#wrote(batch)
    return undefined
  }

  /** Lines that are durable elsewhere and written later. */
  keep(text: string): void {
    this.#kept += text
    this.#keptBytes += Buffer.byteLength(text)
  }

  #finish(handle: FileHandle, writing: Promise<void>, batch: Batch): Promise<void> {
    const finished = writing.then(
      () => this.#wrote(batch),
      (error: unknown) => this.#takeBack(handle, batch.bytes, error),
    )
    this.#underWay = batch
    this.#writing = finished.finally(() => {
      this.#writing = undefined
      this.#underWay = undefined
    })
    return this.#writing
  }

  #wrote({ bytes, kept, keptBytes }: Batch): void {
    this.#written += bytes.length
    // More may have been kept meanwhile.
    this.#kept = this.#kept.slice(kept)
    this.#keptBytes -= keptBytes
  }

  /**
   * A part of a batch must not stay: the next one would be glued to it. It is what the file ends with: how long the file
   * was before nobody knows for sure, since others may have appended without the lock, and theirs must stay.
   */
  async #takeBack(handle: FileHandle, batch: Uint8Array, error: unknown): Promise<never> {
    try {
      const { size } = handle.stat()
      const from = Math.max(this.#written, size - batch.length)
      const end = size > from ? await handle.read(from, size - from) : new Uint8Array()
      const part = overlap(Buffer.from(end.buffer, end.byteOffset, end.length), batch)
      if (part > 0) await handle.truncate(size - part)
    } catch (cause) {
      this.#onSpoilt(cause)
    }
    throw error
  }

  async sync(): Promise<void> {
    await this.#openHandle.sync()
  }

  async syncName(): Promise<void> {
    await this.#files.syncDirectory(directoryOf(this.path))
  }

  /**
   * A last line without its newline gets one, and that is made durable before anything follows: a power cut that keeps
   * a later write and loses this one would glue somebody's entry to what comes after it.
   */
  async endLastLine(): Promise<void> {
    // Behind whatever the file holds by now: somebody may have appended without the lock.
    const handle = await this.#files.open(this.path, 'append')
    try {
      await handle.write('\n')
      await handle.sync()
    } finally {
      await handle.close()
    }
    this.#written++
  }

  owe(text: string): void {
    this.#owed += text
  }

  /** What was kept, but for what is being written, can only be written behind whatever the file holds by then. */
  oweKept(): void {
    const { kept, keptBytes } = this.#underWay ?? { kept: 0, keptBytes: 0 }
    this.#owed += this.#kept.slice(kept)
    this.#kept = this.#kept.slice(0, kept)
    this.#keptBytes = keptBytes
  }

  /** Writes what is owed behind whatever the file holds by now; whoever asks meanwhile waits for the same. */
  payOwed(): Promise<void> {
    this.#paying ??= this.#pay().finally(() => (this.#paying = undefined))
    return this.#paying
  }

  async #pay(): Promise<void> {
    if (this.#owed === '') return
    await this.close()
    const owed = this.#owed
    const handle = await this.#files.open(this.path, 'append')
    try {
      const { size } = handle.stat()
      const last = size === 0 ? undefined : (await handle.read(size - 1, 1))[0]
      try {
        await handle.write((last === undefined || last === 10 ? '' : '\n') + owed)
      } catch (error) {
        await handle.truncate(size)
        throw error
      }
    } finally {
      await handle.close()
    }
    this.#owed = this.#owed.slice(owed.length)
    this.#identity = TO_BE_READ_AGAIN
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await this.writing
    await handle?.close()
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
