import { isUtf8 } from 'node:buffer'
import type { FileHandle } from '../base/files.ts'
import { parseJsonInSlices, PIECE_BYTES } from '../base/sliced-json.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { SessionHeader } from '../core/entry.ts'
import { withBoundedDepth } from '../core/sound-message.ts'
import { EntryIndex } from './entry-index.ts'
import { kindOf, readHead, hasOddFields, isHeader, isMisshapen, toHeader } from './line.ts'
import { HeadScanner } from './head-scanner.ts'

export interface ScanOptions {
  readonly maxLineBytes: number
  /** Parse every line instead of trusting its first bytes: for `check` and `repair`. */
  readonly verify: boolean
  /** Of the first block; later ones grow eight times as large. */
  readonly blockBytes?: number
}

export interface Scan {
  readonly index: EntryIndex
  /** Undefined when no line of the file is one. */
  readonly header: SessionHeader | undefined
  /** Bytes read; what was appended later is not in the index. */
  readonly size: number
  readonly endsWithNewline: boolean
  /** Bytes behind the last newline when they are no readable line: a write that never finished. */
  readonly tornBytes: number
}

/**
 * The event loop runs between two blocks. A megabyte is about 1 ms of work once this code is warm and ten times that
 * before: hence the small beginning.
 */
const FIRST_BLOCK_BYTES = 128 * 1024
const GROWTH = 8
const NEWLINE = 10
/** More than any head takes. */
const HEAD_BYTES = 1024

/** Reads a whole file once, looking at the beginning of each line, and builds its index. */
export async function scanFile(handle: FileHandle, options: ScanOptions): Promise<Scan> {
  const { size } = handle.stat()
  const reader = new BlockReader(handle, size)
  try {
    return await scanBlocks(handle, reader, size, options)
  } finally {
    await reader.settle()
  }
}

async function scanBlocks(handle: FileHandle, reader: BlockReader, size: number, options: ScanOptions): Promise<Scan> {
  const scanner = new Scanner(options, size)
  let position = 0
  const firstBytes = options.blockBytes ?? FIRST_BLOCK_BYTES
  let usualBytes = firstBytes
  let blockBytes = firstBytes
  while (position < size) {
    const block = await reader.read(position, blockBytes)
    if (block.length === 0) break
    const isLast = position + block.length >= size
    const used = scanner.takeBlock(block, position, isLast)
    if (used > 0) {
      position += used
      usualBytes = Math.min(GROWTH * firstBytes, usualBytes * 1.25)
      blockBytes = Math.ceil(usualBytes)
    } else if (block.length <= options.maxLineBytes) {
      blockBytes *= 2
    } else {
      const head = Buffer.from(block.subarray(0, HEAD_BYTES))
      const end = await findNewline(reader, position + block.length, size, GROWTH * firstBytes)
      scanner.takeTooLong(head, position, end - position)
      position = end
      blockBytes = Math.ceil(usualBytes)
    }
  }
  await resolveCopies(handle, scanner.index)
  scanner.index.resolve()
  return scanner.finish(position)
}

/** Room before a block for the beginning of a line that the block before it ended in. */
const CARRY_BYTES = 256 * 1024

interface Block {
  readonly start: number
  readonly bytes: Buffer
}

/**
 * Blocks in ascending order, the next one read while the current one is looked at. Two pieces of memory for all of
 * them: a block is good until the next one is asked for.
 */
class BlockReader {
  readonly #handle: FileHandle
  readonly #size: number
  #memory = Buffer.alloc(0)
  #spare = Buffer.alloc(0)
  #current: Block | undefined
  #ahead: { readonly start: number; readonly filled: Promise<number> } | undefined

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle
    this.#size = size
  }

  /** About `length` bytes from `position` on, fewer only at the end of the file. */
  async read(position: number, length: number): Promise<Buffer> {
    const { readInto } = this.#handle
    if (readInto === undefined) {
      return toBuffer(await this.#handle.read(position, Math.min(length, this.#size - position)))
    }
    const bytes = (await this.#fromAhead(position)) ?? (await this.#readNow(position, length))
    this.#current = { start: position, bytes }
    this.#readAhead(position + bytes.length, length)
    return bytes
  }

  /** Nothing is read any more: the file can be closed. */
  async settle(): Promise<void> {
    await this.#ahead?.filled.catch(() => undefined)
  }

  /** The block that was read meanwhile, with what is left of the one before put in front of it. */
  async #fromAhead(position: number): Promise<Buffer | undefined> {
    const [ahead, current] = [this.#ahead, this.#current]
    if (ahead === undefined || current === undefined) return undefined
    const filled = await ahead.filled
    this.#ahead = undefined
    const carried = ahead.start - position
    if (carried < 0 || carried > CARRY_BYTES || position < current.start) return undefined
    const from = CARRY_BYTES - carried
    current.bytes.copy(this.#spare, from, position - current.start, ahead.start - current.start)
    const bytes = this.#spare.subarray(from, CARRY_BYTES + filled)
    ;[this.#memory, this.#spare] = [this.#spare, this.#memory]
    return bytes
  }

  async #readNow(position: number, length: number): Promise<Buffer> {
    const wanted = Math.min(length, this.#size - position)
    if (this.#memory.length < CARRY_BYTES + wanted) this.#memory = Buffer.allocUnsafe(CARRY_BYTES + wanted)
    const target = this.#memory.subarray(CARRY_BYTES, CARRY_BYTES + wanted)
    return target.subarray(0, (await this.#handle.readInto?.(target, position)) ?? 0)
  }

  #readAhead(start: number, length: number): void {
    const wanted = Math.min(length, this.#size - start)
    if (wanted <= 0) return
    if (this.#spare.length < CARRY_BYTES + wanted) this.#spare = Buffer.allocUnsafe(CARRY_BYTES + wanted)
    const filled = this.#handle.readInto?.(this.#spare.subarray(CARRY_BYTES, CARRY_BYTES + wanted), start)
    if (filled === undefined) return
    // The caller that asks for it gets the failure.
    filled.catch(() => undefined)
    this.#ahead = { start, filled }
  }
}

class Scanner {
  readonly index: EntryIndex
  readonly #options: ScanOptions
  readonly #head = new HeadScanner()
  #header: SessionHeader | undefined
  #line = 0
  #tornBytes = 0
  #endsWithNewline = true

  constructor(options: ScanOptions, fileBytes: number) {
    this.#options = options
    this.index = new EntryIndex(fileBytes)
  }

  /** Takes the whole lines of a block, and at the end of the file the rest; returns how many bytes that were. */
  takeBlock(block: Buffer, offset: number, isLast: boolean): number {
    let start = 0
    for (let end = block.indexOf(NEWLINE); end >= 0; end = block.indexOf(NEWLINE, start)) {
      this.#takeLine(block, start, end, offset + start, false)
      start = end + 1
    }
    if (!isLast || start === block.length) return start
    if (block.length - start > this.#options.maxLineBytes) return start
    this.#endsWithNewline = false
    this.#takeLine(block, start, block.length, offset + start, true)
    return block.length
  }

  /** A line that is too long to load: its place in the tree is kept when its head can be read. */
  takeTooLong(head: Buffer, offset: number, length: number, line = ++this.#line): void {
    const found = readHead(head, 0, head.length)
    this.index.note({ kind: 'too-long', line, bytes: length })
    this.index.lose(found?.id, found?.parentId)
    this.index.leaveOut(offset, length)
  }

  finish(size: number): Scan {
    return {
      index: this.index,
      header: this.#header,
      size,
      endsWithNewline: this.#endsWithNewline,
      tornBytes: this.#tornBytes,
    }
  }

  #takeLine(block: Buffer, start: number, end: number, offset: number, isTail: boolean): void {
    const line = ++this.#line
    if (isBlank(block, start, end)) return
    if (end - start > this.#options.maxLineBytes) {
      return this.takeTooLong(block.subarray(start, end), offset, end + 1 - start, line)
    }
    if (!this.#options.verify && this.#head.read(block, start, end)) {
      return this.index.addScanned(offset, end - start, line, this.#head)
    }
    this.#parseLine(block.subarray(start, end), offset, line, isTail)
  }

  #parseLine(bytes: Buffer, offset: number, line: number, isTail: boolean): void {
    const raw = parseJson(bytes.toString('utf8'))
    const length = bytes.length
    if (raw === undefined) return this.#loseLine(bytes, line, isTail)
    if (!isUtf8(bytes)) this.index.note({ kind: 'not-utf8', line, bytes: length })
    if (!isRecord(raw)) return this.index.note({ kind: 'wrong-shape', line, bytes: length })
    if (raw['type'] === 'session') {
      // Later headers are pi 0.73 writing its whole memory again; the first one counts.
      if (isHeader(raw)) this.#header ??= toHeader(raw)
      return
    }
    if (isMisshapen(raw)) this.index.note({ kind: 'wrong-shape', line, bytes: length })
    else if (this.#options.verify && hasOddFields(raw)) this.index.note({ kind: 'odd-fields', line, bytes: length })
    const { id, parentId } = raw
    this.index.add({
      offset,
      length,
      line,
      kind: kindOf(raw['type']),
      id: typeof id === 'string' && id !== '' ? id : undefined,
      parentId: typeof parentId === 'string' || parentId === null ? parentId : undefined,
    })
  }

  #loseLine(bytes: Buffer, line: number, isTail: boolean): void {
    const head = readHead(bytes, 0, bytes.length)
    this.index.lose(head?.id, head?.parentId)
    if (isTail) this.#tornBytes = bytes.length
    const kind = isTail ? 'torn-tail' : isUtf8(bytes) ? 'corrupt' : 'not-utf8'
    this.index.note({ kind, line, bytes: bytes.length })
  }
}

/** The position after the next newline, or the end of the file. */
async function findNewline(reader: BlockReader, from: number, size: number, blockBytes: number): Promise<number> {
  for (let position = from; position < size;) {
    const block = await reader.read(position, blockBytes)
    if (block.length === 0) return position
    const at = block.indexOf(NEWLINE)
    if (at >= 0) return position + at + 1
    position += block.length
  }
  return size
}

async function resolveCopies(handle: FileHandle, index: EntryIndex): Promise<void> {
  for (const [later, latest] of index.copies) {
    const earlier = index.originalOf(latest)
    const [one, other] = [await readRaw(handle, index, later), await readRaw(handle, index, earlier)]
    if (isSame(one, other)) index.dropCopy(later, earlier)
    else if (other === undefined) index.replaceUnreadable(later, earlier)
    else index.renameCopy(later, earlier)
  }
  index.forgetCopies()
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(withBoundedDepth(one)) === JSON.stringify(withBoundedDepth(other))
}

/** The parsed line of an entry; undefined when it does not parse. */
export async function readRaw(
  handle: FileHandle,
  index: EntryIndex,
  at: number,
): Promise<Record<string, unknown> | undefined> {
  const raw = await parseLine(toBuffer(await handle.read(index.offsetAt(at), index.lengthAt(at))), handle)
  return isRecord(raw) ? raw : undefined
}

/**
 * The value of a line, or the promise of it: a long one is parsed in pieces. Between two of them a read gives
 * everybody else a turn, as it does between two blocks of a scan.
 */
export function parseLine(line: Buffer, handle: FileHandle): unknown {
  if (line.length <= PIECE_BYTES) return parseJson(line.toString('utf8'))
  return parseJsonInSlices(line, () => handle.read(0, 1))
}

export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function isBlank(block: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = block[at]
    if (byte !== 32 && byte !== 9 && byte !== 13) return false
  }
  return true
}
