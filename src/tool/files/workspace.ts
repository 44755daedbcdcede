import type { Files, FileStat } from '../../base/files.ts'

/** A path the workspace does not give out; the message is for the model. */
export class PathRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PathRefused'
  }
}

export interface WorkspacePath {
  /** As the model may call it again: relative, normalised, `.` for the workspace itself. */
  readonly name: string
  /** Absolute, every symbolic link on the way resolved. */
  readonly path: string
  /** `path` below the resolved workspace; differs from `name` where a link is on the way. */
  readonly realName: string
  readonly stat: FileStat | undefined
  /** Some name on the way is a link: `path` is elsewhere in the workspace. */
  readonly isLinked: boolean
}

const MAX_PATH_CHARS = 1000
const MAX_NAME_BYTES = 255
/** Backslashes and drive letters mean a way out on Windows; control characters and NUL never belong in a name. */
// oxlint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u001f\u007f\\]|^[A-Za-z]:/

/** The segments below the workspace that a path names. Throws `PathRefused` for every path that would lead out of it. */
export function toSegments(path: string): readonly string[] {
  if (path.length > MAX_PATH_CHARS) throw new PathRefused(`the path has more than ${MAX_PATH_CHARS} characters`)
  if (path.startsWith('/'))
    throw new PathRefused('absolute paths are not allowed; name files relative to the workspace')
  if (path === '~' || path.startsWith('~/'))
    throw new PathRefused('"~" is not available; name files relative to the workspace')
  if (FORBIDDEN.test(path)) {
    throw new PathRefused('the path has characters that are not allowed; use "/" between plain names')
  }
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue
    if (Buffer.byteLength(segment) > MAX_NAME_BYTES) throw new PathRefused('a name in the path is too long')
    if (segment !== '..') segments.push(segment)
    else if (segments.pop() === undefined) throw new PathRefused('".." leads out of the workspace')
  }
  return segments
}

/**
 * Finds a path inside the workspace as the disk has it: the deepest existing part is resolved, and must lie inside the
 * resolved workspace. What comes after it does not exist yet and cannot be a link; a link to nowhere is refused,
 * because writing to it would create its target.
 */
export async function resolveInWorkspace(files: Files, workspace: string, asked: string): Promise<WorkspacePath> {
  const segments = toSegments(asked)
  const root = await files.realPath(workspace)
  const name = segments.join('/') || '.'
  let real = root
  let isLinked = false
  for (const [depth, segment] of segments.entries()) {
    const next = joinPath(real, segment)
    const stat = await files.stat(next)
    if (stat === undefined) {
      if ((await files.list(real)).includes(segment)) throw new PathRefused(`"${name}" goes through a broken link`)
      const path = joinPath(real, ...segments.slice(depth))
      return { name, path, realName: below(root, path), stat: undefined, isLinked }
    }
    real = await files.realPath(next)
    isLinked ||= real !== next
    if (!isInside(root, real)) throw new PathRefused(`"${name}" leads out of the workspace through a link`)
    if (depth < segments.length - 1 && stat.kind !== 'directory') {
      throw new PathRefused(`"${segments.slice(0, depth + 1).join('/')}" is not a folder`)
    }
  }
  const stat = await files.stat(real)
  if (stat?.kind === 'other') throw new PathRefused(`"${name}" is neither a file nor a folder`)
  return { name, path: real, realName: below(root, real), stat, isLinked }
}

function below(root: string, path: string): string {
  return path.slice(root === '/' ? 1 : root.length + 1)
}

export function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root === '/' ? '/' : `${root}/`)
}

/** After the file is open: it still is what was checked, and no link has been put in its place meanwhile. */
export async function isStillAt(files: Files, path: string, opened: FileStat): Promise<boolean> {
  const now = await files.stat(path)
  return now?.identity === opened.identity && (await files.realPath(path)) === path
}

export function joinPath(directory: string, ...names: readonly string[]): string {
  return [directory === '/' ? '' : directory, ...names].join('/')
}
