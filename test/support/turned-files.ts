import type { FileHandle, Files } from '../../src/base/files.ts'

/** The same disk, with `turn` awaited before every call that a real disk would answer later. */
export function withTurns(disk: Files, turn: () => Promise<void>): Files {
  const handleOf = (handle: FileHandle): FileHandle => ({
    path: handle.path,
    read: async (position, length) => (await turn(), handle.read(position, length)),
    readNow: (position, length) => handle.readNow(position, length),
    write: async (bytes, position) => (await turn(), handle.write(bytes, position)),
    truncate: async (size) => (await turn(), handle.truncate(size)),
    sync: async () => (await turn(), handle.sync()),
    stat: () => handle.stat(),
    close: async () => (await turn(), handle.close()),
  })
  return {
    open: async (...args) => (await turn(), handleOf(await disk.open(...args))),
    stat: async (path) => (await turn(), disk.stat(path)),
    statSync: (path) => disk.statSync(path),
    list: async (path) => (await turn(), disk.list(path)),
    makeDirectory: async (...args) => (await turn(), disk.makeDirectory(...args)),
    rename: async (from, to) => (await turn(), disk.rename(from, to)),
    remove: async (path) => (await turn(), disk.remove(path)),
    removeDirectory: async (path) => (await turn(), disk.removeDirectory(path)),
    syncDirectory: async (path) => (await turn(), disk.syncDirectory(path)),
    realPath: async (path) => (await turn(), disk.realPath(path)),
  }
}
