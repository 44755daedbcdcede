import { directoryOf, errnoOf, type FileHandle, type Files, type FileStat } from './files.ts'

const BLOCK_BYTES = 1024 * 1024

/**
 * The folder `lower` as it is, with every change kept in the folder `upper`: code that repairs, recovers or rewrites can
 * work on a folder that must stay untouched. Paths outside `lower` are what they are. Nothing here is durable.
 */
export function overlayFiles(files: Files, lower: string, upper: string): Files {
  const removed = new Set<string>()
  const isInside = (path: string): boolean => path === lower || path.startsWith(`${lower}/`)
  const above = (path: string): string => `${upper}${path.slice(lower.length)}`

  const isRemoved = (path: string): boolean => {
    for (let at = path; isInside(at); at = directoryOf(at)) if (removed.has(at)) return true
    return false
  }

  /** Where the path's content is, in one folder or the other. */
  const placeOf = (path: string, exists: (path: string) => boolean): string => {
    if (!isInside(path) || exists(above(path))) return isInside(path) ? above(path) : path
    return isRemoved(path) ? above(path) : path
  }

  const place = (path: string): string => placeOf(path, (one) => files.statSync(one) !== undefined)

  const makeParent = (path: string): Promise<void> => files.makeDirectory(directoryOf(above(path)))

  const copyUp = async (path: string): Promise<void> => {
    if (!isInside(path)) return
    await makeParent(path)
    const source = place(path)
    if (source === above(path) || files.statSync(source) === undefined) return
    await copyFile(files, source, above(path))
  }

  return {
    async open(path, mode, permissions) {
      if (!isInside(path) || mode === 'read') return files.open(place(path), mode, permissions)
      if (mode === 'create' && files.statSync(place(path)) !== undefined) throw alreadyThere(path)
      await copyUp(path)
      return files.open(above(path), mode, permissions)
    },
    stat: (path) => files.stat(place(path)),
    statSync: (path): FileStat | undefined => files.statSync(place(path)),
    async list(directory) {
      if (!isInside(directory)) return files.list(directory)
      const ours = await files.list(above(directory))
      const theirs = isRemoved(directory) ? [] : await files.list(directory).catch(emptyUnless('ENOTDIR'))
      const kept = theirs.filter((name) => !removed.has(`${directory}/${name}`))
      return [...new Set([...ours, ...kept])].sort()
    },
    makeDirectory: (path, permissions) => files.makeDirectory(isInside(path) ? above(path) : path, permissions),
    async rename(from, to) {
      await copyUp(from)
      await makeParent(to)
      await files.rename(above(from), above(to))
      removed.add(from)
    },
    async remove(path) {
      await files.remove(isInside(path) ? above(path) : path)
      if (isInside(path)) removed.add(path)
    },
    async removeDirectory(path) {
      await files.removeDirectory(isInside(path) ? above(path) : path)
      if (isInside(path)) removed.add(path)
    },
    async syncDirectory() {},
    realPath: async (path) => (isInside(path) ? path : files.realPath(path)),
  }
}

function emptyUnless(expected: string): (error: unknown) => readonly string[] {
  return (error) => {
    if (errnoOf(error) !== expected) throw error
    return []
  }
}

async function copyFile(files: Files, from: string, to: string): Promise<void> {
  const source = await files.open(from, 'read')
  try {
    const target: FileHandle = await files.open(to, 'create', source.stat().permissions)
    try {
      for (let position = 0; ;) {
        const block = await source.read(position, BLOCK_BYTES)
        if (block.length === 0) return
        await target.write(block, position)
        position += block.length
      }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

function alreadyThere(path: string): Error {
  return Object.assign(new Error(`EEXIST: file already exists, open '${path}'`), { code: 'EEXIST', path })
}
