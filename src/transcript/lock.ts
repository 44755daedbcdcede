import { sleep, type Clock, type Timer } from '../base/clock.ts'
import { deferred, type Deferred } from '../base/deferred.ts'
import { errnoOf, type Files, type FileStat } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import { isAbandoned, readLockHolder, takeOver, type IsStale, type LockHolder } from '../base/lock-file.ts'
import type { Log } from '../base/log.ts'
import type { Processes } from '../base/processes.ts'
import { GatewayError } from '../core/errors.ts'
import type { Badge } from './badge.ts'
import { ownerText, staleAfter } from './lock-owner.ts'

export interface LockOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  readonly timeoutMs: number
  readonly staleMs: number
  readonly lingerMs: number
  /** Lock files are links to it where that is possible. Without it each one is a file of its own. */
  readonly badge?: Badge
}

const FIRST_WAIT_MS = 50
const LONGEST_WAIT_MS = 1_000
/** Far below `staleMs`: a lock that is in use never looks abandoned. */
const LONGEST_HOLD_MS = 5_000
/**
 * A look at the lock file is good for this long. Taking it over needs an owner that is dead or was away for `staleMs`,
 * and whoever comes back from being away finds that this time is over.
 */
export const LOOK_MS = 25

/** Whoever writes under the lock for longer than it is inside. */
export interface LockUser {
  /** The lock is still held and about to go: the last chance to write. Never rejects. */
  finish(): Promise<void>
  /** Nothing may be written any more. */
  lockLost(): void
}

/** One lock per file and process, whoever in the process asks: files are told apart by the port they live behind. */
const locks = new WeakMap<Files, Map<string, WriteLock>>()

export function lockOf(path: string, options: LockOptions): WriteLock {
  const known = locks.get(options.files) ?? new Map<string, WriteLock>()
  locks.set(options.files, known)
  const lock = known.get(path) ?? new WriteLock(path, options, () => known.delete(path))
  known.set(path, lock)
  return lock
}

/**
 * The right to write one file: first come, first served inside the process, a lock file between processes. Held for a
 * batch, then kept a moment for the next one; given up at once when another process asks, which it does by adding a
 * byte to the lock file.
 */
export class WriteLock {
  readonly path: string
  readonly #options: LockOptions
  readonly #onUnused: () => void
  readonly #isStale: IsStale
  #inside: Deferred<void>[] = []
  #isEntered = false
  #lastInside: object | undefined
  #owned: { readonly stat: FileStat; readonly since: number; cancelExit(): void } | undefined
  #linger: Timer | undefined
  #user: LockUser | undefined
  #yieldUntil = 0
  /** Another process asked for the lock when we last looked. */
  #isWanted = false
  #lookedAt = 0
  #enteredAt = 0
  #lastLeftAt = 0

  constructor(path: string, options: LockOptions, onUnused: () => void) {
    this.path = path
    this.#options = options
    this.#onUnused = onUnused
    this.#isStale = staleAfter(options.staleMs, options.clock)
  }

  get isOwned(): boolean {
    return this.#owned !== undefined
  }

  /** Until the lock file is given up or lost, or somebody else in this process enters. */
  use(user: LockUser): void {
    this.#user = user
  }

  /**
   * Resolves to true when the lock file had to be taken: others may have written since we last held it. `by` is whoever
   * enters, for `tryEnter`.
   */
  async enter(signal: AbortSignal, by?: object): Promise<boolean> {
    await this.#enterInside()
    try {
      if (this.#owned !== undefined && this.#isStillOurs()) {
        if (this.#lastInside !== by) await this.#endUse()
        this.#lastInside = by
        return false
      }
      this.#lastInside = by
      this.#forget()
      await this.#take(signal)
      return true
    } catch (error) {
      this.#leaveInside()
      throw error
    }
  }

  /** Enters where that needs no waiting: the lock file is with us still, and nobody was inside but the same. */
  tryEnter(by: object): boolean {
    if (this.#isEntered || this.#lastInside !== by || this.#owned === undefined) return false
    const now = this.#options.clock.monotonic()
    if (!this.#isHeldAt(now)) return false
    this.#isEntered = true
    this.#enteredAt = now
    return true
  }

  /** False when somebody took the lock over, or removed it, since we entered. */
  isHeld(): boolean {
    return this.#isHeldAt(this.#options.clock.monotonic())
  }

  /** The same after a look at the lock file, however fresh the last one is. */
  isHeldNow(): boolean {
    if (this.#owned !== undefined && this.#isStillOurs()) return true
    this.#forget()
    return false
  }

  #isHeldAt(now: number): boolean {
    const isFresh = this.#owned !== undefined && now - this.#lookedAt < LOOK_MS
    return isFresh || this.isHeldNow()
  }

  /** Directly before a write: throws `SESSION_LOCK_LOST` when the lock is no longer ours. */
  fence(): void {
    // Whoever had to wait since it entered looks again.
    if (this.#options.clock.monotonic() === this.#enteredAt || this.#isStillOurs()) return
    this.#forget()
    throw new GatewayError('SESSION_LOCK_LOST', 'another process took over this session; nothing was written', {})
  }

  async leave(): Promise<void> {
    if (this.tryLeave()) return
    try {
      if (this.#isWanted) this.#yieldUntil = this.#options.clock.monotonic() + 2 * FIRST_WAIT_MS
      await this.#release()
    } finally {
      this.#leaveInside()
    }
  }

  /** Leaves where that needs no waiting: the lock file stays with us a while. False when it is time to give it up. */
  tryLeave(): boolean {
    const { clock, lingerMs } = this.#options
    if (this.#owned !== undefined) {
      const now = clock.monotonic()
      const isOld = now - this.#owned.since > LONGEST_HOLD_MS
      if (this.#isWanted || isOld || lingerMs === 0) return false
      this.#lastLeftAt = now
      if (this.#inside.length === 0 && this.#linger === undefined) this.#startLinger(lingerMs)
    }
    this.#leaveInside()
    return true
  }

  /** Gives the lock file back now. For whoever stops using the file. */
  async releaseNow(): Promise<void> {
    await this.#enterInside()
    try {
      this.#linger?.cancel()
      this.#linger = undefined
      await this.#release()
    } finally {
      this.#leaveInside()
    }
  }

  /** One timer for a whole burst: it looks when the lock was last used instead of being set anew each time. */
  #startLinger(lingerMs: number): void {
    const { clock } = this.#options
    const look = (afterMs: number): void => {
      this.#linger = clock.after(afterMs, () => {
        this.#linger = undefined
        if (this.#isEntered) return
        const leftMs = this.#lastLeftAt + lingerMs - clock.monotonic()
        if (leftMs > 0) look(leftMs)
        else void this.releaseNow()
      })
    }
    look(lingerMs)
  }

  async #enterInside(): Promise<void> {
    if (!this.#isEntered) {
      this.#isEntered = true
      return
    }
    const turn = deferred()
    this.#inside.push(turn)
    await turn.promise
  }

  #leaveInside(): void {
    const next = this.#inside.shift()
    if (next !== undefined) return next.resolve()
    this.#isEntered = false
    if (this.#owned === undefined) this.#onUnused()
  }

  #isStillOurs(): boolean {
    const stat = this.#options.files.statNow(this.path)
    const owned = this.#owned
    if (stat === undefined || stat.identity !== owned?.stat.identity) return false
    this.#isWanted = stat.size > owned.stat.size
    // Whoever asks writes to the badge, and so to every lock that is pinned with it: the next ones shall not be bothered.
    if (this.#isWanted) this.#options.badge?.retire(stat.identity)
    this.#lookedAt = this.#options.clock.monotonic()
    return true
  }

  #forget(): void {
    this.#owned?.cancelExit()
    this.#owned = undefined
    this.#isWanted = false
    this.#lookedAt = 0
    this.#enteredAt = 0
    const user = this.#user
    this.#user = undefined
    user?.lockLost()
  }

  async #endUse(): Promise<void> {
    const user = this.#user
    this.#user = undefined
    await user?.finish()
  }

  async #release(): Promise<void> {
    const owned = this.#owned
    if (owned === undefined) return
    try {
      const { files } = this.#options
      if (this.#isStillOurs()) await this.#endUse()
      this.#forget()
      if (files.statNow(this.path)?.identity === owned.stat.identity) await files.remove(this.path)
    } catch (error) {
      this.#forget()
      // It will be found stale; what was written under it is safe.
      this.#options.log.warn('a lock file could not be removed', { errno: errnoOf(error) })
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    const { clock, ids, timeoutMs } = this.#options
    const startedAt = clock.monotonic()
    if (startedAt < this.#yieldUntil) await sleep(clock, this.#yieldUntil - startedAt, signal)
    let wait = FIRST_WAIT_MS
    let seen: string | undefined
    for (;;) {
      signal.throwIfAborted()
      if (await this.#tryCreate()) return
      const holder = await readLockHolder(this.path, this.#options)
      if (holder === undefined) continue
      if (isAbandoned(holder, this.#isStale, this.#options)) {
        await this.#removeAbandoned(holder)
        continue
      }
      const waitedMs = clock.monotonic() - startedAt
      if (waitedMs >= timeoutMs) throw locked(holder, waitedMs)
      // A new holder means the lock is moving: stay close, or the gaps fall between our looks.
      if (holder.stat.identity !== seen) wait = FIRST_WAIT_MS
      seen = holder.stat.identity
      // One without fields is only told by its age, which a write would renew.
      if (holder.owner !== undefined) await this.#askForIt(holder.stat)
      await sleep(clock, Math.min(wait * (0.5 + ids.fraction() / 2), timeoutMs - waitedMs), signal)
      wait = Math.min(LONGEST_WAIT_MS, wait * 2)
    }
  }

  async #tryCreate(): Promise<boolean> {
    const { files, badge } = this.#options
    const pinned = await badge?.pinTo(this.path)
    if (pinned?.kind === 'exists') return false
    if (pinned?.kind === 'pinned') {
      const stat = files.statNow(this.path)
      if (stat?.identity === pinned.identity) return this.#own(stat)
      // Somebody who does not keep to the rules took it away since: from the beginning.
      return false
    }
    let handle
    try {
      handle = await files.open(this.path, 'create')
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false
      throw error
    }
    try {
      await handle.write(ownerText(this.#options))
      return this.#own(handle.stat())
    } catch (error) {
      await files.remove(this.path)
      throw error
    } finally {
      await handle.close()
    }
  }

  #own(stat: FileStat): true {
    const { clock, processes } = this.#options
    this.#owned = { stat, since: clock.monotonic(), cancelExit: processes.onExit(this.path, stat.identity) }
    return true
  }

  async #removeAbandoned(holder: LockHolder): Promise<void> {
    const taken = await takeOver(this.path, holder, this.#isStale, this.#options)
    if (taken === undefined) return
    await taken.release()
    this.#options.log.warn('an abandoned session lock was taken over')
  }

  /** Best effort: a holder that does not look for it lets go after its batch anyway. */
  async #askForIt(stat: FileStat): Promise<void> {
    try {
      const handle = await this.#options.files.open(this.path, 'update')
      try {
        await handle.write(' ', stat.size)
      } finally {
        await handle.close()
      }
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'EACCES') throw error
    }
  }
}

function locked({ owner }: LockHolder, waitedMs: number): GatewayError {
  return new GatewayError('SESSION_LOCKED', 'another process is writing this session; try again when it is done', {
    waitedMs,
    ownerPid: owner?.pid,
    ownerHost: owner?.host,
  })
}
