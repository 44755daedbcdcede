import type { Clock } from '../base/clock.ts'
import { errnoOf, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import { isAbandoned, readLockHolder } from '../base/lock-file.ts'
import type { Processes } from '../base/processes.ts'
import { ownerText, staleAfter } from './lock-owner.ts'

export interface BadgeOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  /** On the file system of the locks. Made when it is needed. */
  readonly directory: string
  readonly staleMs: number
}

/** `impossible`: not on this file system, or not now. */
export type Pinned = { readonly kind: 'pinned'; readonly identity: string } | { readonly kind: 'exists' | 'impossible' }

interface Current {
  readonly path: string
  readonly identity: string
  readonly madeAt: number
  cancelExit(): void
}

/** Far below `staleMs`: its age is the age of every lock that is pinned with it. */
const RENEW_MS = 60_000
/** A file system that has no links today has none tomorrow. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV'])

/**
 * Who we are, in a file of its own; our lock files are links to it. Files that are created and deleted all the time are
 * expensive: for each new one ext4 passes by all inodes that were freed in the last minutes, which took a millisecond
 * at forty locks a second (decision 0017). A link needs no inode.
 */
export class Badge {
  readonly #options: BadgeOptions
  #current: Current | undefined
  #making: Promise<Current> | undefined
  /** Former ones on their way out. */
  #removing: Promise<void> = Promise.resolve()
  #hasSwept = false
  #hasNoLinks = false

  constructor(options: BadgeOptions) {
    this.#options = options
  }

  /** Makes a file at `path` that says who we are, unless there is one already. */
  async pinTo(path: string): Promise<Pinned> {
    if (this.#hasNoLinks) return { kind: 'impossible' }
    try {
      const { path: badge, identity } = await this.#renewed()
      return (await this.#link(badge, path)) ? { kind: 'pinned', identity } : { kind: 'exists' }
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === undefined) throw error
      this.#hasNoLinks = NO_LINKS.has(errno)
      this.#takeOff()
      return { kind: 'impossible' }
    }
  }

  /** The next lock gets a new one. */
  retire(identity: string): void {
    if (this.#current?.identity === identity) this.#takeOff()
  }

  async close(): Promise<void> {
    await this.#making?.catch(() => undefined)
    this.#takeOff()
    await this.#removing
  }

  /** No lock waits for the removal, and what stays behind is swept away by the next process. */
  #takeOff(): void {
    const former = this.#current
    if (former === undefined) return
    this.#current = undefined
    former.cancelExit()
    const removing = this.#options.files.remove(former.path).catch(() => undefined)
    this.#removing = Promise.all([this.#removing, removing]).then(() => undefined)
  }

  async #link(badge: string, path: string): Promise<boolean> {
    try {
      await this.#options.files.link(badge, path)
      return true
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false
      throw error
    }
  }

  async #renewed(): Promise<Current> {
    const { clock, staleMs } = this.#options
    const renewMs = Math.min(RENEW_MS, staleMs / 4)
    if (this.#current !== undefined && clock.monotonic() - this.#current.madeAt < renewMs) return this.#current
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  async #make(): Promise<Current> {
    const { files, clock, ids, processes, directory } = this.#options
    await files.makeDirectory(directory)
    if (!this.#hasSwept) await this.#sweep()
    this.#hasSwept = true
    const path = `${directory}/${ids.hex(16)}`
    const madeAt = clock.monotonic()
    const handle = await files.open(path, 'create')
    try {
      await handle.write(ownerText(this.#options))
      const { identity } = handle.stat()
      this.#takeOff()
      this.#current = { path, identity, madeAt, cancelExit: processes.onExit(path, identity) }
      return this.#current
    } catch (error) {
      // On a full disk every lock comes by here.
      await files.remove(path)
      throw error
    } finally {
      await handle.close()
    }
  }

  /** Badges of processes that were killed. */
  async #sweep(): Promise<void> {
    const { files, directory, clock, staleMs } = this.#options
    const isStale = staleAfter(staleMs, clock)
    for (const name of await files.list(directory)) {
      const path = `${directory}/${name}`
      const holder = await readLockHolder(path, this.#options)
      if (holder !== undefined && isAbandoned(holder, isStale, this.#options)) await files.remove(path)
    }
  }
}
