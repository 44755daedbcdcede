import { describe, expect, it } from 'vitest'
import { livePart, partsOfStep } from '../../../ui/lib/step-parts.ts'
import type { LiveTurn, RequestRow, Step } from '../../../ui/lib/types.ts'

const BEGAN = Date.parse('2026-11-19T10:00:00.000Z')
const at = (ms: number): string => new Date(BEGAN + ms).toISOString()

const STEP: Step = {
  id: 'run_1',
  messages: [
    { id: 'a', at: at(0), role: 'user', text: 'Go', tokens: 1, stepId: 'run_1' },
    {
      id: 'b',
      at: at(900),
      role: 'toolResult',
      callId: 'c',
      tool: 'files',
      failed: false,
      text: '',
      tokens: 1,
      durationMs: 300,
      stepId: 'run_1',
    },
  ],
}
const REQUEST = { n: 1, stepId: 'run_1', startedAt: BEGAN + 100, firstByteMs: 200, durationMs: 500 } as RequestRow
const TURN: LiveTurn = { run: 'run_1', startedAt: BEGAN + 50, round: 2, text: '', tools: [] }

describe('the parts of a step', () => {
  it('are queue, wait, text and tools, where they were recorded', () => {
    const { parts, totalMs } = partsOfStep(STEP, [REQUEST])
    expect(parts.map(({ kind, startMs, durationMs }) => [kind, startMs, durationMs])).toEqual([
      ['queue', 0, 100],
      ['wait', 100, 200],
      ['text', 300, 300],
      ['tool', 600, 300],
    ])
    expect(totalMs).toBe(900)
  })

  it('end with what runs now: the model since the last of them, or a tool since its start', () => {
    const { parts } = partsOfStep(STEP, [REQUEST])
    expect(livePart(TURN, STEP, parts, BEGAN + 1_500)).toMatchObject({ kind: 'text', startMs: 900, durationMs: 600 })
    const tool = { id: 'd', tool: 'exec', detail: '', startedAt: BEGAN + 1_200 }
    expect(livePart({ ...TURN, tools: [tool] }, STEP, parts, BEGAN + 1_500)).toMatchObject({
      kind: 'tool',
      name: 'exec',
      startMs: 1_200,
      durationMs: 300,
    })
    expect(livePart(TURN, STEP, [], BEGAN + 1_500)).toMatchObject({ kind: 'text', startMs: 50, durationMs: 1_450 })
  })
})
