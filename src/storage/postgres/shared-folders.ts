import { isTemporary, writeAtomically } from '../../base/atomic-write.ts'
import { directoryOf, makeDurableDirectory, type FileHandle, type Files, type FileStat } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { HomeFile, HomeFiles } from '../storage.ts'

/** Files of which some folders of the home are the same on all nodes. */
export interface SharedFolders {
  readonly files: Files
  /** Until then nothing is shared. */
  attach(shared: HomeFiles): void
}

/** Written once, under a name that cannot be guessed: a copy on this disk stays right. */
const KEPT = 'media'
/** Changed by any node: only the database has them. */
const REMOTE = 'memory'
/** A file of a message, in the home of whichever node took it. */
function ofAnotherHome(path: string): string | undefined {
  const [folder, id = '', name = ''] = path.split('/').slice(-3)
  return folder === KEPT && /^[0-9a-f]{32}$/u.test(id) && name !== '' ? `${id}/${name}` : undefined
}

/** The files of a node: what comes with messages, and the notes of the memory tool, are in the database. */
export function shareFolders(
  { files: disk, ids }: { readonly files: Files; readonly ids: Ids },
  home: string,
): SharedFolders {
  let shared: HomeFiles | undefined
  /** Written here and not renamed yet. */
  const unnamed = new Map<string, Uint8Array>()

  const nameIn = (folder: string, path: string): string | undefined =>
    shared !== undefined && (path === `${home}/${folder}` || path.startsWith(`${home}/${folder}/`))
      ? path.slice(home.length + 1)
      : undefined
  const required = (): HomeFiles => {
    if (shared === undefined) throw new Error('nothing is shared yet')
    return shared
  }

  /** Puts a file that another node took onto this disk. */
  const bringHere = async (path: string): Promise<boolean> => {
    const name = nameIn(KEPT, path)
    const content = name === undefined ? undefined : await required().get(name)
    if (content === undefined) return false
    await makeDurableDirectory(disk, directoryOf(path))
    await writeAtomically({ files: disk, ids }, path, content, { permissions: 0o600 })
    return true
  }

  /** The path to read: of a file that a message of another home names, the one it has here. */
  const readable = async (path: string): Promise<string> => {
    const found = path.startsWith(`${home}/`) ? undefined : ofAnotherHome(path)
    const own = found === undefined ? path : `${home}/${KEPT}/${found}`
    if (nameIn(KEPT, own) === undefined) return path
    return (await disk.stat(own)) !== undefined || (await bringHere(own)) ? own : path
  }

  const upload = async (path: string): Promise<void> => {
    const name = nameIn(KEPT, path)
    if (name === undefined || isTemporary(path)) return
    const handle = await disk.open(path, 'read')
    try {
      await required().put(name, await handle.read(0, handle.stat().size))
    } finally {
      await handle.close()
    }
  }

  const listed = async (name: string): Promise<readonly string[]> => {
    const found = await required().list(name)
    return [...new Set(found.flatMap(({ path }) => path.slice(name.length + 1).split('/')[0] || []))]
  }

  return {
    attach: (given) => {
      shared = given
    },
    files: {
      async open(path, mode, permissions) {
        const remote = nameIn(REMOTE, path)
        if (remote !== undefined) {
          if (mode === 'create') return collect(path, (content) => void unnamed.set(path, content))
          const content = await required().get(remote)
          if (content === undefined) throw missing(path)
          return contentOf(path, content)
        }
        if (mode === 'read') return disk.open(await readable(path), mode)
        const handle = await disk.open(path, mode, permissions)
        return nameIn(KEPT, path) === undefined ? handle : whenSynced(handle, () => upload(path))
      },
      async stat(path) {
        const name = nameIn(REMOTE, path)
        if (name !== undefined) return statOf(name, await required().list(name))
        const local = await disk.stat(await readable(path))
        const kept = local === undefined ? nameIn(KEPT, path) : undefined
        return kept === undefined ? local : statOf(kept, await required().list(kept))
      },
      statSync: (path) => disk.statSync(path),
      async list(directory) {
        const remote = nameIn(REMOTE, directory)
        if (remote !== undefined) return (await listed(remote)).toSorted()
        const local = await disk.list(directory)
        const kept = nameIn(KEPT, directory)
        return kept === undefined ? local : [...new Set([...local, ...(await listed(kept))])].toSorted()
      },
      async makeDirectory(path, permissions) {
        if (nameIn(REMOTE, path) === undefined) await disk.makeDirectory(path, permissions)
      },
      async rename(from, to) {
        const name = nameIn(REMOTE, to)
        if (name !== undefined) {
          const content = unnamed.get(from)
          if (content === undefined) throw missing(from)
          unnamed.delete(from)
          return required().put(name, content)
        }
        await disk.rename(from, to)
        await upload(to)
      },
      async remove(path) {
        const name = nameIn(REMOTE, path) ?? nameIn(KEPT, path)
        unnamed.delete(path)
        if (name !== undefined && !isTemporary(path)) await required().remove(name)
        if (nameIn(REMOTE, path) === undefined) await disk.remove(path)
      },
      async removeDirectory(path) {
        const name = nameIn(REMOTE, path) ?? nameIn(KEPT, path)
        if (name !== undefined) await required().remove(name)
        if (nameIn(REMOTE, path) === undefined) await disk.removeDirectory(path)
      },
      async syncDirectory(path) {
        if (nameIn(REMOTE, path) === undefined) await disk.syncDirectory(path)
      },
      realPath: async (path) => (nameIn(REMOTE, path) === undefined ? disk.realPath(await readable(path)) : path),
    },
  }
}

function statOf(name: string, found: readonly HomeFile[]): FileStat | undefined {
  const [first] = found
  if (first === undefined) return undefined
  const isFile = first.path === name
  return {
    kind: isFile ? 'file' : 'directory',
    size: isFile ? first.size : 0,
    modifiedAt: Math.max(...found.map(({ changedAt }) => changedAt)),
    permissions: isFile ? 0o600 : 0o700,
    belongsToOthers: false,
    identity: `shared ${name} ${first.changedAt}`,
  }
}

/** A file in memory, handed over when it is synced. */
function collect(path: string, done: (content: Uint8Array) => void): FileHandle {
  const pieces: Uint8Array[] = []
  return {
    ...contentOf(path, new Uint8Array()),
    async write(piece) {
      pieces.push(typeof piece === 'string' ? Buffer.from(piece) : Uint8Array.from(piece))
    },
    sync: async () => done(Buffer.concat(pieces)),
  }
}

function contentOf(path: string, content: Uint8Array): FileHandle {
  const refuse = (): Promise<never> => Promise.reject(new Error(`${path} is read only`))
  return {
    path,
    read: async (position, length) => content.subarray(position, position + length),
    readNow: (position, length) => content.subarray(position, position + length),
    write: refuse,
    truncate: refuse,
    sync: async () => undefined,
    stat: () => ({
      kind: 'file',
      size: content.length,
      modifiedAt: 0,
      permissions: 0o600,
      belongsToOthers: false,
      identity: path,
    }),
    close: async () => undefined,
  }
}

function whenSynced(handle: FileHandle, then: () => Promise<void>): FileHandle {
  const { readInto } = handle
  return {
    path: handle.path,
    read: (position, length) => handle.read(position, length),
    readNow: (position, length) => handle.readNow(position, length),
    ...(readInto === undefined ? {} : { readInto: (target, position) => readInto.call(handle, target, position) }),
    write: (bytes, position) => handle.write(bytes, position),
    truncate: (size) => handle.truncate(size),
    async sync() {
      await handle.sync()
      await then()
    },
    stat: () => handle.stat(),
    close: () => handle.close(),
  }
}

function missing(path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ENOENT: no such file, ${path}`), { code: 'ENOENT', path })
}
