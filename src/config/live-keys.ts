import { isRecord } from '../base/json.ts'
import type { Config } from './config.ts'
import { keyOf, type KeyPath } from './problem.ts'

/**
 * What a running gateway takes from a changed `bridge.json`; `*` is any name. Everything else is built once, at the start:
 * sockets, storage, limits of queues, and code of plugins and hooks, which a process cannot load a second time.
 */
const LIVE: readonly KeyPath[] = [
  ['model'],
  ['providers'],
  ['agent'],
  ['task'],
  ['compaction'],
  ['contextPruning'],
  ['budget'],
  ['language'],
  ['queue', 'mode'],
  ['shutdown'],
  ['listen', 'token'],
  ['listen', 'tokens'],
  ['listen', 'allowed_origins'],
  ['channels', '*', 'historyLimit'],
  ['channels', '*', 'dmHistoryLimit'],
  ['channels', '*', 'dms'],
]

export interface ConfigChange {
  /** What is in force from now on: `before` with the live keys of `after`. */
  readonly config: Config
  /** Keys that took effect, and keys that need a restart, as `bridge.json` names them. */
  readonly applied: readonly string[]
  readonly restart: readonly string[]
}

/** What a running gateway makes of a changed configuration. */
export function compareConfigs(before: Config, after: Config): ConfigChange {
  const changed = differences(before, after, [])
  // Tokens were judged for the address of the new file: they belong to it.
  const movesAway = before.listen.host !== after.listen.host
  const isLive = (path: KeyPath): boolean =>
    LIVE.some((pattern) => matches(pattern, path)) && !(movesAway && path[0] === 'listen')
  const live = changed.filter(isLive)
  return {
    config: live.reduce<unknown>((config, path) => withValueAt(config, path, valueAt(after, path)), before) as Config,
    applied: live.map(keyOf),
    restart: changed.filter((path) => !isLive(path)).map(keyOf),
  }
}

function matches(pattern: KeyPath, path: KeyPath): boolean {
  return path.length >= pattern.length && pattern.every((part, at) => part === '*' || part === path[at])
}

/** The shortest paths that tell two values apart; a list is one value. */
function differences(before: unknown, after: unknown, path: KeyPath): readonly KeyPath[] {
  if (isRecord(before) && isRecord(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap((key) => differences(before[key], after[key], [...path, key]))
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [path]
}

function valueAt(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)
}

function withValueAt(value: unknown, [key, ...rest]: KeyPath, given: unknown): unknown {
  if (key === undefined) return given
  const record = isRecord(value) ? value : {}
  const inner = withValueAt(record[key], rest, given)
  if (inner === undefined) return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key))
  return { ...record, [key]: inner }
}
