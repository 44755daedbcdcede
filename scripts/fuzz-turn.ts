import fc from 'fast-check'
import { actions, modes } from '../test/support/turn-fuzz/actions.ts'
import { TurnFuzz } from '../test/support/turn-fuzz/run.ts'

/**
 * `npm run fuzz:turn [-- --runs N --seed S]`: random turns with failures, stops, crashes, cleanups, restores,
 * compactions and resets on a gateway in memory. A failure prints the shortest list of actions found and its seed.
 */
const runs = Number(argument('--runs') ?? 2_000)
const seed = Number(argument('--seed') ?? 1)
let played = 0

await fc.assert(
  fc.asyncProperty(modes, actions, async (mode, list) => {
    const fuzz = await TurnFuzz.open(mode)
    try {
      await fuzz.play(list)
      played += list.length
    } finally {
      await fuzz.world.stop()
    }
  }),
  { seed, numRuns: runs },
)
console.log(`${runs} runs from seed ${seed}, ${played} actions: every promise held`)

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
