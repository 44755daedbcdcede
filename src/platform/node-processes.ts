import { readFileSync, statSync, unlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { errnoOf } from '../base/files.ts'
import type { ProcessIdentity, Processes } from '../base/processes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGABRT', 'SIGHUP'] as const

interface Leftover {
  readonly path: string
  readonly identity: string | undefined
}

const leftovers = new Set<Leftover>()

/** The processes of this machine, as far as locks have to know them. */
export const nodeProcesses: Processes = {
  self: { pid: process.pid, startedAt: startOf(process.pid) ?? '', host: hostname() },
  isAlive(other) {
    // A pid says nothing on another machine; there only the age of what it left tells.
    if (other.host !== nodeProcesses.self.host) return true
    if (!canBeSignalled(other.pid)) return false
    const startedAt = startOf(other.pid)
    return startedAt === undefined || other.startedAt === '' || startedAt === other.startedAt
  },
  onExit(path, identity) {
    const leftover = { path, identity }
    if (leftovers.size === 0) listen()
    leftovers.add(leftover)
    return () => {
      if (leftovers.delete(leftover) && leftovers.size === 0) unlisten()
    }
  },
}

function canBeSignalled(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process of another user, and alive.
    return errnoOf(error) === 'EPERM'
  }
}

/** Clock ticks since boot, from the 22nd field of `/proc/<pid>/stat`; a zombie has no start: it can hold nothing. */
function startOf(pid: ProcessIdentity['pid']): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in parentheses and may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? 'zombie' : fields[19]
  } catch {
    return undefined
  }
}

function listen(): void {
  process.on('exit', removeAll)
  for (const signal of SIGNALS) process.on(signal, onSignal)
}

function unlisten(): void {
  process.off('exit', removeAll)
  for (const signal of SIGNALS) process.off(signal, onSignal)
}

function onSignal(signal: NodeJS.Signals): void {
  // Someone else listens and decides how the program ends; what we hold is removed on exit then.
  if (process.listenerCount(signal) > 1) return
  removeAll()
  unlisten()
  process.kill(process.pid, signal)
}

function removeAll(): void {
  for (const { path, identity } of leftovers) {
    try {
      const { dev, ino } = statSync(path)
      if (identity === undefined || identity === `${dev}:${ino}`) unlinkSync(path)
    } catch {
      // Gone already, or not ours to remove any more.
    }
  }
  leftovers.clear()
}
