import { playRandomTurns } from '../test/support/turn-fuzz/run.ts'

/**
 * `npm run fuzz:turn [-- --runs N --seed S]`: random turns with failures, stops, crashes, cleanups, restores,
 * compactions and resets on a gateway in memory. A failure prints the shortest list of actions found and its seed.
 */
const runs = Number(argument('--runs') ?? 2_000)
const seed = Number(argument('--seed') ?? 1)
const { actions, cleanups, compactions, undoneCompactions } = await playRandomTurns({ seed, numRuns: runs })
console.log(
  `${runs} runs from seed ${seed}: ${actions} actions, ${cleanups} cleanups, ${compactions} checks after a compaction, ${undoneCompactions} after its undo, every promise held`,
)

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
