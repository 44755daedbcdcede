import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export interface SystemCalls {
  readonly all: number
  readonly syncs: number
}

const ATTACH_MS = 500

/** Counts a process's system calls, of all its threads, while `work` runs; undefined where `strace` is not there. */
export async function countSystemCalls(pid: number, work: () => Promise<void>): Promise<SystemCalls | undefined> {
  if (spawnSync('strace', ['-V'], { stdio: 'ignore' }).status !== 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'clew-bench-'))
  const path = join(folder, 'calls')
  try {
    const strace = spawn('strace', ['-f', '-c', '-o', path, '-p', `${pid}`], { stdio: 'ignore' })
    const ended = once(strace, 'exit')
    await pause(ATTACH_MS)
    await work()
    strace.kill('SIGINT')
    await ended
    return countsOf(readFileSync(path, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Lines of the summary: share, seconds, microseconds each, calls, errors if any, name. */
function countsOf(summary: string): SystemCalls | undefined {
  let all = 0
  let syncs = 0
  for (const line of summary.split('\n')) {
    const [, calls = '', name = ''] = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$/u.exec(line) ?? []
    if (name === '' || name === 'total') continue
    all += Number(calls)
    if (name === 'fdatasync' || name === 'fsync') syncs += Number(calls)
  }
  return all === 0 ? undefined : { all, syncs }
}
