import { type Files, errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import { takeHead } from '../base/text.ts'
import { FILE_LIMITS, readTextFile } from '../tool/files/text-file.ts'
import { PathRefused, resolveInWorkspace } from '../tool/files/workspace.ts'

/** In the order they stand in the system prompt. */
const NAMES = ['AGENTS.md', 'SOUL.md', 'USER.md'] as const
const MAX_BYTES = 64 * 1024
const MAX_SKILLS = 100
const MAX_DESCRIPTION_CHARS = 200
/** Enough for what stands at the head of a skill. */
const SKILL_HEAD_CHARS = 4_096

export interface WorkspaceOptions {
  readonly files: Files
  readonly log: Log
  readonly workspace: string
}

/**
 * What the workspace says to the model: its instruction files, 64 KB of them together, and the names of its skills,
 * which the model reads when it needs one. Links that lead out of the workspace are not followed.
 */
export async function readWorkspaceFiles(
  options: WorkspaceOptions,
  { skills }: { readonly skills: boolean },
): Promise<string> {
  if ((await options.files.stat(options.workspace)) === undefined) return ''
  const parts: string[] = []
  let room = MAX_BYTES
  for (const name of NAMES) {
    const text = room > 0 ? await read(options, name) : undefined
    if (text === undefined || text.trim() === '') continue
    const kept = withinBytes(text, room)
    room -= Buffer.byteLength(kept)
    parts.push(`<file name="${name}">\n${kept.trim()}\n</file>`)
    if (kept.length < text.length)
      options.log.warn('the files of the workspace are longer than the system prompt takes', { file: name })
  }
  const listed = skills ? await listSkills(options) : []
  if (listed.length > 0) parts.push(`<skills>\n${listed.join('\n')}\n</skills>`)
  return parts.join('\n')
}

/** At most so many bytes of UTF-8, never half a character. */
function withinBytes(text: string, bytes: number): string {
  let kept = takeHead(text, bytes)
  while (Buffer.byteLength(kept) > bytes)
    kept = takeHead(kept, kept.length - Math.ceil((Buffer.byteLength(kept) - bytes) / 3))
  return kept
}

async function read({ files, log, workspace }: WorkspaceOptions, name: string): Promise<string | undefined> {
  try {
    const at = await resolveInWorkspace(files, workspace, name)
    return at.stat?.kind === 'file' ? await readTextFile(files, at, FILE_LIMITS) : undefined
  } catch (error) {
    // One file that cannot be read must not cost anybody the answer.
    const reason = error instanceof PathRefused ? 'refused' : (errnoOf(error) ?? 'unknown')
    log.warn('a file of the workspace is not used', { file: name, reason })
    return undefined
  }
}

async function listSkills(options: WorkspaceOptions): Promise<readonly string[]> {
  const { files, workspace } = options
  const folder = await files.stat(`${workspace}/skills`)
  if (folder?.kind !== 'directory') return []
  const names = (await files.list(`${workspace}/skills`)).toSorted().slice(0, MAX_SKILLS)
  const lines: string[] = []
  for (const name of names) {
    const path = `skills/${name}/SKILL.md`
    const text = await read(options, path)
    if (text !== undefined) lines.push(`${path}: ${describe(text)}`)
  }
  return lines
}

/** `description:` of the front matter, else the first line that says something. */
function describe(text: string): string {
  const lines = takeHead(text, SKILL_HEAD_CHARS)
    .split('\n')
    .map((line) => line.trim())
  const given = lines.find((line) => line.toLowerCase().startsWith('description:'))
  const first = lines.find((line) => line !== '' && line !== '---' && !line.startsWith('name:'))
  const words = given === undefined ? (first ?? '') : given.slice('description:'.length)
  return takeHead(words.replaceAll('#', '').trim(), MAX_DESCRIPTION_CHARS)
}
