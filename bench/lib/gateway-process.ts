import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'

const MAIN = join(import.meta.dirname, '..', '..', 'dist', 'cli', 'main.js')
const TICKS_PER_SECOND = 100

/** The built gateway in a home of its own, as a process that can be measured from outside. */
export class GatewayProcess {
  readonly home: string
  readonly child: ChildProcess
  readonly port: number
  /** From the start of the process to the first 200 of `/healthz`. */
  readonly readyAfterMs: number

  private constructor(home: string, child: ChildProcess, port: number, readyAfterMs: number) {
    this.home = home
    this.child = child
    this.port = port
    this.readyAfterMs = readyAfterMs
  }

  static newHome(): string {
    return mkdtempSync(join(tmpdir(), 'clew-bench-'))
  }

  static removeHome(home: string): void {
    rmSync(home, { recursive: true, force: true })
  }

  static async start(home: string): Promise<GatewayProcess> {
    const startedAt = performance.now()
    const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--port', '0'], { stdio: 'ignore' })
    for (;;) {
      const port = contactPort(home, child.pid)
      if (port !== undefined && (await isHealthy(port)))
        return new GatewayProcess(home, child, port, performance.now() - startedAt)
      if (child.exitCode !== null) throw new Error('the gateway ended before it was ready')
      await pause(2)
    }
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve))
    this.child.kill('SIGTERM')
    await ended
  }

  connect(uid: string): Promise<WebSocket> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${this.port}/ws?uid=${uid}`)
      socket.once('open', () => resolve(socket))
      socket.once('error', reject)
    })
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  get rssMegabytes(): number {
    const pages = Number(readFileSync(`/proc/${this.pid}/statm`, 'utf8').split(' ')[1])
    return Math.round((pages * 4096) / 1024 / 1024)
  }

  /** Processor time used so far. */
  get cpuSeconds(): number {
    return cpuSecondsOf(this.pid)
  }
}

/** Processor time a process has used so far, with all its threads. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Time of all processors so far, in ticks, and what of it others on the same host got while we wanted to work. */
export function processorTimes(): { readonly all: number; readonly stolen: number } {
  const times = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').trim().split(/\s+/).slice(1, 9).map(Number)
  return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7] ?? 0 }
}

function contactPort(home: string, pid: number | undefined): number | undefined {
  try {
    const contact = JSON.parse(readFileSync(join(home, 'gateway.json'), 'utf8')) as {
      port: number
      process: { pid: number }
    }
    return contact.process.pid === pid ? contact.port : undefined
  } catch {
    return undefined
  }
}

async function isHealthy(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok
  } catch {
    return false
  }
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function summary(values: readonly number[]): string {
  return `p50 ${quantile(values, 0.5).toFixed(1)} ms, p99 ${quantile(values, 0.99).toFixed(1)} ms (${values.length})`
}
