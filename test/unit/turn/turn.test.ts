import { describe, expect, it } from 'vitest'
import { largeModel, SESSION, turnDeps } from '../../../bench/lib/turn-world.ts'
import { deferred } from '../../../src/base/async.ts'
import type { Entry, EntryDraft } from '../../../src/core/entry.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import type { RunId } from '../../../src/core/ids.ts'
import { NO_USAGE, textOf, type AssistantBlock, type ToolCallBlock } from '../../../src/core/message.ts'
import { type Outcome, TurnStopped } from '../../../src/core/outcome.ts'
import { encodeAnthropic } from '../../../src/provider/anthropic/encode.ts'
import type { ModelEvent, ModelProvider } from '../../../src/provider/provider.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { Tool } from '../../../src/tool/tool.ts'
import { createMemoryStore } from '../../../src/transcript/memory-store.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import type { Instruction, TurnDeps, TurnModel, UnfinishedWork } from '../../../src/turn/deps.ts'
import { finishStopped, runTurn } from '../../../src/turn/turn.ts'

const RUN = 'run_1' as RunId
const GO: Instruction = { run: RUN, content: 'go' }

/** What a model does when it is asked: events, a wait, or a failure. */
type Step = ModelEvent | Promise<unknown> | GatewayError

function scripted(name: string, ...answers: readonly (readonly Step[])[]): TurnModel {
  const left = [...answers]
  const provider: ModelProvider = {
    name,
    api: 'anthropic-messages',
    encode: (request) => encodeAnthropic(request, { provider: 'anthropic' }),
    async *stream(_request, signal) {
      for (const step of left.shift() ?? []) {
        if (step instanceof GatewayError) throw step
        if (step instanceof Promise) await Promise.race([step, aborted(signal)])
        else yield step
      }
    },
  }
  return largeModel(provider, 'm')
}

function aborted(signal: AbortSignal): Promise<never> {
  const stopped = deferred<never>()
  signal.addEventListener('abort', () => stopped.reject(signal.reason))
  return stopped.promise
}

const says = (delta: string): ModelEvent => ({ type: 'text-delta', delta })

function ends(...content: readonly AssistantBlock[]): ModelEvent {
  const stopReason = content.some(({ type }) => type === 'toolCall') ? 'toolUse' : 'stop'
  const origin = { api: 'anthropic-messages', provider: 'a', model: 'm', usage: NO_USAGE } as const
  return { type: 'end', message: { role: 'assistant', content, ...origin, stopReason } }
}

const text = (words: string): AssistantBlock => ({ type: 'text', text: words })
const call = (id: string, name: string): ToolCallBlock => ({ type: 'toolCall', id, name, arguments: {} })

function tool(name: string, run: Tool['run']): Tool {
  return { name, description: name, parameters: { type: 'object' }, parallel: true, repeatable: true, run }
}

const ok = async () => ({ content: [{ type: 'text', text: 'found' }], isError: false }) as const

class World {
  readonly shown: string[] = []
  readonly controller = new AbortController()
  unfinished: () => UnfinishedWork = () => ({ drafts: [], changes: [] })
  readonly transcript: Transcript
  readonly deps: TurnDeps

  private constructor(transcript: Transcript, deps: TurnDeps) {
    this.transcript = transcript
    this.deps = deps
  }

  static async open(
    models: readonly [TurnModel, ...TurnModel[]],
    more: Partial<TurnDeps> = {},
    tools: readonly Tool[] = [],
  ): Promise<World> {
    const clock = new ManualClock()
    const store = createMemoryStore({ clock, ids: new SeededIds(1) })
    const transcript = await store.open(SESSION, new AbortController().signal)
    const deps: TurnDeps = {
      ...turnDeps(models[0], transcript, tools),
      clock,
      models,
      run: RUN,
      emit: async (event) => void world.shown.push(event.type === 'text-delta' ? event.delta : event.type),
      ifStopped: (describe) => void (world.unfinished = describe),
      ...more,
    }
    const world = new World(transcript, deps)
    return world
  }

  run(instruction: Instruction = GO): Promise<Outcome> {
    return runTurn(instruction, this.deps, this.controller.signal)
  }

  /** As a session stops a turn: asks what is unfinished, stores it, then aborts. */
  async stop(running: Promise<Outcome>): Promise<Outcome> {
    await settle()
    await this.transcript.append(this.unfinished().drafts)
    this.controller.abort(new TurnStopped('user'))
    return running
  }

  async said(): Promise<readonly string[]> {
    return (await this.transcript.branch()).flatMap((entry) => describeEntry(entry))
  }
}

function describeEntry(entry: Entry | EntryDraft): readonly string[] {
  if (entry.type === 'custom') return entry.customType === 'clew.step' ? [`step ${JSON.stringify(entry.data)}`] : []
  if (entry.type !== 'message') return []
  const { message } = entry
  if (message.role === 'user') return [`user ${textOf(message.content)}`]
  if (message.role === 'assistant') return [`assistant ${textOf(message.content)} ${message.stopReason}`]
  if (message.role === 'toolResult') return [`result ${message.toolCallId} ${textOf(message.content)}`]
  return []
}

const CANCELLED = `step ${JSON.stringify({ stepId: RUN, outcome: 'cancelled' })}`

describe('a turn', () => {
  it('asks, runs the calls, and asks again until an answer has none', async () => {
    const model = scripted(
      'a',
      [ends(text('I look.'), call('c1', 'look'))],
      [says('do'), says('ne'), ends(text('done'))],
    )
    const world = await World.open([model], {}, [tool('look', ok)])
    expect(await world.run()).toMatchObject({ kind: 'completed', text: 'done' })
    expect(await world.said()).toEqual([
      'user go',
      'assistant I look. toolUse',
      'result c1 found',
      'assistant done stop',
    ])
    expect(world.shown).toEqual([
      'turn-start',
      'round-end',
      'tool-start',
      'tool-end',
      'do',
      'ne',
      'round-end',
      'step-completed',
      'turn-end',
    ])
  })

  it('goes on where the transcript ends: an answered step is not asked again, an open call is run', async () => {
    const first = await World.open([scripted('a', [ends(text('done'))])])
    await first.run()
    const again = { ...first.deps, models: [scripted('a')] as const }
    expect(await runTurn(GO, again, new AbortController().signal)).toMatchObject({ kind: 'completed', text: 'done' })
    const second = await World.open([scripted('a', [ends(text('seen'))])], {}, [tool('look', ok)])
    const answer = ends(text('I look.'), call('c1', 'look'))
    await second.transcript.append([
      { type: 'message', message: { role: 'user', content: 'go', timestamp: 1 }, stepId: RUN },
      ...(answer.type === 'end'
        ? [{ type: 'message', message: { ...answer.message, timestamp: 2 }, stepId: RUN, round: 0 } as const]
        : []),
    ])
    expect(await second.run()).toMatchObject({ kind: 'completed', text: 'seen' })
    expect((await second.said()).slice(2)).toEqual(['result c1 found', 'assistant seen stop'])
  })

  it('ends at the limit of rounds with what was said last', async () => {
    const answers = [1, 2, 3].map((at) => [ends(text(`try ${at}`), call(`c${at}`, 'look'))])
    const world = await World.open([scripted('a', ...answers)], {}, [tool('look', ok)])
    const limited = { ...world.deps, settings: { ...world.deps.settings, maxRounds: 2 } }
    const outcome = await runTurn(GO, limited, world.controller.signal)
    expect(outcome).toMatchObject({ kind: 'round-limit', rounds: 2, text: expect.stringContaining('try 2') })
    expect((await world.said()).at(-1)).toBe(`step ${JSON.stringify({ stepId: RUN, outcome: 'round-limit' })}`)
  })

  it('has another model step in while nothing was shown, and not afterwards', async () => {
    const failure = new GatewayError('MODEL_OVERLOADED', 'busy')
    const other = scripted('b', [ends(text('from b'))])
    const early = await World.open([scripted('a', [failure]), other])
    expect(await early.run()).toMatchObject({ kind: 'completed', text: 'from b' })
    const late = await World.open([scripted('a', [says('half'), failure]), scripted('b', [ends(text('from b'))])])
    expect(await late.run()).toMatchObject({ kind: 'failed', code: 'MODEL_OVERLOADED', partialText: 'half' })
    expect(await late.said()).toContain('assistant half error')
  })

  it('takes messages that join it before its next round', async () => {
    const joining: Instruction[] = [{ run: 'run_2' as RunId, content: 'and this' }]
    const model = scripted('a', [ends(text('I look.'), call('c1', 'look'))], [ends(text('both'))])
    let round = 0
    const takeSteering = async (): Promise<readonly Instruction[]> => (round++ === 1 ? joining : [])
    const world = await World.open([model], { takeSteering }, [tool('look', ok)])
    expect(await world.run()).toMatchObject({ kind: 'completed', text: 'both' })
    expect((await world.said()).slice(2)).toEqual(['result c1 found', 'user and this', 'assistant both stop'])
  })
})

describe('what a stop writes in place of a turn', () => {
  const never = new Promise(() => undefined)

  it('is nothing before the instruction is stored', async () => {
    const world = await World.open([scripted('a')])
    expect(world.unfinished().drafts).toEqual([])
  })

  it('is the text that was shown, while the model speaks', async () => {
    const world = await World.open([scripted('a', [says('one '), says('two'), never])])
    expect(await world.stop(world.run())).toEqual({ kind: 'cancelled', by: 'user' })
    expect(await world.said()).toEqual(['user go', 'assistant one two aborted', CANCELLED])
  })

  it('is the end of the step after a failed attempt that showed nothing', async () => {
    const failure = new GatewayError('MODEL_OVERLOADED', 'busy')
    const world = await World.open([scripted('a', [failure]), scripted('b', [never])])
    await world.stop(world.run())
    expect(await world.said()).toEqual(['user go', 'assistant  aborted', CANCELLED])
  })

  it('is a result for every call without one: what it came to, that it was running, or that it was not run', async () => {
    const calls = [call('c1', 'look'), call('c2', 'hang'), call('c3', 'missing')]
    const world = await World.open([scripted('a', [ends(text('I look.'), ...calls)])], {}, [
      tool('look', ok),
      { ...tool('hang', () => never as Promise<never>), parallel: false },
    ])
    void world.run()
    await settle()
    const drafts = world.unfinished().drafts.flatMap((draft) => describeEntry(draft))
    expect((await world.said()).slice(1)).toEqual(['assistant I look. toolUse', 'result c1 found'])
    expect(drafts).toEqual([
      expect.stringMatching(/^result c2 .*may or may not have taken effect/u),
      expect.stringMatching(/^result c3 Not run/u),
      CANCELLED,
    ])
  })

  it('is nothing once the answer is stored and stands', async () => {
    const world = await World.open([scripted('a', [ends(text('done'))])])
    await world.run()
    expect(world.unfinished()).toEqual({ drafts: [], changes: [] })
  })

  it('lets the step be finished afterwards: announced once, its end stored only when the stop could not', async () => {
    for (const isStored of [true, false]) {
      const world = await World.open([scripted('a', [says('half'), never])])
      const running = world.run()
      await settle()
      if (isStored) await world.transcript.append(world.unfinished().drafts)
      world.controller.abort(new TurnStopped('user'))
      await running
      await finishStopped(RUN, 'user', world.deps)
      expect((await world.said()).filter((line) => line === CANCELLED)).toHaveLength(1)
      expect(world.shown.filter((type) => type === 'step-completed')).toHaveLength(1)
    }
  })
})
