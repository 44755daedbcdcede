import { describe, expect, it } from 'vitest'
import { checkFile } from '../support/file-fuzz/check.ts'
import { checkGateway, GATEWAY_EVERY } from '../support/file-fuzz/gateway.ts'

const SEED = 20_261_116
/** The share that runs everywhere; `npm run fuzz:files` runs a million, every twentieth through a gateway too. */
const FILES = 800
const SESSIONS = 42

describe(`damaged files from seed ${SEED}`, () => {
  it(`open, ${FILES} of them, keep their words in view, and every API accepts the next request`, async () => {
    const failures: unknown[] = []
    for (let seed = SEED; seed < SEED + FILES && failures.length < 5; seed++)
      failures.push(...(await checkFile(seed)).map((failure) => ({ seed, ...failure })))
    expect(failures).toEqual([])
  }, 300_000)

  it(`serve messages, commands and the HTTP interface, ${SESSIONS} of them in one gateway`, async () => {
    const seeds = Array.from({ length: SESSIONS }, (_, at) => SEED + at * GATEWAY_EVERY)
    expect((await checkGateway(seeds)).slice(0, 5)).toEqual([])
  }, 300_000)
})
