import type { FileHandle, Files } from '../../src/base/files.ts'

/**
 * Lets several programs work on one disk with their calls interleaved as `random` says: each call waits until it is
 * picked. A program that is killed never gets its next call done.
 */
export class Interleaving {
  readonly #disk: Files
  readonly #random: () => number
  #waiting: { readonly program: string; readonly go: () => void }[] = []

  constructor(disk: Files, random: () => number) {
    this.#disk = disk
    this.#random = random
  }

  filesOf(program: string): Files {
    const disk = this.#disk
    const turn = (): Promise<void> =>
      new Promise((resolve) => {
        this.#waiting.push({ program, go: resolve })
      })
    const handleOf = (handle: FileHandle): FileHandle => ({
      path: handle.path,
      read: async (position, length) => (await turn(), handle.read(position, length)),
      write: async (bytes, position) => (await turn(), handle.write(bytes, position)),
      truncate: async (size) => (await turn(), handle.truncate(size)),
      sync: async () => (await turn(), handle.sync()),
      stat: () => handle.stat(),
      close: async () => (await turn(), handle.close()),
    })
    return {
      open: async (...args) => (await turn(), handleOf(await disk.open(...args))),
      stat: async (path) => (await turn(), disk.stat(path)),
      statNow: (path) => disk.statNow(path),
      list: async (path) => (await turn(), disk.list(path)),
      makeDirectory: async (...args) => (await turn(), disk.makeDirectory(...args)),
      rename: async (from, to) => (await turn(), disk.rename(from, to)),
      remove: async (path) => (await turn(), disk.remove(path)),
      removeDirectory: async (path) => (await turn(), disk.removeDirectory(path)),
      syncDirectory: async (path) => (await turn(), disk.syncDirectory(path)),
      realPath: async (path) => (await turn(), disk.realPath(path)),
    }
  }

  /** Lets one waiting call happen; false when there is none. */
  async step(): Promise<boolean> {
    // What the last call caused reaches the next call first.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const at = Math.floor(this.#random() * this.#waiting.length)
    const [next] = this.#waiting.splice(at, 1)
    next?.go()
    return next !== undefined
  }

  kill(program: string): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.program !== program)
  }
}
