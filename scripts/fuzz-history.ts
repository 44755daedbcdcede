import { API_COUNT, checkSeed } from '../test/support/fuzz/check.ts'
import { longestTurn, nextTurn, watchTurns } from '../test/support/loop-turns.ts'
import { checkSeeds, stallIn, type SeedFailure } from './lib/check-seeds.ts'

/**
 * `npm run fuzz:history [-- --from S --count N --workers W --record FILE]`: generated and damaged histories, prepared and encoded for
 * every API and judged by the rule checkers, on frozen input; every fourth also by one of the properties of
 * `test/support/fuzz/properties.ts`, by turns. A case that takes 50 ms of processor time in one go is a failure, too.
 *
 * What a case is, measured over the seeds 1 … 20 000 (median, 90th and 99th of 100, largest): entries 11, 23, 31, 42;
 * user messages 3, 5, 7, 10; tool results 3, 8, 13, 19; images 1, 3, 24, 56; JSON characters 4 344, 11 365, 19 729,
 * 35 870. One to four turns of up to two rounds with up to three calls each; a result is 7 000 characters
 * long in 3 of 100; up to four damages; a window of 1 000 or 4 000 tokens in 10 of 100, a history limit of 1 to 3 in 20.
 */
await checkSeeds({
  script: import.meta.filename,
  what: 'histories',
  apis: API_COUNT,
  count: 1_000_000,
  async check(from, to) {
    const turns = watchTurns()
    const failures: SeedFailure[] = []
    for (let seed = from; seed < to; seed++) {
      const { result, ms } = await longestTurn(turns, async () => {
        await nextTurn()
        return checkSeed(seed)
      })
      failures.push(...result.map((failure) => ({ seed, ...failure })), ...stallIn(seed, ms))
    }
    turns.stop()
    return failures
  },
})
