import { sleep, deferred, type Deferred } from '../base/async.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { errnoOf, type Files } from '../base/files.ts'
import {
  createLockFile,
  isAbandoned,
  readLockHolder,
  takeOver,
  type IsStale,
  type LockFileDeps,
  type LockHolder,
  type OwnedLockFile,
} from '../base/lock-file.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from '../core/errors.ts'

export interface WriteLockOptions extends LockFileDeps {
  readonly log: Log
  readonly timeoutMs: number
  readonly staleMs: number
}

const FIRST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1_000
/** How often a holder that does not write looks whether another process asks. */
const WATCH_MS = 250
/** Far below `staleMs`: a lock that is in use never looks abandoned, because it is given up and taken anew. */
const LONGEST_HOLD_MS = 10 * 60_000

/** One lock per path in a process, shared by all callers: paths are distinguished by the port they are reached through. */
const locks = new WeakMap<Files, Map<string, WriteLock>>()

export function writeLockOf(path: string, options: WriteLockOptions): WriteLock {
  const known = locks.get(options.files) ?? new Map<string, WriteLock>()
  locks.set(options.files, known)
  const lock = known.get(path) ?? new WriteLock(path, options, () => known.delete(path))
  known.set(path, lock)
  return lock
}

/**
 * The right to write one file: first come, first served inside the process, a lock file between processes. The lock file
 * is taken at the first `enter` and kept until all who entered said `letGo`; it is given up between two writes when
 * another process asks for it, which it does by adding a byte to the lock file.
 */
export class WriteLock {
  readonly path: string
  readonly #options: WriteLockOptions
  readonly #isStale: IsStale
  readonly #onUnused: () => void
  readonly #users = new Set<object>()
  #waiting: Deferred<void>[] = []
  #isEntered = false
  #owned: { readonly file: OwnedLockFile; readonly since: number } | undefined
  #watch: Timer | undefined
  #yieldUntil = 0

  constructor(path: string, options: WriteLockOptions, onUnused: () => void) {
    this.path = path
    this.#options = options
    this.#isStale = staleAfter(options.staleMs, options.clock)
    this.#onUnused = onUnused
  }

  /** Resolves when there is no other writer, neither here nor in another process. Every `enter` is followed by a `leave`. */
  async enter(user: object, signal: AbortSignal): Promise<void> {
    await this.#enterInside()
    try {
      if (this.isHeld()) return void this.#users.add(user)
      await this.#forget()
      await this.#take(signal)
      this.#users.add(user)
    } catch (error) {
      this.#leaveInside()
      throw error
    }
  }

  /** A look at the lock file: false when another process took it over, or removed it. */
  isHeld(): boolean {
    return this.#owned !== undefined && this.#owned.file.look() !== 'lost'
  }

  /** Directly before a write: throws `SESSION_LOCK_LOST` when the lock is no longer ours. */
  fence(): void {
    if (this.isHeld()) return
    throw new GatewayError('SESSION_LOCK_LOST', 'another process took over this session; nothing was written', {})
  }

  async leave(): Promise<void> {
    try {
      if (this.#owned?.file.look() === 'asked') await this.#giveUp()
    } finally {
      this.#leaveInside()
    }
  }

  /** This user writes no more; with the last one the lock file goes. */
  async letGo(user: object): Promise<void> {
    await this.#enterInside()
    try {
      this.#users.delete(user)
      if (this.#users.size === 0) await this.#release()
    } finally {
      this.#leaveInside()
    }
  }

  async #enterInside(): Promise<void> {
    if (!this.#isEntered) {
      this.#isEntered = true
      return
    }
    const turn = deferred()
    this.#waiting.push(turn)
    await turn.promise
  }

  #leaveInside(): void {
    const next = this.#waiting.shift()
    if (next !== undefined) return next.resolve()
    this.#isEntered = false
    if (this.#owned === undefined && this.#users.size === 0) this.#onUnused()
  }

  #watchLater(): void {
    this.#watch = this.#options.clock.after(WATCH_MS, () => {
      this.#watch = undefined
      void this.#lookAround()
    })
  }

  /** Between two writes: a process that asks does not wait until this one writes again. */
  async #lookAround(): Promise<void> {
    await this.#enterInside()
    try {
      const { clock } = this.#options
      const isOld = this.#owned !== undefined && clock.monotonic() - this.#owned.since > LONGEST_HOLD_MS
      if (isOld || this.#owned?.file.look() === 'asked') await this.#giveUp()
      else if (this.#owned !== undefined) this.#watchLater()
    } catch (error) {
      this.#options.log.warn('a lock file could not be checked', { errno: errnoOf(error) })
    } finally {
      this.#leaveInside()
    }
  }

  /** The process that asked gets some time to find the lock free. */
  async #giveUp(): Promise<void> {
    this.#yieldUntil = this.#options.clock.monotonic() + 2 * FIRST_WAIT_MS
    await this.#release()
  }

  async #release(): Promise<void> {
    try {
      await this.#forget()
    } catch (error) {
      // It will be found stale; what was written under it is safe.
      this.#options.log.warn('a lock file could not be removed', { errno: errnoOf(error) })
    }
  }

  /** Also for a lock that was lost: `release` removes only the file that is ours. */
  async #forget(): Promise<void> {
    this.#watch?.cancel()
    this.#watch = undefined
    const file = this.#owned?.file
    this.#owned = undefined
    await file?.release()
  }

  async #take(signal: AbortSignal): Promise<void> {
    const { clock, ids, timeoutMs } = this.#options
    const startedAt = clock.monotonic()
    if (startedAt < this.#yieldUntil) await sleep(clock, this.#yieldUntil - startedAt, signal)
    let wait = FIRST_WAIT_MS
    let seen: string | undefined
    for (;;) {
      signal.throwIfAborted()
      const created = await createLockFile(this.path, this.#options)
      if (created !== undefined) return this.#own(created)
      const holder = await readLockHolder(this.path, this.#options)
      if (holder === undefined) continue
      if (isAbandoned(holder, this.#isStale, this.#options)) {
        if (await this.#takeOver(holder)) return
        continue
      }
      const waitedMs = clock.monotonic() - startedAt
      if (waitedMs >= timeoutMs) throw locked(holder, waitedMs)
      // A new holder means the lock is moving: stay close, or the gaps fall between our looks.
      if (holder.stat.identity !== seen) wait = FIRST_WAIT_MS
      seen = holder.stat.identity
      // A lock without an owner is judged by its age only, which a write would renew.
      if (holder.owner !== undefined) await this.#askForIt(holder.stat.size)
      await sleep(clock, Math.min(wait * (0.5 + ids.fraction() / 2), timeoutMs - waitedMs), signal)
      wait = Math.min(LONGEST_WAIT_MS, wait * 2)
    }
  }

  async #takeOver(holder: LockHolder): Promise<boolean> {
    const taken = await takeOver(this.path, holder, this.#isStale, this.#options)
    if (taken === undefined) return false
    this.#options.log.warn('an abandoned session lock was taken over')
    this.#own(taken)
    return true
  }

  #own(file: OwnedLockFile): void {
    this.#owned = { file, since: this.#options.clock.monotonic() }
    this.#watchLater()
  }

  /** Best effort: a holder that does not look for it lets go after its batch anyway. */
  async #askForIt(size: number): Promise<void> {
    try {
      const handle = await this.#options.files.open(this.path, 'update')
      try {
        await handle.write(' ', size)
      } finally {
        await handle.close()
      }
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'EACCES') throw error
    }
  }
}

/** A lock that is older than this counts as abandoned, even when its owner lives. */
function staleAfter(staleMs: number, clock: Clock): IsStale {
  return ({ fields, stat }) => clock.now() - (timeOf(fields['createdAt']) ?? stat.modifiedAt) > staleMs
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' ? Date.parse(value) : value
  return typeof time === 'number' && Number.isFinite(time) ? time : undefined
}

function locked({ owner }: LockHolder, waitedMs: number): GatewayError {
  return new GatewayError('SESSION_LOCKED', 'another process is writing this session; try again when it is done', {
    waitedMs,
    ownerPid: owner?.pid,
    ownerHost: owner?.host,
  })
}
