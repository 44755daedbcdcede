import type { FileHandle } from '../base/files.ts'
import { toBuffer } from './scan.ts'

const NEWLINE = 10

/** Whole lines of a file. `bytes` is good until the next block but one is asked for. */
export interface LineBlock {
  readonly bytes: Buffer
  /** Where in the file `bytes` begins. */
  readonly offset: number
  /** Where in `bytes` the first whole line begins. */
  readonly start: number
}

interface Ahead {
  readonly offset: number
  readonly bytes: Promise<Buffer>
}

/**
 * A file block by block from its end to its start, the next block read while the caller works on the current one. Two
 * pieces of memory serve all of them: fresh memory costs more than the read.
 */
export class BlocksFromEnd {
  readonly size: number
  /** Of the blocks to come. */
  blockBytes: number
  readonly #handle: FileHandle
  readonly #maxLineBytes: number
  #memory = Buffer.alloc(0)
  #spare = Buffer.alloc(0)
  #end: number
  #ahead: Ahead | undefined
  /** The read that was started last; an earlier one is over by then. */
  #latest: Promise<unknown> | undefined

  constructor(handle: FileHandle, blockBytes: number, maxLineBytes: number) {
    this.#handle = handle
    this.#maxLineBytes = maxLineBytes
    this.size = handle.stat().size
    this.blockBytes = blockBytes
    this.#end = this.size
  }

  /** Undefined at the start of the file, and when a line is longer than the limit. */
  async next(): Promise<LineBlock | undefined> {
    if (this.#end === 0) return undefined
    for (let blockBytes = this.blockBytes; ; blockBytes *= 2) {
      const ahead = this.#ahead ?? this.#read(blockBytes)
      this.#ahead = undefined
      const { offset } = ahead
      const bytes = await ahead.bytes
      const start = offset === 0 ? 0 : bytes.indexOf(NEWLINE) + 1
      // The newline at the very end of the block closes a line that began before it.
      if (offset === 0 || (start > 0 && start < bytes.length)) {
        this.#end = offset + start
        if (this.#end > 0) this.#ahead = this.#read(this.blockBytes)
        return { bytes, offset, start }
      }
      if (blockBytes > this.#maxLineBytes) return undefined
    }
  }

  /** Nothing is read any more: the file can be closed. */
  async settle(): Promise<void> {
    await this.#latest
  }

  #read(blockBytes: number): Ahead {
    const offset = Math.max(0, this.#end - blockBytes)
    const bytes = this.#fill(offset, this.#end - offset)
    // The caller that asks for it gets the failure.
    this.#latest = bytes.catch(() => undefined)
    return { offset, bytes }
  }

  async #fill(offset: number, length: number): Promise<Buffer> {
    const handle = this.#handle
    if (handle.readInto === undefined) return toBuffer(await handle.read(offset, length))
    ;[this.#memory, this.#spare] = [this.#spare, this.#memory]
    if (this.#memory.length < length) this.#memory = Buffer.allocUnsafeSlow(length)
    const target = this.#memory.subarray(0, length)
    return target.subarray(0, await handle.readInto(target, offset))
  }
}
