import { API_COUNT, checkCase, createCase } from '../test/support/fuzz/check.ts'

/**
 * `npm run fuzz:history [-- --cases N --seed S]`: generated and damaged histories, prepared and encoded for every API
 * and judged by the rule checkers. Any rejection is printed with the seed that gives the case again, and fails the run.
 */
const cases = Number(argument('--cases') ?? 1_000_000)
const firstSeed = Number(argument('--seed') ?? 1)
const MAX_PRINTED = 20

const started = performance.now()
const failures = new Map<string, number>()
let failed = 0
for (let at = 0; at < cases; at++) {
  for (const { api, problem } of checkSafely(firstSeed + at)) {
    failed++
    const kind = `${api}: ${problem.replaceAll(/\d+/g, 'N')}`
    failures.set(kind, (failures.get(kind) ?? 0) + 1)
    if ((failures.get(kind) ?? 0) === 1 && failures.size <= MAX_PRINTED)
      console.log(`seed ${firstSeed + at}  ${api}  ${problem}`)
  }
  if ((at + 1) % 100_000 === 0) console.log(`${at + 1} cases, ${failed} rejections, ${rate(at + 1)} cases/s`)
}
for (const [kind, count] of failures) console.log(`${count} × ${kind}`)
console.log(`${cases} cases × ${API_COUNT} APIs from seed ${firstSeed}: ${failed} rejections, ${rate(cases)} cases/s`)
process.exitCode = failed === 0 ? 0 : 1

function checkSafely(seed: number) {
  try {
    return checkCase(createCase(seed))
  } catch (thrown) {
    return [{ api: 'prepare', problem: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) }]
  }
}

function rate(done: number): number {
  return Math.round(done / ((performance.now() - started) / 1000))
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
