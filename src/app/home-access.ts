import type { Files } from '../base/files.ts'
import type { HomePaths } from './home.ts'

/** Written by the group or by everybody: `chmod go-w` takes both away. */
const WRITABLE_BY_OTHERS = 0o022

/**
 * What lets other users of this machine change the gateway's home or its configuration, a sentence each that says what
 * to do. A user who can write there can read every conversation and run any program as this user.
 */
export async function homeAccessProblems(
  files: Files,
  { home, config }: Pick<HomePaths, 'home' | 'config'>,
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const path of [home, config]) {
    const stat = await files.stat(path)
    if (stat === undefined) continue
    if (stat.belongsToOthers) problems.push(`${path} belongs to another user; make it yours with chown`)
    if ((stat.permissions & WRITABLE_BY_OTHERS) !== 0) {
      const mode = stat.permissions.toString(8).padStart(4, '0')
      problems.push(`other users can write ${path} (mode ${mode}); take that away with chmod go-w`)
    }
  }
  return problems
}
