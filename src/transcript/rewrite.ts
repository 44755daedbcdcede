import { isUtf8 } from 'node:buffer'
import { removeUnfinished, writeAtomically } from '../base/atomic-write.ts'
import { directoryOf, type FileHandle, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { SessionHeader } from '../core/entry.ts'
import { withBoundedDepth } from '../core/sound-message.ts'
import type { EntryIndex } from './entry-index.ts'
import { encodeHeader, encodeLine, FORMAT_VERSION, movedLine } from './line.ts'
import { migrateRaw } from './migrate.ts'
import { toBuffer, type Scan } from './scan.ts'

export interface RewriteOptions {
  readonly files: Files
  readonly ids: Ids
  readonly path: string
  readonly scan: Scan
  readonly header: SessionHeader
  /** Name for the byte-identical copy of the old file; undefined makes none. */
  readonly backupPath: string | undefined
  /** Lines of our own at the end. */
  readonly extraLines: readonly string[]
}

const COPY_BYTES = 1024 * 1024

/**
 * The same transcript as a sound file: header first, every entry under the id and parent the index gives it, unreadable
 * lines left out. Backup, new file, sync, rename, sync of the folder, same mode; a crash leaves the old file or the new
 * one. Call with the session's lock held.
 */
export async function rewriteTranscript(options: RewriteOptions): Promise<void> {
  const { files, path, backupPath } = options
  const source = await files.open(path, 'read')
  try {
    const { permissions } = source.stat()
    if (backupPath !== undefined) await copyFile(files, source, backupPath, permissions)
    await writeAtomically(options, path, (target) => writeAll(source, target, options), { permissions })
  } finally {
    await source.close()
  }
}

async function copyFile(files: Files, source: FileHandle, to: string, permissions: number): Promise<void> {
  const target = await files.open(to, 'create', permissions)
  try {
    for (let position = 0; ;) {
      const block = await source.read(position, COPY_BYTES)
      if (block.length === 0) break
      await target.write(block)
      position += block.length
    }
    await target.sync()
  } finally {
    await target.close()
  }
}

async function writeAll(source: FileHandle, target: FileHandle, options: RewriteOptions): Promise<void> {
  const { scan, header, extraLines } = options
  const { index } = scan
  const out = new ChunkWriter(target)
  await out.add(Buffer.from(encodeHeader({ ...header, version: Math.max(header.version, FORMAT_VERSION) })))
  const leftOut = [...index.leftOut]
  for (let at = 0; at < index.count; at++) {
    while ((leftOut[0]?.offset ?? Number.POSITIVE_INFINITY) < index.offsetAt(at))
      await copyLeftOut(leftOut, source, out)
    if (!index.isDead(at)) await out.add(await soundLine(source, index, at, header.version))
  }
  while (leftOut.length > 0) await copyLeftOut(leftOut, source, out)
  for (const line of extraLines) await out.add(Buffer.from(line))
  await out.flush()
}

async function copyLeftOut(
  leftOut: { readonly offset: number; readonly length: number }[],
  source: FileHandle,
  out: ChunkWriter,
): Promise<void> {
  const part = leftOut.shift()
  if (part === undefined) return
  let last = 0
  for (let copied = 0; copied < part.length;) {
    const block = toBuffer(await source.read(part.offset + copied, Math.min(COPY_BYTES, part.length - copied)))
    if (block.length === 0) break
    await out.add(block)
    copied += block.length
    last = block.at(-1) ?? 0
  }
  if (last !== 10) await out.add(Buffer.from('\n'))
}

/** The line as it is, byte for byte, wherever nothing in it has to change. */
async function soundLine(source: FileHandle, index: EntryIndex, at: number, version: number): Promise<Buffer> {
  const bytes = toBuffer(await source.read(index.offsetAt(at), index.lengthAt(at)))
  const raw = parseJson(bytes.toString('utf8'))
  if (!isRecord(raw)) return Buffer.alloc(0)
  const migrated = migrateRaw(raw, version, index)
  const moved = movedLine(migrated, index.idAt(at), index.parentIdAt(at))
  if (moved === undefined && migrated === raw && isUtf8(bytes)) return Buffer.concat([bytes, Buffer.from('\n')])
  return Buffer.from(encodeLine(withBoundedDepth(moved ?? migrated)))
}

class ChunkWriter {
  readonly #target: FileHandle
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(target: FileHandle) {
    this.#target = target
  }

  async add(bytes: Buffer): Promise<void> {
    this.#chunks.push(bytes)
    this.#bytes += bytes.length
    if (this.#bytes >= COPY_BYTES) await this.flush()
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#bytes = 0
    if (bytes.length > 0) await this.#target.write(bytes)
  }
}

/**
 * Backups are `<file>.bak-<pid>-<time>`; the oldest go when there are more than `keep`. With them go new files that a
 * crash kept from becoming anything. Call with the session's lock held.
 */
export async function dropLeftovers(files: Files, path: string, keep: number): Promise<void> {
  const directory = directoryOf(path)
  const base = path.slice(directory.length + 1)
  const names = await files.list(directory)
  await removeUnfinished(files, { directory, names, name: base })
  const backups = names.filter((name) => name.startsWith(`${base}.bak-`)).sort((a, b) => timeIn(a) - timeIn(b))
  for (const name of backups.slice(0, -keep)) await files.remove(`${directory}/${name}`)
}

function timeIn(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1)) || 0
}
