import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** An existing bridge is picked up where it is; everyone else gets a folder of our own. */
export function defaultHome(userHome = homedir()): string {
  const bridge = join(userHome, '.openclaw')
  return existsSync(join(bridge, 'bridge.json')) ? bridge : join(userHome, '.clew')
}

export function isThere(path: string): boolean {
  return existsSync(path)
}
