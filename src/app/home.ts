import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { defaultHome } from '../platform/default-home.ts'
import { type Files, readWhole } from '../base/files.ts'
import { writeAtomically } from '../base/atomic-write.ts'
import type { Platform } from './platform.ts'

export interface HomePaths {
  readonly home: string
  readonly config: string
  readonly sessionsFile: string
  readonly transcripts: string
  /** Rows that were not changed lately. */
  readonly rows: string
  /** Rows of conversations that left the index. */
  readonly archive: string
  readonly journal: string
  /** How far the journal has come. */
  readonly journalHead: string
  readonly workspace: string
  /** Notes of the memory tool, a folder per account. */
  readonly memory: string
  readonly media: string
  readonly logs: string
  readonly lock: string
  /** Where a running gateway says how it can be reached. */
  readonly contact: string
  readonly uid: string
  /** What `~` means in a path that a user writes. */
  readonly userHome: string
}

/** `--home`, else `CLEW_HOME`, else `~/.openclaw` where it holds an existing bridge's `bridge.json`, else `~/.clew`. */
export function homePaths(option: string | undefined, env: Readonly<Record<string, string | undefined>>): HomePaths {
  const fromEnv = env['CLEW_HOME']
  const home = resolve(option ?? (fromEnv === undefined || fromEnv === '' ? defaultHome() : fromEnv))
  return {
    home,
    config: join(home, 'bridge.json'),
    sessionsFile: join(home, 'sessions.json'),
    transcripts: join(home, 'sessions'),
    rows: join(home, 'rows'),
    archive: join(home, 'archive'),
    journal: join(home, 'journal'),
    journalHead: join(home, 'journal-head.json'),
    workspace: join(home, 'workspace'),
    memory: join(home, 'memory'),
    media: join(home, 'media'),
    logs: join(home, 'logs'),
    lock: join(home, 'gateway.lock'),
    contact: join(home, 'gateway.json'),
    uid: join(home, 'uid'),
    userHome: homedir(),
  }
}

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

/** Our identity at a hub: made once, kept in the home. */
export async function readOrCreateUid({ files, ids }: Pick<Platform, 'files' | 'ids'>, path: string): Promise<string> {
  const bytes = await readWhole(files, path, 1024)
  const known = bytes === undefined ? '' : new TextDecoder().decode(bytes).trim()
  if (known !== '') return known
  const uid = ids.uuid()
  await writeAtomically({ files, ids }, path, `${uid}\n`)
  return uid
}
