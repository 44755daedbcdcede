import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/base/async.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { createToolRegistry } from '../../src/tool/registry.ts'
import { textResult } from '../../src/tool/results.ts'
import { runToolCalls } from '../../src/tool/run-tool-calls.ts'
import { aCall, aTool, never, resultText } from '../support/tool-call.ts'

const call = fc.record({ parallel: fc.boolean(), durationMs: fc.integer({ min: 0, max: 50 }), fails: fc.boolean() })

describe('the calls of one answer, in any mixture', () => {
  it('keep their order, their limit, and the distance that calls with effects need', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 12 }),
        fc.integer({ min: 1, max: 4 }),
        async (plan, maxConcurrent) => {
          const clock = new ManualClock()
          const running = new Set<number>()
          const handed: number[] = []
          const run = (parallel: boolean) =>
            aTool({
              name: parallel ? 'reads' : 'writes',
              parallel,
              run: async ({ id }, signal) => {
                const index = Number(id)
                running.add(index)
                expect(running.size).toBeLessThanOrEqual(parallel ? maxConcurrent : 1)
                expect([...running].every((other) => other === index || plan[other]?.parallel === true)).toBe(true)
                await sleep(clock, plan[index]?.durationMs ?? 0, signal)
                running.delete(index)
                if (plan[index]?.fails === true) throw new Error('failed')
                return textResult(id)
              },
            })
          const calls = plan.map(({ parallel }, i) => aCall(parallel ? 'reads' : 'writes', {}, String(i)))
          let done = false
          const finished = runToolCalls(
            calls,
            {
              registry: createToolRegistry(
                [],
                [() => [run(true), run(false)].map((tool) => ({ tool, check: () => undefined }))],
              ),
              clock,
              maxConcurrent,
              onResult: ({ index }) => void handed.push(index),
            },
            never,
          ).finally(() => {
            done = true
          })
          await clock.runUntil(() => done)
          const results = await finished
          expect(results.map(({ index }) => index)).toEqual(plan.map((_, i) => i))
          expect(results.map(({ result }) => result.isError)).toEqual(plan.map(({ fails }) => fails))
          expect(
            results
              .filter(({ result }) => !result.isError)
              .every(({ call: { id }, result }) => resultText(result) === id),
          ).toBe(true)
          expect([...handed].sort((a, b) => a - b)).toEqual(plan.map((_, i) => i))
          expect(clock.pending).toBe(0)
        },
      ),
      { seed: 20261115, numRuns: 60 },
    )
  })
})
