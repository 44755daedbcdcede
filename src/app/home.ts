import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { defaultHome } from '../platform/default-home.ts'

export interface HomePaths {
  readonly home: string
  readonly config: string
  readonly sessionsFile: string
  readonly transcripts: string
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
