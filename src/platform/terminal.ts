import { closeSync, openSync } from 'node:fs'

/** Whether this process has a terminal that it can still reach: a closed window takes it away. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
