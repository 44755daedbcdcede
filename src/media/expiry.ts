import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import { errnoOf, type Files } from '../base/files.ts'
import type { Log } from '../base/log.ts'

export interface MediaExpiryDeps {
  readonly files: Files
  readonly clock: Clock
  readonly log: Log
  /** `<home>/media`: a folder with a random name for each file that came in. */
  readonly directory: string
  readonly limits: MediaLimits
  /** Which of these folders something still refers to. */
  stillNeeded(folders: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>
}

export interface MediaLimits {
  readonly maxAgeMs: number
  /** Of all files together. The oldest go first. */
  readonly maxBytes: number
}

const FIRST_SWEEP_MS = 60_000
const SWEEP_EVERY_MS = 3_600_000
/** A file that young may belong to a message that is only being accepted, and that is in no transcript yet. */
const SAFE_AGE_MS = 3_600_000
/** Ours are named so. Other files there are not ours to remove. */
const OUR_NAME = /^[0-9a-f]{32}$/

interface Folder {
  readonly name: string
  readonly at: number
  readonly bytes: number
}

/**
 * Ends the life of files that came in through a channel: when they are old, or when all of them are too many bytes.
 * What something still refers to stays in any case.
 */
export class MediaExpiry {
  readonly #deps: MediaExpiryDeps
  readonly #closing = new AbortController()
  #sweeping: Promise<void> | undefined

  constructor(deps: MediaExpiryDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#sweeping ??= this.#sweepForEver(this.#closing.signal)
  }

  /** Resolves when nothing is looked at or removed any more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('closing'))
    await this.#sweeping
  }

  async #sweepForEver(signal: AbortSignal): Promise<void> {
    try {
      await sleep(this.#deps.clock, FIRST_SWEEP_MS, signal)
      for (;;) {
        await this.#sweep(signal)
        await sleep(this.#deps.clock, SWEEP_EVERY_MS, signal)
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    try {
      await this.#removeExpired(signal)
    } catch (thrown) {
      signal.throwIfAborted()
      this.#deps.log.warn('old media could not be checked', { errno: errnoOf(thrown) })
    }
  }

  async #removeExpired(signal: AbortSignal): Promise<void> {
    const { clock, limits, stillNeeded } = this.#deps
    const folders = await this.#folders(signal)
    const now = clock.now()
    const ripe = folders.filter(({ at }) => now - at >= SAFE_AGE_MS).sort((a, b) => a.at - b.at)
    let bytes = folders.reduce((sum, folder) => sum + folder.bytes, 0)
    const isTooOld = ({ at }: Folder): boolean => now - at > limits.maxAgeMs
    if (bytes <= limits.maxBytes && !ripe.some(isTooOld)) return
    const asked = bytes > limits.maxBytes ? ripe : ripe.filter(isTooOld)
    const needed = await stillNeeded(
      asked.map(({ name }) => name),
      signal,
    )
    const going: Folder[] = []
    for (const folder of asked.filter(({ name }) => !needed.has(name))) {
      if (!isTooOld(folder) && bytes <= limits.maxBytes) break
      going.push(folder)
      bytes -= folder.bytes
    }
    await this.#remove(going, signal)
    if (bytes > limits.maxBytes)
      this.#deps.log.warn('stored media exceed their limit, because conversations still refer to them', {
        bytes,
        maxBytes: limits.maxBytes,
      })
  }

  async #folders(signal: AbortSignal): Promise<readonly Folder[]> {
    const { files, directory } = this.#deps
    const folders: Folder[] = []
    for (const name of await files.list(directory)) {
      signal.throwIfAborted()
      if (!OUR_NAME.test(name)) continue
      const stat = await files.stat(`${directory}/${name}`)
      if (stat?.kind !== 'directory') continue
      folders.push({ name, at: stat.modifiedAt, bytes: await this.#bytesOf(name) })
    }
    return folders
  }

  async #bytesOf(folder: string): Promise<number> {
    const { files, directory } = this.#deps
    let bytes = 0
    for (const name of await files.list(`${directory}/${folder}`))
      bytes += (await files.stat(`${directory}/${folder}/${name}`))?.size ?? 0
    return bytes
  }

  async #remove(folders: readonly Folder[], signal: AbortSignal): Promise<void> {
    const { files, directory, log } = this.#deps
    if (folders.length === 0) return
    for (const { name } of folders) {
      signal.throwIfAborted()
      await files.removeDirectory(`${directory}/${name}`)
    }
    await files.syncDirectory(directory)
    log.info('old media were removed', {
      files: folders.length,
      bytes: folders.reduce((sum, one) => sum + one.bytes, 0),
    })
  }
}
