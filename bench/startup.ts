import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * How long a person waits: for `clew --help`, and for `clew start` until `/healthz` answers 200. Goals: 150 ms and 1 s, and
 * at most 200 ms of processor time above what Node itself takes.
 */

const RUNS = 7
const command = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js')

const bare = sample(() => runToEnd(['-e', '0']))
const help = sample(() => runToEnd([command, '--help']))
const starts: number[] = []
const resident: number[] = []
const processor: number[] = []
for (let run = 0; run < RUNS; run++) {
  const { readyMs, residentMb, processorMs } = await coldStart()
  processor.push(processorMs)
  starts.push(readyMs)
  resident.push(residentMb)
}

console.log(`${RUNS} runs each, median (lowest to highest)`)
report('node -e 0 (what Node itself takes)', bare, 'ms')
report('clew --help', help, 'ms')
report('clew start until /healthz answers 200, new home', starts, 'ms')
report('processor time of node -e 0', sample(bareProcessorMs), 'ms')
report('processor time of clew start until then', processor, 'ms')
report('resident memory of the idle gateway after 1 s', resident, 'MB')

function sample(measure: () => number): number[] {
  return Array.from({ length: RUNS }, measure)
}

function runToEnd(args: readonly string[]): number {
  const started = performance.now()
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' })
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`)
  return performance.now() - started
}

async function coldStart(): Promise<{
  readonly readyMs: number
  readonly processorMs: number
  readonly residentMb: number
}> {
  const home = mkdtempSync(join(tmpdir(), 'clew-bench-'))
  const port = await freePort()
  const started = performance.now()
  const gateway = spawn(process.execPath, [command, 'start', '--home', home, '--port', String(port)], {
    stdio: 'ignore',
  })
  try {
    while (!(await isHealthy(port))) {
      if (gateway.exitCode !== null) throw new Error(`clew start ended with ${gateway.exitCode}`)
      await pause(2)
    }
    const readyMs = performance.now() - started
    const processorMs = processorMsOf(gateway)
    await pause(1_000)
    return { readyMs, processorMs, residentMb: residentMegabytes(gateway) }
  } finally {
    const ended = new Promise((resolve) => gateway.once('exit', resolve))
    if (gateway.exitCode === null && gateway.kill('SIGTERM')) await ended
    rmSync(home, { recursive: true, force: true })
  }
}

async function isHealthy(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** User and system time so far; Linux counts it in hundredths of a second. */
function processorMsOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function bareProcessorMs(): number {
  const code = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)'
  return Number(spawnSync(process.execPath, ['-e', code]).stdout)
}

function residentMegabytes({ pid }: ChildProcess): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) / 1024
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function report(what: string, values: readonly number[], unit: string): void {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, middle, high] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  console.log(`${what.padEnd(50)} ${shown(middle)} ${unit} (${shown(low)} to ${shown(high)})`)
}

function shown(value: number | undefined): string {
  return (value ?? Number.NaN).toFixed(0)
}
