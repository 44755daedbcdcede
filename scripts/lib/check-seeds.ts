import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { watchStalls } from '../../test/support/loop-stalls.ts'
import { MAX_TURN_MS } from '../../test/support/loop-turns.ts'

export interface SeedFailure {
  readonly seed: number
  readonly api: string
  readonly problem: string
}

export interface SeedCheck {
  /** The script itself: workers are processes of it. */
  readonly script: string
  /** What one seed gives, in the plural. */
  readonly what: string
  readonly apis: number
  readonly count: number
  /** Seeds from `from` on, before `to`. */
  check(from: number, to: number): Promise<readonly SeedFailure[]>
}

/** A range of seeds: one message to a worker, one line of the record. */
interface Block {
  readonly from: number
  readonly to: number
}

interface DoneBlock extends Block {
  readonly failures: readonly SeedFailure[]
}

const BLOCK = 1_000
const MAX_PRINTED = 20
/** A worker that says nothing for so long hangs in one case. */
const SILENCE_MS = 10 * 60_000

/**
 * Checks `--count N` seeds from `--from S` on in `--workers W` processes, in blocks of a thousand. Any failure is printed
 * with the seed that gives the case again, and fails the run. `--record FILE` gets a line per finished block with what was
 * wrong in it and on which commit; a run with a record leaves out the blocks that it names, so an interrupted one goes on.
 */
export async function checkSeeds(options: SeedCheck): Promise<void> {
  if (argument('worker') === undefined) await runAll(options)
  else await work(options)
}

/** A turn of the event loop that a case held for longer than anything may. */
export function stallIn(seed: number, ms: number): readonly SeedFailure[] {
  if (ms <= MAX_TURN_MS) return []
  return [{ seed, api: 'any', problem: `held the event loop for ${Math.round(ms)} ms of processor time` }]
}

async function work({ check }: SeedCheck): Promise<void> {
  const stalls = watchStalls()
  process.on('message', (message) => {
    const { from, to } = message as Block
    void check(from, to).then((failures) => {
      const held = stalls.take().map((problem) => ({ seed: from, api: 'any', problem }))
      process.send?.({ from, to, failures: [...failures, ...held] } satisfies DoneBlock)
    })
  })
  await once(process, 'disconnect')
}

async function runAll(options: SeedCheck): Promise<void> {
  const { what, apis } = options
  const count = Number(argument('count') ?? options.count)
  const first = Number(argument('from') ?? 1)
  const record = argument('record')
  const known = record === undefined ? [] : readRecord(record)
  const blocks = blocksOf(first, count, known)
  const workers = Math.min(blocks.length, Number(argument('workers') ?? availableParallelism()))
  const tally = new Tally(what, known)
  console.log(`${count} ${what} × ${apis} APIs from seed ${first}, ${workers} workers, ${tally.done} known already`)
  await Promise.all(
    Array.from({ length: workers }, () =>
      runWorker(options.script, blocks, (block) => {
        if (record !== undefined) appendFileSync(record, `${JSON.stringify({ ...block, ...circumstances() })}\n`)
        tally.add(block)
      }),
    ),
  )
  tally.print()
  console.log(
    `${tally.done} ${what} × ${apis} APIs from seed ${first}: ${tally.failed} failures, ${tally.rate()} per second`,
  )
  process.exitCode = tally.failed === 0 && tally.done === count ? 0 : 1
}

function blocksOf(first: number, count: number, known: readonly Block[]): Block[] {
  const done = new Set(known.map(({ from, to }) => `${from}-${to}`))
  const blocks: Block[] = []
  for (let from = first; from < first + count; from += BLOCK) {
    const to = Math.min(from + BLOCK, first + count)
    if (!done.has(`${from}-${to}`)) blocks.push({ from, to })
  }
  return blocks
}

function readRecord(path: string): readonly DoneBlock[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as DoneBlock)
}

let commit: string | undefined

function circumstances(): { readonly at: string; readonly commit: string } {
  commit ??= execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  return { at: new Date().toISOString(), commit }
}

/** What has been found so far; kinds of failures are printed once each. */
class Tally {
  readonly #what: string
  readonly #kinds = new Map<string, number>()
  readonly #started = performance.now()
  #now = 0
  done = 0
  failed = 0

  constructor(what: string, known: readonly DoneBlock[]) {
    this.#what = what
    for (const block of known) this.#count(block)
  }

  rate(): number {
    return Math.round(this.#now / ((performance.now() - this.#started) / 1_000))
  }

  add(block: DoneBlock): void {
    this.#now += block.to - block.from
    this.#count(block)
    if (this.done % 20_000 < block.to - block.from)
      console.log(
        `${this.done} ${this.#what}, last ${block.from}–${block.to - 1}, ${this.failed} failures, ${this.rate()} per second`,
      )
  }

  print(): void {
    for (const [kind, count] of this.#kinds) console.log(`${count} × ${kind}`)
  }

  #count({ from, to, failures }: DoneBlock): void {
    this.done += to - from
    for (const { seed, api, problem } of failures) {
      this.failed++
      const kind = `${api}: ${problem.slice(0, 200).replaceAll(/\d+/g, 'N')}`
      this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1)
      if (this.#kinds.get(kind) === 1 && this.#kinds.size <= MAX_PRINTED)
        console.log(`seed ${seed}  ${api}  ${problem}`)
    }
  }
}

/** In the thread that is measured, and seldom: helping threads would count as time in which the event loop was held. */
const COLLECTOR = ['--single-threaded-gc', '--max-semi-space-size=64']

/** A process each: threads do not get the loader that reads TypeScript. */
async function runWorker(script: string, blocks: Block[], done: (block: DoneBlock) => void): Promise<void> {
  const worker = fork(script, ['--worker', '1'], { execArgv: [...process.execArgv, ...COLLECTOR] })
  let watch: NodeJS.Timeout | undefined
  const next = (): void => {
    const block = blocks.shift()
    clearTimeout(watch)
    if (block === undefined) return worker.disconnect()
    watch = setTimeout(() => {
      console.log(`a case of seeds ${block.from}–${block.to - 1} does not end`)
      worker.kill('SIGKILL')
    }, SILENCE_MS)
    worker.send(block)
  }
  worker.on('message', (message) => {
    done(message as DoneBlock)
    next()
  })
  next()
  const [code] = await once(worker, 'exit')
  clearTimeout(watch)
  if (code !== 0) throw new Error(`a worker ended with code ${code}`)
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}
