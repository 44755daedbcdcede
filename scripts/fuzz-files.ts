import { checkFile, FILE_TARGETS } from '../test/support/file-fuzz/check.ts'
import { checkGateway, GATEWAY_EVERY } from '../test/support/file-fuzz/gateway.ts'
import { longestTurn, watchTurns } from '../test/support/loop-turns.ts'
import { checkSeeds, stallIn, type SeedFailure } from './lib/check-seeds.ts'

/** Sessions of one gateway. */
const SESSIONS = 20

/**
 * `npm run fuzz:files [-- --from S --count N --workers W --record FILE]`: transcript files with odd values in any field,
 * and with damaged bytes, lines and order, through the store, six encoders and their strict checkers, a repair and a
 * second message; every fiftieth also through a whole gateway with commands. Fails on anything that throws, a request that
 * a provider would refuse, a word that is lost from view, and 50 ms of processor time between two turns of the event loop.
 */
await checkSeeds({
  script: import.meta.filename,
  what: 'files',
  apis: FILE_TARGETS.length,
  count: 1_000_000,
  async check(from, to) {
    const turns = watchTurns()
    const failures: SeedFailure[] = []
    for (let seed = from; seed < to; seed++) {
      const { result, ms } = await longestTurn(turns, () => checkFile(seed, turns))
      failures.push(...result.map((failure) => ({ seed, ...failure })), ...stallIn(seed, ms))
    }
    const served = Array.from({ length: to - from }, (_, at) => from + at).filter((seed) => seed % GATEWAY_EVERY === 0)
    for (let at = 0; at < served.length; at += SESSIONS) {
      failures.push(...(await checkGateway(served.slice(at, at + SESSIONS), turns)))
    }
    turns.stop()
    return failures
  },
})
