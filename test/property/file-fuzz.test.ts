import { describe, expect, it } from 'vitest'
import { checkFile, type FileFailure } from '../support/file-fuzz/check.ts'
import { checkGateway } from '../support/file-fuzz/gateway.ts'

const SEED = 20_261_116
/** The share that runs everywhere; `npm run fuzz:files` runs a million, every hundredth through a gateway too. */
const FILES = 800
const GATEWAYS = 40

async function failuresOf(
  count: number,
  check: (seed: number) => Promise<readonly FileFailure[]>,
): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  for (let seed = SEED; seed < SEED + count && failures.length < 5; seed++)
    failures.push(...(await check(seed)).map((failure) => ({ seed, ...failure })))
  return failures
}

describe(`damaged files from seed ${SEED}`, () => {
  it(
    `open, ${FILES} of them, keep their words in view, and every API accepts the next request`,
    {
      timeout: 300_000,
    },
    async () => {
      expect(await failuresOf(FILES, checkFile)).toEqual([])
    },
  )

  it(`serve messages, commands and the API in ${GATEWAYS} gateways`, { timeout: 300_000 }, async () => {
    expect(await failuresOf(GATEWAYS, checkGateway)).toEqual([])
  })
})
