import { directoryOf, openIfThere, type FileHandle, type Files } from '../base/files.ts'

/** Something nobody finds on a disk: forces the next look to differ. */
const TO_BE_READ_AGAIN = 'to be read again'

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
  #size = 0
  /** Lines that are durable elsewhere and could not be written here yet. */
  #owed = ''

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
    this.#size = size
  }

  /**
   * Others may have appended, replaced or removed the file, with the lock or, as pi does, without. While we hold the
   * lock and the file open, nobody who respects the lock replaces it: its size tells enough.
   */
  isAsKnown(): boolean {
    if (this.#handle !== undefined) return this.#handle.stat().size === this.#size
    const stat = this.#files.statNow(this.path)
    return stat?.identity === this.#identity && (stat?.size ?? 0) === this.#size
  }

  /** Undefined when there is no file. The caller closes it. */
  openForReading(): Promise<FileHandle | undefined> {
    return openIfThere(this.#files, this.path, 'read')
  }

  async openForAppending(): Promise<void> {
    this.#handle = await this.#files.open(this.path, 'append')
    this.#identity = this.#handle.stat().identity
  }

  /** All of it or nothing. After `openForAppending`. Undefined when it is done already. */
  append(text: string): Promise<void> | undefined {
    const handle = this.#handle
    if (handle === undefined) throw new Error('the file is not open')
    const bytes = Buffer.from(text)
    try {
      const writing = handle.write(bytes)
      if (writing !== undefined) return this.#finish(handle, writing, bytes.length)
    } catch (error) {
      return this.#takeBack(handle, error)
    }
    this.#size += bytes.length
    return undefined
  }

  async #finish(handle: FileHandle, writing: Promise<void>, bytes: number): Promise<void> {
    try {
      await writing
    } catch (error) {
      await this.#takeBack(handle, error)
    }
    this.#size += bytes
  }

  /** A part of a batch must not stay: the next one would be glued to it. */
  async #takeBack(handle: FileHandle, error: unknown): Promise<never> {
    await handle.truncate(this.#size).catch(this.#onSpoilt)
    throw error
  }

  async sync(): Promise<void> {
    await this.#handle?.sync()
  }

  async syncName(): Promise<void> {
    await this.#files.syncDirectory(directoryOf(this.path))
  }

  /**
   * A last line without its newline gets one, and that is made durable before anything follows: a power cut that keeps
   * a later write and loses this one would glue somebody's entry to what comes after it.
   */
  async endLastLine(): Promise<void> {
    const handle = await this.#files.open(this.path, 'update')
    try {
      await handle.write('\n', this.#size)
      await handle.sync()
    } finally {
      await handle.close()
    }
    this.#size++
  }

  owe(text: string): void {
    this.#owed += text
  }

  /** Writes what is owed behind whatever the file holds by now. */
  async payOwed(): Promise<void> {
    if (this.#owed === '') return
    await this.close()
    const handle = await this.#files.open(this.path, 'append')
    try {
      const { size } = handle.stat()
      const last = size === 0 ? undefined : (await handle.read(size - 1, 1))[0]
      try {
        await handle.write((last === undefined || last === 10 ? '' : '\n') + this.#owed)
      } catch (error) {
        await handle.truncate(size)
        throw error
      }
    } finally {
      await handle.close()
    }
    this.#owed = ''
    this.#identity = TO_BE_READ_AGAIN
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }
}
