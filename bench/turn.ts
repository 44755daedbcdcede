import type { EntryDraft } from '../src/core/entry.ts'
import type { RunId } from '../src/core/ids.ts'
import { NO_USAGE, type AssistantBlock } from '../src/core/message.ts'
import { encodeAnthropic } from '../src/provider/anthropic/encode.ts'
import type { ModelApi, ModelProvider } from '../src/provider/provider.ts'
import { systemClock } from '../src/platform/system.ts'
import { SeededIds } from '../src/testing/seeded-ids.ts'
import type { Tool } from '../src/tool/tool.ts'
import { createMemoryStore } from '../src/transcript/memory-store.ts'
import { cleanStep } from '../src/turn/cleanup.ts'
import type { TurnModel, TurnDeps } from '../src/turn/deps.ts'
import { runTurn } from '../src/turn/turn.ts'
import { largeModel, median, SESSION, turnDeps } from './lib/turn-world.ts'

/**
 * What a turn costs besides the model and its tools, which answer at once here: one round over transcripts of several
 * lengths, and the cleanup of a ten-round step, counted with an estimate and with OpenAI's vocabulary. Medians.
 */
const TEXT = 'def part(rows):\n    """Sum of one column."""\n    return sum(row[0] for row in rows)\n'.repeat(25)
const ROUNDS = 10

const READ: Tool = {
  name: 'read',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  parallel: true,
  repeatable: true,
  run: async () => ({ content: [{ type: 'text', text: TEXT }], isError: false }),
}

function instantModel(api: ModelApi, model: string): TurnModel {
  let asked = 0
  const provider: ModelProvider = {
    name: api.startsWith('openai') ? 'openai' : 'anthropic',
    api,
    encode: (request) => encodeAnthropic(request, { provider: 'anthropic' }),
    async *stream() {
      const isLast = asked++ % ROUNDS === ROUNDS - 1
      const content: AssistantBlock[] = isLast
        ? [{ type: 'text', text: 'done' }]
        : [{ type: 'toolCall', id: `call_${asked}`, name: 'read', arguments: { path: 'a.py' } }]
      const stopReason = isLast ? 'stop' : 'toolUse'
      const origin = { api, provider: provider.name, model, usage: NO_USAGE } as const
      yield { type: 'end', message: { role: 'assistant', content, ...origin, stopReason } }
    },
  }
  return largeModel(provider, model)
}

async function openDeps(model: TurnModel, past: number): Promise<TurnDeps> {
  const store = createMemoryStore({ clock: systemClock, ids: new SeededIds(1) })
  const transcript = await store.open(SESSION, new AbortController().signal)
  const drafts = Array.from({ length: past }, (_, at): EntryDraft => {
    const step = { stepId: `old_${at >> 1}` as RunId }
    if (at % 2 === 0) return { type: 'message', message: { role: 'user', content: TEXT, timestamp: at }, ...step }
    const origin = { api: model.provider.api, provider: model.provider.name, model: model.model, usage: NO_USAGE }
    const content = [{ type: 'text', text: TEXT }] as const
    const message = { role: 'assistant', content, ...origin, stopReason: 'stop', timestamp: at } as const
    return { type: 'message', message, round: 0, ...step }
  })
  if (drafts.length > 0) await transcript.append(drafts)
  return turnDeps(model, transcript, [READ])
}

async function measure(past: number, model: TurnModel): Promise<{ round: number; cleanup: number; tokens: number }> {
  const rounds: number[] = []
  const cleanups: number[] = []
  let tokens = 0
  for (let at = 0; at < 5; at++) {
    const deps = await openDeps(model, past)
    await deps.counter.load()
    const run = `run_${at}` as RunId
    const started = performance.now()
    await runTurn({ run, content: 'go' }, deps, new AbortController().signal)
    rounds.push((performance.now() - started) / ROUNDS)
    const cleaning = performance.now()
    const event = await cleanStep(run, 'completed', deps, new AbortController().signal)
    cleanups.push(performance.now() - cleaning)
    tokens = event?.tokensBefore ?? 0
  }
  return { round: median(rounds), cleanup: median(cleanups), tokens }
}

const estimated = instantModel('anthropic-messages', 'claude-sonnet-4-5')
const exact = instantModel('openai-responses', 'gpt-5.1')
for (const past of [0, 100, 400]) {
  const a = await measure(past, estimated)
  const b = await measure(past, exact)
  console.log(
    `${past} messages before (${b.tokens} tokens): a round ${a.round.toFixed(2)} ms · cleanup estimated ${a.cleanup.toFixed(1)} ms, with the vocabulary ${b.cleanup.toFixed(1)} ms (${(b.cleanup / a.cleanup).toFixed(1)} ×)`,
  )
}
