import { afterAll, describe, expect, it } from 'vitest'
import { largeModel, SESSION, turnDeps } from '../../../bench/lib/turn-world.ts'
import type { Clock } from '../../../src/base/clock.ts'
import { NO_USAGE, type AssistantBlock } from '../../../src/core/message.ts'
import type { EntryDraft } from '../../../src/core/entry.ts'
import type { StepCompleted, StepCleanupCompleted } from '../../../src/core/event.ts'
import type { RunId } from '../../../src/core/ids.ts'
import type { ModelProvider } from '../../../src/provider/provider.ts'
import { systemClock } from '../../../src/platform/system.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { Tool } from '../../../src/tool/tool.ts'
import { createMemoryStore } from '../../../src/transcript/memory-store.ts'
import { runTurn } from '../../../src/turn/turn.ts'
import { longestTurn, MAX_TURN_MS, watchTurns } from '../../support/loop-turns.ts'
import { slownessHere } from '../../support/processor-time.ts'

const signal = new AbortController().signal
const CHINESE = '会话运行时负责把磁盘上的会话文件变成模型可以消费的消息序列'
const TEXTS: readonly (readonly [string, string])[] = [
  ['100,000 Chinese characters', CHINESE.repeat(4_000).slice(0, 100_000)],
  ['100,000 letters without a space', 'a'.repeat(100_000)],
  ['base64', Buffer.from(CHINESE.repeat(900)).toString('base64').slice(0, 100_000)],
  ['two megabytes of words', 'the parser reads one line after the other '.repeat(50_000)],
]
const EARLIER_TURNS = 10_000
/** The promise is 50 ms. The bound leaves room for the collector; what was wrong took 300 to 800. */
const BOUND_MS = 4 * MAX_TURN_MS

/** Its vocabulary is known, so what people read is counted with it. */
function twoRounds(answer: string): ModelProvider {
  let asked = 0
  return {
    name: 'openai',
    api: 'openai-responses',
    encode: ({ model }) => ({ model, body: '{}' }),
    async *stream() {
      const call: AssistantBlock = { type: 'toolCall', id: `c${asked}`, name: 'look', arguments: { text: answer } }
      const isCalling = asked++ % 2 === 0
      yield {
        type: 'end',
        message: {
          role: 'assistant',
          content: [isCalling ? call : { type: 'text', text: answer }],
          api: 'openai-responses',
          provider: 'openai',
          model: 'gpt-5',
          usage: NO_USAGE,
          stopReason: isCalling ? 'toolUse' : 'stop',
        },
      }
    },
  }
}

const look = (found: string): Tool => ({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object' },
  parallel: true,
  repeatable: true,
  run: async () => ({ content: [{ type: 'text', text: found }], isError: false }),
})

async function openTurn(words: string, earlier: number, model = 'gpt-5') {
  const store = createMemoryStore({ clock: systemClock, ids: new SeededIds(1) })
  const transcript = await store.open(SESSION, signal)
  const origin = {
    api: 'openai-responses',
    provider: 'openai',
    model: 'gpt-5',
    usage: NO_USAGE,
    stopReason: 'stop',
  } as const
  const drafts = Array.from({ length: earlier }, (_, at): readonly EntryDraft[] => [
    { type: 'message', message: { role: 'user', content: `question ${at}`, timestamp: at } },
    {
      type: 'message',
      message: { role: 'assistant', content: [{ type: 'text', text: `answer ${at}` }], ...origin, timestamp: at },
    },
  ])
  for (let at = 0; at < drafts.length; at += 50) await transcript.append(drafts.slice(at, at + 50).flat())
  const cleanups: StepCleanupCompleted[] = []
  const steps: StepCompleted[] = []
  const plain = turnDeps(largeModel(twoRounds(words.slice(0, 100_000)), model), transcript, [
    look(words.slice(0, 100_000)),
  ])
  const cleanup = { ...plain.settings.cleanup, enabled: true }
  const deps = {
    ...plain,
    settings: { ...plain.settings, cleanup },
    emit: async (event: { readonly type: string }) => {
      if (event.type === 'step-cleanup-completed') cleanups.push(event as StepCleanupCompleted)
      if (event.type === 'step-completed') steps.push(event as StepCompleted)
    },
  }
  return { deps, cleanups, steps }
}

describe('no text holds up the others for 50 ms of processor time', () => {
  const slowness = slownessHere()
  const turns = watchTurns()
  afterAll(() => turns.stop())

  it.each(TEXTS)('in a turn of two rounds, cleaned up: %s', async (_, words) => {
    const { result, ms } = await longestTurn(turns, async () => {
      const { deps, cleanups } = await openTurn('short', 0)
      const long = await openTurn(words, 0)
      // The vocabulary is loaded by the first turn of a process.
      await runTurn({ run: 'run_0' as RunId, content: 'short' }, deps, signal)
      expect(cleanups).toHaveLength(1)
      await runTurn({ run: 'run_1' as RunId, content: words }, long.deps, signal)
      return long
    })
    expect(result.steps).toMatchObject([{ rounds: 2 }])
    expect(result.cleanups[0]?.cleanedMessages).toBe(2)
    console.info(`at most ${ms.toFixed(0)} ms of processor time in one go`)
    expect(ms).toBeLessThan(BOUND_MS * slowness)
  })

  it('nor a conversation of thousands of messages that is opened again', async () => {
    let stops = 0
    const clock: Clock = {
      now: () => systemClock.now(),
      monotonic: () => systemClock.monotonic(),
      after(ms, run) {
        if (ms === 0) stops++
        return systemClock.after(ms, run)
      },
    }
    const { ms } = await longestTurn(turns, async () => {
      // Without a vocabulary of its own: what is counted stops besides.
      const { deps, steps } = await openTurn('short', EARLIER_TURNS, 'gpt-3.5')
      turns.skip()
      stops = 0
      await runTurn({ run: 'run_1' as RunId, content: 'go on' }, { ...deps, clock }, signal)
      expect(steps).toMatchObject([{ rounds: 2 }])
    })
    console.info(`at most ${ms.toFixed(0)} ms of processor time in one go, ${stops} stops`)
    expect(stops).toBeGreaterThan(EARLIER_TURNS / 200)
    expect(ms).toBeLessThan(BOUND_MS * slowness)
  })
})
