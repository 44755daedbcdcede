import { fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { API_COUNT, checkSeed } from '../test/support/fuzz/check.ts'

/**
 * `npm run fuzz:history [-- --cases N --seed S --workers W]`: generated and damaged histories, prepared and encoded for
 * every API and judged by the rule checkers, on frozen input; every fourth also by one of the properties of
 * `test/support/fuzz/properties.ts`, by turns. Any failure is printed with the seed that gives the case again whatever the number of
 * workers (`--seed THAT --cases 1`), and fails the run.
 *
 * What a case is, measured over the seeds 1 … 20 000 (median, 90th and 99th of 100, largest): entries 11, 23, 31, 42;
 * user messages 3, 5, 7, 10; tool results 3, 8, 13, 19; images 1, 3, 24, 56; JSON characters 4 344, 11 365, 19 729,
 * 35 870. One to four turns of up to two rounds with up to three calls each; a result is 7 000 characters
 * long in 3 of 100; up to four damages; a window of 1 000 or 4 000 tokens in 10 of 100, a history limit of 1 to 3 in 20.
 */
const MAX_PRINTED = 20
const REPORTED_EVERY = 1_000

interface Share {
  readonly from: number
  readonly to: number
  readonly step: number
}

/** What a worker tells: how many more cases are done, and what was wrong with them. */
interface Progress {
  readonly done: number
  readonly failures: readonly { readonly seed: number; readonly api: string; readonly problem: string }[]
}

const share = argument('--share')
if (share === undefined) await runAll()
else await checkShare(JSON.parse(share) as Share)

async function checkShare({ from, to, step }: Share): Promise<void> {
  let done = 0
  let failures: Progress['failures'][number][] = []
  const report = async (): Promise<void> => {
    const progress: Progress = { done, failures }
    done = 0
    failures = []
    await new Promise((sent) => process.send?.(progress, sent))
  }
  for (let seed = from; seed < to; seed += step) {
    for (const failure of checkSeed(seed)) failures.push({ seed, ...failure })
    if (++done === REPORTED_EVERY) await report()
  }
  await report()
  process.disconnect()
}

async function runAll(): Promise<void> {
  const cases = Number(argument('--cases') ?? 1_000_000)
  const firstSeed = Number(argument('--seed') ?? 1)
  const workers = Math.min(cases, Number(argument('--workers') ?? availableParallelism()))
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
    if (Math.floor(before / 100_000) !== Math.floor(done / 100_000))
      console.log(`${done} cases, ${failed} rejections, ${rate()} cases/s`)
  }
  // Every worker takes every W-th seed, so that all finish together.
  await Promise.all(
    Array.from({ length: workers }, (_, at) =>
      runShare({ from: firstSeed + at, to: firstSeed + cases, step: workers }, take),
    ),
  )
  for (const [kind, count] of kinds) console.log(`${count} × ${kind}`)
  console.log(
    `${done} cases × ${API_COUNT} APIs from seed ${firstSeed}, ${workers} workers: ${failed} rejections, ${rate()} cases/s`,
  )
  process.exitCode = failed === 0 && done === cases ? 0 : 1
}

/** A process each: threads do not get the loader that reads TypeScript. */
async function runShare(share: Share, take: (progress: Progress) => void): Promise<void> {
  const worker = fork(import.meta.filename, ['--share', JSON.stringify(share)])
  worker.on('message', (progress) => take(progress as Progress))
  const [code] = await once(worker, 'exit')
  if (code !== 0) throw new Error(`a worker ended with code ${code}`)
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
