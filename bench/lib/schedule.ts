import { spawnSync } from 'node:child_process'

/**
 * What stands for a machine elsewhere shares the processors here with what is measured. Who measures comes first: it
 * would take its own wait for a processor for a late answer. What only makes work comes last. Both need Linux and the
 * right to do so; false where it cannot be had, and then everybody takes turns.
 */
export function comeFirst(pid: number): boolean {
  // Not handed on to the processes it starts: they are what is measured.
  return chrt('--reset-on-fork', '--fifo', '--pid', '1', `${pid}`)
}

export function comeLast(pid: number): boolean {
  return chrt('--all-tasks', '--idle', '--pid', '0', `${pid}`)
}

function chrt(...options: readonly string[]): boolean {
  return spawnSync('chrt', options, { stdio: 'ignore' }).status === 0
}
