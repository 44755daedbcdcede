import { describe, expect, it } from 'vitest'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import { playRandomTurns } from '../support/turn-fuzz/run.ts'

const SEED = 20_251_115
const RUNS = 14

describe('turns in any order of failures, stops, crashes, cleanups, restores, compactions and resets', () => {
  it(
    'answer every accepted message once, lose nothing, and send only requests the providers take',
    ENDS_BY_COUNT,
    async () => {
      const { actions, cleanups, compactions, undoneCompactions } = await playRandomTurns({ seed: SEED, numRuns: RUNS })
      console.info(
        `turn properties: seed ${SEED}, ${RUNS} runs, ${actions} actions, ${cleanups} cleanups, ${compactions} checks after a compaction, ${undoneCompactions} after its undo`,
      )
      expect(cleanups).toBeGreaterThan(0)
      expect(compactions).toBeGreaterThan(0)
      expect(undoneCompactions).toBeGreaterThan(0)
    },
  )
})
