import { PathRefused, type WorkspacePath } from './workspace.ts'

const FOLDERS: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', '.bzr', '_darcs', 'cvs'])
/** What Windows calls a file named ".git" besides its name. */
const SHORT_NAME = /^git~\d+$/u
/** Characters that some file systems leave out when they compare names. */
const IGNORED = /[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu

/**
 * Refuses a path in, at or onto a folder of a version control program: its files name programs that git and others run
 * by themselves, so that writing there runs anything as soon as one of them is started.
 */
export function refuseVersionControl({ name, realName }: WorkspacePath): void {
  const found = [...name.split('/'), ...realName.split('/')].find(isVersionControl)
  if (found === undefined) return
  throw new PathRefused(`"${found}" belongs to version control and cannot be changed while programs may be run`)
}

/** As forgiving as the most forgiving file system: case, trailing dots and spaces, and invisible characters do not count. */
function isVersionControl(segment: string): boolean {
  const plain = segment.normalize('NFKC').replaceAll(IGNORED, '').toLowerCase().split(':')[0] ?? ''
  const trimmed = trimEnd(plain)
  return FOLDERS.has(trimmed) || SHORT_NAME.test(trimmed)
}

function trimEnd(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '.' || text[end - 1] === ' ')) end--
  return text.slice(0, end)
}
