import type { Files } from '../../base/files.ts'
import type { FileLimits } from './text-file.ts'
import { joinPath, PathRefused, type WorkspacePath } from './workspace.ts'

/** Whole lines from `offset` on, as many as fit, and how to get the rest. */
export function sliceLines(text: string, offset: number, limit: number | undefined, limits: FileLimits): string {
  const lines = text.split('\n')
  if (offset === 1 && limit === undefined && text.length <= limits.maxReadChars) return text
  if (offset > lines.length) return `[the file has ${lines.length} lines]`
  const wanted = lines.slice(offset - 1, limit === undefined ? undefined : offset - 1 + limit)
  const shown: string[] = []
  let room = limits.maxReadChars
  for (const line of wanted) {
    if (shown.length > 0 && line.length + 1 > room) break
    shown.push(line)
    room -= line.length + 1
  }
  const last = offset - 1 + shown.length
  const rest = last < lines.length ? `; continue with offset ${last + 1}` : ''
  return `${shown.join('\n')}\n[lines ${offset}-${last} of ${lines.length}${rest}]`
}

/** Refuses to guess: text that occurs twice could be replaced in the wrong place. */
export function editText(content: string, name: string, find: string, replacement: string): string {
  const first = content.indexOf(find)
  if (first === -1) throw new PathRefused(`the text to replace does not occur in "${name}"`)
  if (content.includes(find, first + 1)) {
    throw new PathRefused(`the text to replace occurs more than once in "${name}"; include more of its surroundings`)
  }
  return content.slice(0, first) + replacement + content.slice(first + find.length)
}

/** A line per name: folders end in "/", files have their size. Links are shown as what they are: links. */
export async function listFolder(files: Files, at: WorkspacePath, maxListed: number): Promise<string> {
  if (at.stat === undefined) throw new PathRefused(`"${at.name}" does not exist`)
  if (at.stat.kind !== 'directory') throw new PathRefused(`"${at.name}" is a file; use the action "read"`)
  const names = await files.list(at.path)
  const lines: string[] = []
  for (const name of names.slice(0, maxListed)) lines.push(await describeEntry(files, at.path, name))
  if (names.length > maxListed) lines.push(`[${names.length - maxListed} more]`)
  return lines.join('\n') || '[the folder is empty]'
}

async function describeEntry(files: Files, directory: string, name: string): Promise<string> {
  const path = joinPath(directory, name)
  const stat = await files.stat(path).catch(() => undefined)
  const shown = JSON.stringify(name) === `"${name}"` ? name : JSON.stringify(name)
  if (stat === undefined) return `${shown} (broken link)`
  if ((await files.realPath(path).catch(() => undefined)) !== path) return `${shown} (link)`
  if (stat.kind === 'directory') return `${shown}/`
  return stat.kind === 'file' ? `${shown} (${stat.size} bytes)` : `${shown} (special file)`
}
