import type { Files } from '../../base/files.ts'
import { directoryOf, makeDurableDirectory, readWhole, writeAtomically } from '../../base/files.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { Remembered } from './remembered.ts'

export interface StateOptions {
  readonly files: Files
  /** Absolute path of the file. */
  readonly path: string
  readonly maxEntries: number
  readonly log: Log
}

const MAX_FILE_BYTES = 8 * 1024 * 1024
const SECTIONS = ['pins', 'aliases', 'pushIds', 'closedRuns'] as const

/**
 * What the channel must know after a restart: pinned certificates, which launch id stands for which conversation,
 * where to push, and which runs already had their last frame. One small file, replaced as a whole.
 */
export class XiaoyiState {
  /** URL of a link → SHA-256 fingerprint. */
  readonly pins: Remembered<string>
  /** Top-level session id → `params.sessionId`. */
  readonly aliases: Remembered<string>
  /** Session id → `push_id`. Per session, because a global one delivers one person's result to another. */
  readonly pushIds: Remembered<string>
  /** Runs whose task is closed on the phone although their answer is still to come → session id. */
  readonly closedRuns: Remembered<string>
  readonly #options: StateOptions
  #dirty = false
  #writing: Promise<void> | undefined

  static async open(options: StateOptions): Promise<XiaoyiState> {
    const state = new XiaoyiState(options)
    await state.#load()
    return state
  }

  private constructor(options: StateOptions) {
    this.#options = options
    this.pins = new Remembered(options.maxEntries)
    this.aliases = new Remembered(options.maxEntries)
    this.pushIds = new Remembered(options.maxEntries)
    this.closedRuns = new Remembered(options.maxEntries)
  }

  /** Durable when it resolves; calls made meanwhile share one more write. */
  async save(): Promise<void> {
    this.#dirty = true
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined))
    await this.#writing
  }

  /** Resolves when no write is under way; rejects when the one under way fails. */
  async settled(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    const { files, path } = this.#options
    await makeDurableDirectory(files, directoryOf(path))
    while (this.#dirty) {
      this.#dirty = false
      const content = Object.fromEntries(SECTIONS.map((name) => [name, Object.fromEntries(this[name].entries())]))
      await writeAtomically(files, path, `${JSON.stringify(content)}\n`, {
        temporary: `${path}.tmp`,
        permissions: 0o600,
      })
    }
  }

  async #load(): Promise<void> {
    const { files, path, log } = this.#options
    const bytes = await readWhole(files, path, MAX_FILE_BYTES)
    if (bytes === undefined) return
    const content = parseJson(new TextDecoder().decode(bytes))
    if (!isRecord(content)) {
      // Kept for inspection: a lost pin means that the next certificate is trusted again.
      log.warn('the XiaoYi state file is unreadable and was set aside', { path })
      await files.rename(path, `${path}.unreadable`)
      return
    }
    for (const name of SECTIONS) {
      const section = content[name]
      if (!isRecord(section)) continue
      for (const [key, value] of Object.entries(section)) if (typeof value === 'string') this[name].set(key, value)
    }
  }
}
