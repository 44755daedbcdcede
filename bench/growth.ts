import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../src/base/log.ts'
import type { RunId } from '../src/core/ids.ts'
import { NO_USAGE, type AssistantBlock } from '../src/core/message.ts'
import { nodeFiles } from '../src/platform/node-files.ts'
import { nodeProcesses } from '../src/platform/node-processes.ts'
import { systemClock, systemIds } from '../src/platform/system.ts'
import type { ModelProvider } from '../src/provider/provider.ts'
import type { Tool } from '../src/tool/tool.ts'
import { openFileStore } from '../src/transcript/file-store.ts'
import type { TurnDeps } from '../src/turn/deps.ts'
import { runTurn } from '../src/turn/turn.ts'
import { largeModel, median, SESSION, turnDeps } from './lib/turn-world.ts'

/**
 * What a turn costs as its conversation grows: one session in a file, from its first message to its last, questions of
 * 70 and answers of 200 characters. The body of the request grows with the history by its nature and is left out: the
 * provider of this benchmark encodes nothing and answers at once. Medians of the processor time (all threads) of the
 * turns around each length; the ratio of the last to the first is the result.
 */
const LENGTHS = [200, 500, 1_000, 2_000, 4_000]
/** Turns measured around each length. */
const TURNS = 60
const LIMIT = 1.3
const QUESTION = 'What does the parser do with a line that it cannot read at all, here? '
const ANSWER = 'It keeps the line as it is, says so in the report of the file, and goes on with the next one. '.repeat(
  3,
)
const never = new AbortController().signal

/** Every `toolEvery`th turn calls a tool first; 0 for never. */
function silentProvider(toolEvery: number): ModelProvider {
  let asked = 0
  let isCalling = false
  return {
    name: 'anthropic',
    api: 'anthropic-messages',
    encode: ({ model }) => ({ model, body: '{}' }),
    async *stream() {
      isCalling = !isCalling && toolEvery > 0 && asked++ % toolEvery === toolEvery - 1
      const content: AssistantBlock[] = isCalling
        ? [{ type: 'toolCall', id: `call_${asked}`, name: 'read', arguments: { path: 'a.py' } }]
        : [{ type: 'text', text: ANSWER.slice(0, 200) }]
      const usage = { ...NO_USAGE, input: 900, output: 60, totalTokens: 960 }
      const origin = { api: 'anthropic-messages', provider: 'anthropic', model: 'claude-sonnet-4-5', usage } as const
      yield {
        type: 'end',
        message: { role: 'assistant', content, ...origin, stopReason: isCalling ? 'toolUse' : 'stop' },
      }
    },
  }
}

const READ: Tool = {
  name: 'read',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  parallel: true,
  repeatable: true,
  run: async () => ({ content: [{ type: 'text', text: ANSWER }], isError: false }),
}

async function converse(deps: TurnDeps, turn: number): Promise<number> {
  const before = process.cpuUsage()
  await runTurn(
    { run: `run_${turn.toString().padStart(20, '0')}` as RunId, content: QUESTION.slice(0, 70) },
    deps,
    never,
  )
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

async function measure(name: string, historyLimit: number, toolEvery: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'clew-growth-'))
  const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
  const store = await openFileStore({ ...ports, directory, durability: 'fast' })
  const transcript = await store.open(SESSION, never)
  const plain = turnDeps(largeModel(silentProvider(toolEvery), 'claude-sonnet-4-5'), transcript, [READ])
  const { settings } = plain
  const deps = { ...plain, settings: { ...settings, historyLimit, cleanup: { ...settings.cleanup, enabled: true } } }
  const costs: number[] = []
  const last = (LENGTHS.at(-1) ?? 0) / 2 + TURNS / 2
  for (let turn = 0; turn < last; turn++) costs.push(await converse(deps, turn))
  const at = (messages: number): number => median(costs.slice(messages / 2 - TURNS / 2, messages / 2 + TURNS / 2))
  const [first = 0] = LENGTHS
  const ratio = at(LENGTHS.at(-1) ?? 0) / at(first)
  const cells = LENGTHS.map((messages) => `${messages}: ${at(messages).toFixed(2)} ms`)
  console.log(
    `${name}: ${cells.join(' · ')} · ${ratio.toFixed(2)} × (limit ${LIMIT}: ${ratio <= LIMIT ? 'held' : 'not held'})`,
  )
  await transcript.close()
  await store.close()
  rmSync(directory, { recursive: true })
}

console.log(`processor time of a turn by messages so far, medians of ${TURNS} turns, without the request body`)
// The code of every kind of turn is compiled before anything is counted.
await measure('warm-up, does not count', 0, 1)
await measure('plain conversation', 0, 0)
await measure('every turn calls a tool and is cleaned up', 0, 1)
await measure('the model sees 50 turns', 50, 0)
