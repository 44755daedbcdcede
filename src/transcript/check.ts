import type { Clock } from '../base/clock.ts'
import type { Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Processes } from '../base/processes.ts'
import type { SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { FORMAT_VERSION } from './line.ts'
import { loadByScan, type Loaded } from './load.ts'
import { repairFile } from './repair-file.ts'
import { toStorageError } from './storage-error.ts'
import type { RepairNote } from './store.ts'
import { writeLockOf } from './write-lock.ts'

/** What is wrong with a file, if anything. */
export interface TranscriptReport {
  readonly path: string
  readonly isHealthy: boolean
  readonly version: number
  readonly bytes: number
  readonly entries: number
  /** Worst first. */
  readonly notes: readonly RepairNote[]
  /** False when a repair would leave the file as it is, healthy or not. */
  readonly isRepairable: boolean
  /** What a repair would do, or did, a sentence each. */
  readonly steps: readonly string[]
}

/** What a repair did. */
export interface RepairReport extends TranscriptReport {
  /** False when nothing had to be done. */
  readonly isRepaired: boolean
  /** Where the old bytes are: the whole old file, or only the unfinished line that was cut off. */
  readonly backupPath: string | undefined
  readonly backupHolds: 'file' | 'cut-off-line' | undefined
}

/** What a repair needs of the machine. */
export interface RepairPorts {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
}

const NO_HEADER: SessionHeader = { type: 'session', version: FORMAT_VERSION, id: 'unknown', timestamp: '', cwd: '' }

/** Reads every line of a transcript and says what is wrong with it. Changes nothing. */
export async function checkTranscript(
  files: Files,
  path: string,
  maxLineBytes = DEFAULT_LIMITS.maxLineBytes,
): Promise<TranscriptReport> {
  return toReport(path, await loadVerified(files, path, maxLineBytes))
}

/**
 * Makes a transcript sound: a torn tail is set aside, anything worse means a rewrite from the readable lines, with a
 * copy of the old file beside it. Takes the session's lock, so a running gateway is waited for.
 */
export async function repairTranscript(
  ports: RepairPorts,
  path: string,
  signal: AbortSignal,
  limits = DEFAULT_LIMITS,
): Promise<RepairReport> {
  const { lockTimeoutMs: timeoutMs, lockStaleMs: staleMs, maxBackups, maxLineBytes } = limits
  const lock = writeLockOf(`${path}.lock`, { ...ports, timeoutMs, staleMs })
  const user = {}
  await requireFile(ports.files, path)
  await lock.enter(user, signal)
  try {
    const loaded = await loadVerified(ports.files, path, maxLineBytes)
    const report = toReport(path, loaded)
    if (!report.isRepairable) return { ...report, isRepaired: false, backupPath: undefined, backupHolds: undefined }
    const { backupPath, isRewritten } = await repairFile({ ...ports, path, loaded, maxBackups, maxLineBytes })
    return { ...report, isRepaired: true, backupPath, backupHolds: isRewritten ? 'file' : 'cut-off-line' }
  } catch (error) {
    throw toStorageError(error)
  } finally {
    await lock.leave()
    await lock.letGo(user)
  }
}

async function requireFile(files: Files, path: string): Promise<void> {
  if ((await files.stat(path))?.kind === 'file') return
  throw new GatewayError('TRANSCRIPT_NOT_FOUND', 'there is no transcript file at this path', { path })
}

async function loadVerified(files: Files, path: string, maxLineBytes: number): Promise<Loaded> {
  await requireFile(files, path)
  const handle = await files.open(path, 'read')
  try {
    return await loadByScan({ handle, maxLineBytes, fallbackHeader: headerFor(path), verify: true })
  } finally {
    await handle.close()
  }
}

function headerFor(path: string): SessionHeader {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return { ...NO_HEADER, id: name.endsWith('.jsonl') ? name.slice(0, -'.jsonl'.length) : name }
}

function toReport(path: string, loaded: Loaded): TranscriptReport {
  const { header, repairs } = loaded.state
  const index = loaded.scan?.index
  return {
    path,
    isHealthy: repairs.length === 0 && header.version >= FORMAT_VERSION,
    isRepairable: !loaded.isSound || loaded.tornBytes > 0,
    version: header.version,
    bytes: loaded.size,
    entries: index === undefined ? 0 : index.liveCount,
    notes: repairs,
    steps: stepsFor(loaded),
  }
}

const STEPS: Record<RepairNote['kind'], string> = {
  header: 'write a new header; the old one cannot be read',
  corrupt: 'leave out lines that are no JSON; they stay in the backup',
  'not-utf8': 'replace bytes that are not UTF-8 by U+FFFD, or leave the line out when it is no JSON either',
  'wrong-shape':
    'keep lines that are not what they say inside custom entries, outside the context; leave out JSON that is no object',
  'too-long': 'carry lines over the size limit over as they are; they are not shown to the model',
  cycle: 'cut circles of parents at the earliest line',
  'duplicate-id': 'give the second of two entries with one id a new one',
  relinked: 'link entries whose parent is lost to the nearest entry before them',
  'torn-tail': 'set the unfinished last line aside and cut it off',
  copy: 'leave out lines that the file holds a second time',
  'odd-fields': 'leave fields of a wrong type as they are in the file; they are read as the type they should have',
}

function stepsFor({ state, isSound }: Loaded): readonly string[] {
  const kinds = new Set(state.repairs.map((note) => note.kind))
  const steps = [...kinds].map((kind) => STEPS[kind])
  if (state.header.version < FORMAT_VERSION) steps.push(`rewrite format ${state.header.version} as ${FORMAT_VERSION}`)
  if (!isSound) steps.push('keep a copy of the old file beside the new one')
  return steps
}
