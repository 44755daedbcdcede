import type { Clock } from '../base/clock.ts'
import { writeAtomically } from '../base/atomic-write.ts'
import { directoryOf, type FileHandle, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Processes } from '../base/processes.ts'
import { encodeLine } from './line.ts'
import type { Loaded } from './load.ts'
import { dropLeftovers, rewriteTranscript } from './rewrite.ts'
import { scanFile, toBuffer } from './scan.ts'
import type { RepairNote } from './store.ts'

export interface RepairOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  readonly path: string
}

/** `custom` entry that says what a repair did, and where the old bytes are. */
export const REPAIR_RECORD = 'clew.repair'
const MAX_NOTES = 50
const COPY_BYTES = 1024 * 1024

/**
 * A torn last line is set aside and cut off; anything worse, and any older format, is rewritten as a whole, with a copy
 * of the old file beside it.
 */
export async function repairFile(
  options: RepairOptions & { readonly loaded: Loaded; readonly maxBackups: number; readonly maxLineBytes: number },
): Promise<{ readonly isRewritten: boolean; readonly backupPath: string }> {
  const { files, path, loaded, maxBackups } = options
  const backupPath = loaded.isSound ? await setTornTailAside(options) : await rewriteWhole(options)
  await dropLeftovers(files, path, maxBackups)
  return { isRewritten: !loaded.isSound, backupPath }
}

async function setTornTailAside(options: RepairOptions & { readonly loaded: Loaded }): Promise<string> {
  const { files, path, loaded, log } = options
  const backupPath = backupName(options)
  const handle = await files.open(path, 'update')
  try {
    const start = loaded.size - loaded.tornBytes
    const torn = toBuffer(await handle.read(start, loaded.tornBytes))
    await writeAtomically(options, backupPath, torn)
    await handle.truncate(start)
  } finally {
    await handle.close()
  }
  log.warn('a torn last line was set aside', { bytes: loaded.tornBytes })
  return backupPath
}

async function rewriteWhole(
  options: RepairOptions & { readonly loaded: Loaded; readonly maxLineBytes: number },
): Promise<string> {
  const { files, path, ids, loaded, maxLineBytes, log } = options
  const { header, leafId, repairs } = loaded.state
  // Every body is looked at now: what does not parse must not be carried into the new file.
  const handle = await files.open(path, 'read')
  const scan = await scanFile(handle, { maxLineBytes, verify: true })
  await handle.close()
  // The original of an older format is kept for good, repairs only for a while.
  const isOld = header.version < 3
  const backupPath = isOld ? `${path}.v${header.version}.bak` : backupName(options)
  const hasBackup = (await files.stat(backupPath)) !== undefined
  const parent = leafId !== null && scan.index.find(leafId) >= 0 ? leafId : lastId(scan.index)
  await rewriteTranscript({
    files,
    ids,
    path,
    scan,
    header,
    backupPath: hasBackup ? undefined : backupPath,
    extraLines: [repairLine(options, parent, backupPath, header.version, repairs)],
  })
  log.warn('a transcript was rewritten', { notes: repairs.length, fromVersion: header.version })
  return backupPath
}

function lastId(index: { last(): number; idAt(at: number): string }): string | null {
  const last = index.last()
  return last < 0 ? null : index.idAt(last)
}

export function repairLine(
  { clock, ids }: Pick<RepairOptions, 'clock' | 'ids'>,
  parentId: string | null,
  backupPath: string,
  fromVersion: number,
  notes: readonly RepairNote[],
): string {
  return encodeLine({
    type: 'custom',
    id: ids.hex(16),
    parentId,
    timestamp: new Date(clock.now()).toISOString(),
    customType: REPAIR_RECORD,
    data: {
      backup: backupPath.slice(directoryOf(backupPath).length + 1),
      fromVersion,
      repairs: notes.length,
      notes: notes.slice(0, MAX_NOTES),
    },
  })
}

export function backupName({ path, processes, clock }: Pick<RepairOptions, 'path' | 'processes' | 'clock'>): string {
  return `${path}.bak-${processes.self.pid}-${clock.now()}`
}

/** After a failed sync the cache may show what the disk does not hold: written anew, it is dirty again and synced. */
export async function rewriteAfterFailedSync({ files, ids, path }: RepairOptions): Promise<void> {
  const handle = await files.open(path, 'read')
  try {
    const { size, permissions } = handle.stat()
    await writeAtomically({ files, ids }, path, (copy) => copyBytes(handle, copy, size), { permissions })
  } finally {
    await handle.close()
  }
}

async function copyBytes(from: FileHandle, to: FileHandle, size: number): Promise<void> {
  for (let position = 0; position < size;) {
    const block = await from.read(position, COPY_BYTES)
    if (block.length === 0) break
    await to.write(block)
    position += block.length
  }
}
