import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { watchStalls } from '../../test/support/loop-stalls.ts'

export interface SeedFailure {
  readonly api: string
  readonly problem: string
}

export interface SeedCheck {
  /** The script itself: workers are processes of it. */
  readonly script: string
  /** What one seed gives, in the plural. */
  readonly what: string
  readonly apis: number
  readonly cases: number
  check(seed: number): readonly SeedFailure[] | Promise<readonly SeedFailure[]>
}

interface Share {
  readonly from: number
  readonly to: number
  readonly step: number
}

/** What a worker says: how many more cases are done, up to which seed, and what was wrong with them. */
interface Progress {
  readonly done: number
  readonly seed: number
  readonly failures: readonly (SeedFailure & { readonly seed: number })[]
}

const MAX_PRINTED = 20
const REPORTED_EVERY = 250
/** A worker that says nothing for so long hangs in one case. */
const SILENCE_MS = 10 * 60_000

/**
 * Checks `--cases N` seeds from `--seed S` on in `--workers W` processes (or `CLEW_FUZZ_CASES`, `CLEW_FUZZ_SEED`,
 * `CLEW_FUZZ_WORKERS`). Any failure is printed with the seed that gives the case again, whatever the number of
 * workers, and fails the run.
 */
export async function checkSeeds(options: SeedCheck): Promise<void> {
  const share = argument('share')
  if (share === undefined) await runAll(options)
  else await checkShare(JSON.parse(share) as Share, options)
}

async function checkShare({ from, to, step }: Share, { check }: SeedCheck): Promise<void> {
  let done = 0
  let failures: Progress['failures'][number][] = []
  const report = async (seed: number): Promise<void> => {
    const progress: Progress = { done, seed, failures }
    done = 0
    failures = []
    await new Promise((sent) => process.send?.(progress, sent))
  }
  const stalls = watchStalls()
  for (let seed = from; seed < to; seed += step) {
    for (const failure of await check(seed)) failures.push({ seed, ...failure })
    for (const problem of stalls.take()) failures.push({ seed, api: 'any', problem })
    if (++done === REPORTED_EVERY) await report(seed)
  }
  await report(to)
  process.disconnect()
}

async function runAll(options: SeedCheck): Promise<void> {
  const { what, apis } = options
  const cases = Number(argument('cases') ?? options.cases)
  const firstSeed = Number(argument('seed') ?? 1)
  const workers = Math.min(cases, Number(argument('workers') ?? availableParallelism()))
  const started = performance.now()
  const kinds = new Map<string, number>()
  let done = 0
  let failed = 0
  const rate = (): number => Math.round(done / ((performance.now() - started) / 1000))
  const take = (progress: Progress): void => {
    for (const { seed, api, problem } of progress.failures) {
      failed++
      const kind = `${api}: ${problem.slice(0, 200).replaceAll(/\d+/g, 'N')}`
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
      if (kinds.get(kind) === 1 && kinds.size <= MAX_PRINTED) console.log(`seed ${seed}  ${api}  ${problem}`)
    }
    const before = done
    done += progress.done
    if (Math.floor(before / 50_000) !== Math.floor(done / 50_000))
      console.log(`${done} ${what}, ${failed} failures, ${rate()} per second`)
  }
  console.log(`${cases} ${what} × ${apis} APIs from seed ${firstSeed}, ${workers} workers`)
  // Every worker takes every W-th seed, so that all finish together.
  await Promise.all(
    Array.from({ length: workers }, (_, at) =>
      runShare(options.script, { from: firstSeed + at, to: firstSeed + cases, step: workers }, take),
    ),
  )
  for (const [kind, count] of kinds) console.log(`${count} × ${kind}`)
  console.log(`${done} ${what} × ${apis} APIs from seed ${firstSeed}: ${failed} failures, ${rate()} per second`)
  process.exitCode = failed === 0 && done === cases ? 0 : 1
}

/** A process each: threads do not get the loader that reads TypeScript. */
async function runShare(script: string, share: Share, take: (progress: Progress) => void): Promise<void> {
  const worker = fork(script, ['--share', JSON.stringify(share)])
  let watch = watchSilence(worker, share.from)
  worker.on('message', (message) => {
    const progress = message as Progress
    clearTimeout(watch)
    watch = watchSilence(worker, progress.seed)
    take(progress)
  })
  const [code] = await once(worker, 'exit')
  clearTimeout(watch)
  if (code !== 0) throw new Error(`a worker ended with code ${code}`)
}

function watchSilence(worker: ChildProcess, seed: number): NodeJS.Timeout {
  return setTimeout(() => {
    console.log(`a case within ${REPORTED_EVERY} after seed ${seed} does not end`)
    worker.kill('SIGKILL')
  }, SILENCE_MS)
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? process.env[`CLEW_FUZZ_${name.toUpperCase()}`] : process.argv[at + 1]
}
