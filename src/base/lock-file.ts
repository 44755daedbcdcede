import { createHash } from 'node:crypto'
import type { Clock } from './clock.ts'
import { errnoOf, readWhole, type FileHandle, type Files, type FileStat } from './files.ts'
import type { Ids } from './ids.ts'
import { isRecord, parseJson } from './json.ts'
import type { ProcessIdentity, Processes } from './processes.ts'

export interface LockFileDeps {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
}

/** A lock file as it was found. */
export interface LockHolder {
  readonly stat: FileStat
  readonly text: string
  /** What it says about its owner, as far as it can be read. */
  readonly fields: Readonly<Record<string, unknown>>
  /** Undefined when the file names no process. */
  readonly owner: ProcessIdentity | undefined
}

/** Says of a lock whose owner may live whether it counts as abandoned all the same. */
export type IsStale = (holder: LockHolder, owner: ProcessIdentity) => boolean

/** The owner is written right after the file is created: a file that stays without one belongs to a dead process. */
const EMPTY_GRACE_MS = 3_000
const MAX_LOCK_BYTES = 64 * 1024

/**
 * A lock file that this process created. It stays open: the system cannot give its inode to another file, so a
 * comparison of identities tells for certain whether the file at the path is still this one.
 */
export class OwnedLockFile {
  readonly path: string
  readonly identity: string
  readonly #handle: FileHandle
  readonly #text: string
  readonly #files: Files
  readonly #cancelExit: () => void

  constructor(path: string, handle: FileHandle, text: string, { files, processes }: LockFileDeps) {
    this.path = path
    this.identity = handle.stat().identity
    this.#handle = handle
    this.#text = text
    this.#files = files
    this.#cancelExit = processes.onExit(path, this.identity)
  }

  /**
   * Looks at the file now, in microseconds. `lost`: it was taken over or removed. `asked`: still ours, and another
   * process added a byte to ask for it.
   */
  look(): 'held' | 'asked' | 'lost' {
    const stat = this.#files.statSync(this.path)
    if (stat?.identity !== this.identity) return 'lost'
    return stat.size > Buffer.byteLength(this.#text) ? 'asked' : 'held'
  }

  isHeld(): boolean {
    return this.look() !== 'lost'
  }

  /** Writing the same text again moves the time of the last change, and nothing else. */
  async renew(): Promise<void> {
    await this.#handle.write(this.#text, 0)
  }

  /** Removes the file, unless another one is in its place by now. */
  async release(): Promise<void> {
    this.#cancelExit()
    try {
      if (this.isHeld()) await this.#files.remove(this.path)
    } finally {
      await this.#handle.close()
    }
  }

  /** @internal for `takeOver`: the file got another name. */
  async movedTo(path: string, deps: LockFileDeps): Promise<OwnedLockFile> {
    this.#cancelExit()
    return new OwnedLockFile(path, this.#handle, this.#text, deps)
  }
}

/** Undefined when there is such a file already. */
export async function createLockFile(path: string, deps: LockFileDeps): Promise<OwnedLockFile | undefined> {
  const { files, clock, ids, processes } = deps
  const handle = await files.open(path, 'create').catch((error: unknown) => {
    if (errnoOf(error) === 'EEXIST') return undefined
    throw error
  })
  if (handle === undefined) return undefined
  try {
    const { pid, startedAt, host } = processes.self
    const createdAt = new Date(clock.now()).toISOString()
    const text = `${JSON.stringify({ pid, startedAt, host, createdAt, token: ids.hex(16) })}\n`
    await handle.write(text, 0)
    return new OwnedLockFile(path, handle, text, deps)
  } catch (error) {
    await handle.close()
    await files.remove(path).catch(() => undefined)
    throw error
  }
}

/** Undefined when there is no lock file. */
export async function readLockHolder(
  path: string,
  { files, processes }: Pick<LockFileDeps, 'files' | 'processes'>,
): Promise<LockHolder | undefined> {
  const stat = await files.stat(path)
  const bytes = await readWhole(files, path, MAX_LOCK_BYTES)
  if (stat === undefined || bytes === undefined) return undefined
  const text = new TextDecoder().decode(bytes)
  const parsed = parseJson(text)
  const fields = isRecord(parsed) ? parsed : {}
  return { stat, text, fields, owner: ownerOf(fields, processes.self) }
}

/** Its owner is dead, or counts as dead, or never wrote its name. */
export function isAbandoned(
  holder: LockHolder,
  isStale: IsStale,
  { clock, processes }: Pick<LockFileDeps, 'clock' | 'processes'>,
): boolean {
  const { owner, stat } = holder
  // In either direction: the wall clock may have been set back since the file was made.
  if (owner === undefined) return Math.abs(clock.now() - stat.modifiedAt) > EMPTY_GRACE_MS
  return isStale(holder, owner) || !processes.isAlive(owner)
}

/**
 * Puts a lock of our own in the place of one that was judged abandoned. Several processes may have judged the same file:
 * the right to replace exactly that file is a lock file of its own, the claim, whose name is made from what was judged.
 * The holder of the claim looks again, and renames the claim over the abandoned lock. The path is never without a file
 * meanwhile, so no other process can create one; and a lock that is not the judged one is never touched. A claim whose
 * holder died is taken over in the same way. Undefined when another process was faster: look again.
 */
export async function takeOver(
  path: string,
  judged: LockHolder,
  isStale: IsStale,
  deps: LockFileDeps,
): Promise<OwnedLockFile | undefined> {
  const claimPath = `${path}${CLAIM}${fingerprintOf(judged)}`
  const claim = (await createLockFile(claimPath, deps)) ?? (await takeOverClaim(claimPath, isStale, deps))
  if (claim === undefined) return undefined
  try {
    const current = await readLockHolder(path, deps)
    if (current !== undefined && fingerprintOf(current) === fingerprintOf(judged)) {
      await deps.files.rename(claimPath, path)
      return await claim.movedTo(path, deps)
    }
  } catch (error) {
    await claim.release()
    throw error
  }
  await claim.release()
  return undefined
}

async function takeOverClaim(path: string, isStale: IsStale, deps: LockFileDeps): Promise<OwnedLockFile | undefined> {
  const holder = await readLockHolder(path, deps)
  return holder !== undefined && isAbandoned(holder, isStale, deps) ? takeOver(path, holder, isStale, deps) : undefined
}

const CLAIM = '.claim-'

/** Removes claims on `path` that dead processes left behind. For the owner of the lock: no claim on another one counts. */
export async function sweepClaims(path: string, isStale: IsStale, deps: LockFileDeps): Promise<void> {
  const slash = path.lastIndexOf('/')
  const prefix = `${path.slice(slash + 1)}${CLAIM}`
  for (const name of await deps.files.list(path.slice(0, slash))) {
    if (!name.startsWith(prefix)) continue
    const claim = `${path.slice(0, slash)}/${name}`
    const holder = await readLockHolder(claim, deps)
    if (holder !== undefined && isAbandoned(holder, isStale, deps)) await deps.files.remove(claim)
  }
}

/** Equal for two looks at the same lock. Its text holds a random token; one without text is identified by its place and time. */
function fingerprintOf({ text, stat }: LockHolder): string {
  // A process that asks for a lock adds blanks to it.
  const said = text.trim()
  const identity = said === '' ? `${stat.identity} ${stat.modifiedAt}` : said
  return createHash('sha256').update(identity).digest('hex').slice(0, 16)
}

/** Other programs write pid and time only: then the start time cannot be compared and the pid alone decides. */
function ownerOf(
  { pid, startedAt, host }: Readonly<Record<string, unknown>>,
  self: ProcessIdentity,
): ProcessIdentity | undefined {
  if (typeof pid !== 'number') return undefined
  return {
    pid,
    startedAt: typeof startedAt === 'string' ? startedAt : '',
    host: typeof host === 'string' ? host : self.host,
  }
}
