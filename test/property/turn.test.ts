import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { actions, modes } from '../support/turn-fuzz/actions.ts'
import { TurnFuzz } from '../support/turn-fuzz/run.ts'

const SEED = 20_251_115
const RUNS = 14

describe('turns in any order of failures, stops, crashes, cleanups, restores, compactions and resets', () => {
  it(
    'answer every accepted message once, lose nothing, and send only requests the providers take',
    { timeout: 120_000 },
    async () => {
      let played = 0
      let cleanups = 0
      let compactions = 0
      await fc.assert(
        fc.asyncProperty(modes, actions, async (mode, list) => {
          const fuzz = await TurnFuzz.open(mode)
          try {
            await fuzz.play(list)
            played += list.length
            cleanups += fuzz.cleanups
            compactions += fuzz.compactions
          } finally {
            await fuzz.world.stop()
          }
        }),
        { seed: SEED, numRuns: RUNS, endOnFailure: false, interruptAfterTimeLimit: 100_000 },
      )
      console.log(
        `turn properties: seed ${SEED}, ${RUNS} runs, ${played} actions, ${cleanups} cleanups, ${compactions} checks after a compaction`,
      )
      expect(cleanups).toBeGreaterThan(0)
    },
  )
})
