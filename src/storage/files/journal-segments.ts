import { errnoOf, type FileHandle, type Files } from '../../base/files.ts'
import type { Log } from '../../base/log.ts'

export interface SegmentOptions {
  readonly files: Files
  readonly directory: string
  readonly log: Log
  readonly segmentBytes: number
  /** A next segment is made ready once this much was written: a home that is hardly used does not need one. */
  readonly prepareAfterBytes: number
  /** Why this process may no longer write here. */
  readonly fence: () => Error | undefined
}

interface Segment {
  readonly number: number
  readonly handle: FileHandle
  /** Bytes it holds already, used or not; beyond them it grows. */
  allocated: number
}

const ZEROS = Buffer.alloc(256 * 1024)

/**
 * The files a journal is written to, one after the other. The next one is filled with zeros and made durable in the
 * background: overwriting a file in place needs no change of its size, which makes a sync twice as fast. The log moves
 * there instead of growing; while there is no such file yet, the current one grows.
 */
export class JournalSegments {
  readonly #options: SegmentOptions
  #current: Segment | undefined
  #position = 0
  /** Bytes still to be written before the next segment is prepared. */
  #untilPreparing: number
  #next: Segment | undefined
  #preparing: Promise<void> | undefined
  #isClosing = false

  constructor(options: SegmentOptions) {
    this.#options = options
    this.#untilPreparing = options.prepareAfterBytes
  }

  /** Throws instead of doing nothing: a write or sync without a file must never look like a durable one. */
  get #open(): Segment {
    if (this.#current === undefined) throw new Error('the journal has no open segment')
    return this.#current
  }

  async start(number: number): Promise<void> {
    this.#use(await this.#create(number))
  }

  /** A failure may leave a part behind: see `undo`. */
  async write(bytes: Uint8Array): Promise<void> {
    const wouldGrow = this.#position + bytes.length > this.#open.allocated
    if (this.#next !== undefined && wouldGrow) await this.rotate()
    await this.#open.handle.write(bytes, this.#position)
  }

  /** Makes the last write durable. `bytes` is its length. */
  async sync(bytes: number): Promise<void> {
    await this.#open.handle.sync()
    this.#position += bytes
    this.#untilPreparing -= bytes
    if (this.#untilPreparing > 0 || this.#next !== undefined || this.#isClosing) return
    this.#preparing ??= this.#prepare().finally(() => {
      this.#preparing = undefined
    })
  }

  /** Takes back what a failed write may have left. */
  async undo(): Promise<void> {
    await this.#open.handle.truncate(this.#position)
    this.#open.allocated = this.#position
  }

  /** Goes on in the next segment; returns the number of the one that is complete. */
  async rotate(): Promise<number> {
    const complete = this.#open
    await this.#preparing
    this.#use(this.#next ?? (await this.#create(complete.number + 1)))
    this.#next = undefined
    await complete.handle.close()
    return complete.number
  }

  /** Ends the preparations, so that a rotation need not wait for them. */
  async settle(): Promise<void> {
    await this.#preparing
  }

  /** With `keepFiles` nothing is removed: another process may own the folder by now. */
  async close({ keepFiles }: { readonly keepFiles: boolean }): Promise<void> {
    this.#isClosing = true
    await this.#preparing
    // One that holds nothing is of no use to the next start.
    const blank = this.#position === 0 ? this.#current : undefined
    const next = this.#next
    for (const segment of [this.#current, next]) await segment?.handle.close()
    this.#current = undefined
    this.#next = undefined
    if (keepFiles) return
    for (const segment of [blank, next]) if (segment !== undefined) await this.#remove(segment)
  }

  async #remove({ handle }: Segment): Promise<void> {
    await this.#options.files.remove(handle.path)
  }

  #use(segment: Segment): void {
    this.#current = segment
    this.#position = 0
  }

  async #create(number: number): Promise<Segment> {
    const { files, directory } = this.#options
    const handle = await files.open(`${directory}/${number}.log`, 'create')
    await files.syncDirectory(directory)
    return { number, handle, allocated: 0 }
  }

  async #prepare(): Promise<void> {
    const { files, directory, log, segmentBytes, fence } = this.#options
    const number = this.#open.number + 1
    const path = `${directory}/${number}.log`
    try {
      const lost = fence()
      if (lost !== undefined) throw lost
      const handle = await files.open(path, 'create')
      try {
        for (let position = 0; position < segmentBytes; position += ZEROS.length) {
          await handle.write(ZEROS.subarray(0, Math.min(ZEROS.length, segmentBytes - position)), position)
        }
        await handle.sync()
        await files.syncDirectory(directory)
        this.#next = { number, handle, allocated: segmentBytes }
      } catch (error) {
        await handle.close()
        await files.remove(path)
        throw error
      }
    } catch (error) {
      // Most likely the disk is full: not again at every commit.
      this.#untilPreparing = segmentBytes
      log.warn('no segment of the journal could be made ready ahead; commits go on, slower', {
        errno: errnoOf(error),
      })
    }
  }
}
