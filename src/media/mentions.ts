import { openIfThere, type Files } from '../base/files.ts'

/** A media folder in a path as any program writes it into JSON: with slashes, escaped slashes or backslashes. */
const MENTION = /media[\\/]+([0-9a-f]{32})/g
/** Longer than any mention, so that none is lost between two blocks. */
const OVERLAP = 64
const BLOCK_BYTES = 256 * 1024

export interface MentionsDeps {
  readonly files: Files
  /** Where the transcripts are, archived ones and backups too. */
  readonly directory: string
}

/**
 * Which media folders the transcripts of a home name. A transcript only grows, so a folder once found stays found as long
 * as its file is there; only folders never found are searched for again.
 */
export class Mentions {
  readonly #deps: MentionsDeps
  /** Folder → name of a file that mentions it. */
  readonly #found = new Map<string, string>()

  constructor(deps: MentionsDeps) {
    this.#deps = deps
  }

  async of(folders: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const names = (await this.#deps.files.list(this.#deps.directory)).filter(isTranscript)
    const present = new Set(names)
    for (const [folder, name] of this.#found) if (!present.has(name)) this.#found.delete(folder)
    const wanted = new Set(folders.filter((folder) => !this.#found.has(folder)))
    for (const name of names) {
      if (wanted.size === 0) break
      await this.#search(name, wanted, signal)
    }
    return new Set(folders.filter((folder) => this.#found.has(folder)))
  }

  async #search(name: string, wanted: Set<string>, signal: AbortSignal): Promise<void> {
    const { files, directory } = this.#deps
    const handle = await openIfThere(files, `${directory}/${name}`, 'read')
    // Removed since we looked.
    if (handle === undefined) return
    try {
      const { size } = handle.stat()
      for (let at = 0; at < size && wanted.size > 0; at += BLOCK_BYTES) {
        signal.throwIfAborted()
        const block = Buffer.from(await handle.read(at, BLOCK_BYTES + OVERLAP)).toString('latin1')
        for (const folder of foldersIn(block)) if (wanted.delete(folder)) this.#found.set(folder, name)
      }
    } finally {
      await handle.close()
    }
  }
}

/** The media folders that paths in a text lead to. */
export function foldersIn(text: string): readonly string[] {
  return Array.from(text.matchAll(MENTION), ([, folder = '']) => folder)
}

function isTranscript(name: string): boolean {
  return name.includes('.jsonl') && !name.includes('.jsonl.lock')
}
