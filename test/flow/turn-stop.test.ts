import { describe, expect, it } from 'vitest'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import type { HookModule } from '../../src/hook/hook.ts'
import type { TestClient } from '../support/gateway.ts'
import { messagesOf, type ModelWorld, openCalls, say, type WorldOptions } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()

const SLOW_EXEC: WorldOptions = {
  config: { agent: { exec: { allow: ['build'] } } },
  programs: () => ({ stdout: 'built', takesMs: 5_000 }),
}
const BUILD: ScriptedReply = {
  blocks: [
    { type: 'text', text: 'I build it.' },
    { type: 'toolCall', name: 'exec', arguments: { program: 'build' } },
    { type: 'toolCall', name: 'time', arguments: {} },
  ],
}
const LONG_TEXT: ScriptedReply = {
  blocks: [{ type: 'text', text: 'one two three four five six seven eight nine ten' }],
  delivery: { betweenEventsMs: 1_000, deltaChars: 4 },
}

function hanging(name: keyof HookModule): WorldOptions {
  const hooks = { [name]: () => new Promise(() => undefined) } as HookModule
  return { ...SLOW_EXEC, hooks: [{ source: 'test', hooks }] }
}

interface Stage {
  readonly at: string
  readonly options?: WorldOptions
  readonly replies: readonly ScriptedReply[]
  readonly afterMs: number
}

const STAGES: readonly Stage[] = [
  { at: 'before the first byte', replies: [{ ...LONG_TEXT, delivery: { headersDelayMs: 20_000 } }], afterMs: 5_000 },
  { at: 'in the middle of the text', replies: [LONG_TEXT], afterMs: 6_000 },
  {
    at: 'while the arguments of a call arrive',
    replies: [{ ...BUILD, delivery: { betweenEventsMs: 1_000, deltaChars: 3 } }],
    afterMs: 12_000,
  },
  { at: 'while a tool runs', options: SLOW_EXEC, replies: [BUILD], afterMs: 1_000 },
  { at: 'in a hook before a tool', options: hanging('before_tool_call'), replies: [BUILD], afterMs: 1_000 },
  { at: 'in a hook after a tool', options: hanging('after_tool_call'), replies: [BUILD], afterMs: 6_000 },
  { at: 'in a hook before the request', options: hanging('llm_input'), replies: [BUILD], afterMs: 1_000 },
  { at: 'in a hook after the answer', options: hanging('llm_output'), replies: [BUILD], afterMs: 1_000 },
  { at: 'in a pause before a retry', replies: [{ refuse: 'rate-limit', retryAfterSeconds: 20 }], afterMs: 3_000 },
]

async function stopAt({
  options,
  replies,
  afterMs,
}: Stage): Promise<{ world: ModelWorld; frames: readonly unknown[] }> {
  const world = await openWorld(options)
  const client = await world.connect()
  world.enqueue(...replies)
  await client.send({ id: 'task', content: 'please build it', session: 's' })
  await world.clock.advance(afterMs)
  expect(client.terminal()).toEqual([])
  await client.send({ id: 'stop', content: '/stop', session: 's' })
  await client.waitFor(2)
  return { world, frames: client.terminal() }
}

describe('a turn that is stopped', () => {
  it.each(STAGES)('$at is answered once, leaves no open call, and the next message works', async (stage) => {
    const { world, frames } = await stopAt(stage)
    expect(frames).toHaveLength(2)
    expect(frames).toContainEqual(expect.objectContaining({ messageId: 'task', code: 'TURN_CANCELLED' }))
    const lines = await world.transcript()
    expect(openCalls(lines)).toEqual([])
    expect(JSON.stringify(messagesOf(lines))).toContain('please build it')
    const client = await world.connect()
    expect(await say(client, 'hello again', { auto_cleanup_enabled: false })).toMatchObject({ type: 'complete' })
    expect(world.violations()).toEqual([])
    expect(world.requests.at(-1)?.bodyText).toContain('please build it')
  })

  it.each(STAGES)('$at is tidied up: its step ends in the transcript, and no error is logged', async (stage) => {
    const { world } = await stopAt(stage)
    await world.clock.advance(10_000)
    expect((await world.gateway.api('/api/logs?level=error'))['lines']).toEqual([])
    const ends = (await world.transcript()).filter(({ customType }) => customType === 'clew.step')
    expect(ends).toHaveLength(1)
  })

  it('keeps what a person has read, marked as cut', async () => {
    const { world } = await stopAt(STAGES[1] as Stage)
    const [cut] = messagesOf(await world.transcript()).filter(({ role }) => role === 'assistant')
    expect(cut).toMatchObject({ stopReason: 'aborted', content: [{ text: expect.stringMatching(/^one two/u) }] })
    const { messages } = await world.gateway.api('/api/sessions/s')
    expect(messages).toContainEqual(expect.objectContaining({ role: 'assistant', stopReason: 'aborted' }))
  })

  it('keeps the result of a tool that had ended, and says of the others what is known', async () => {
    const after = await stopAt(STAGES[5] as Stage)
    const results = messagesOf(await after.world.transcript()).filter(({ role }) => role === 'toolResult')
    expect(JSON.stringify(results[0])).toContain('built')
    expect(JSON.stringify(results[1])).toContain('Not run')
    const during = await stopAt(STAGES[3] as Stage)
    const [running] = messagesOf(await during.world.transcript()).filter(({ role }) => role === 'toolResult')
    expect(JSON.stringify(running)).toContain('may or may not have taken effect')
  })

  it('keeps an answer that was complete when the stop came', async () => {
    const { world } = await stopAt(STAGES[7] as Stage)
    const [answer] = messagesOf(await world.transcript()).filter(({ role }) => role === 'assistant')
    expect(answer).toMatchObject({ stopReason: 'toolUse' })
    const { usage } = await world.gateway.api('/api/sessions/s')
    expect(usage).toMatchObject({ requests: 1 })
  })

  it('does not keep a reset waiting for those who listen', async () => {
    const hooks: HookModule = { step_completed: () => new Promise(() => undefined) }
    const world = await openWorld({ hooks: [{ source: 'test', hooks }] })
    const client = await world.connect()
    await client.send({ id: 'task', content: 'hello', session: 's' })
    await world.clock.advance(1_000)
    const before = world.clock.now()
    await client.send({ id: 'new', content: '/new', session: 's' })
    await client.waitFor(2)
    expect(world.clock.now() - before).toBeLessThanOrEqual(2_000)
    // The answer stood before the reset came.
    expect(client.terminal()).toContainEqual(expect.objectContaining({ messageId: 'task', type: 'complete' }))
  })
})

describe('a tool that a crash interrupted', () => {
  it('is announced as ended to those who watch the run', async () => {
    const world = await openWorld({
      config: { agent: { exec: { allow: ['build'] }, tools: [] } },
      programs: () => ({ stdout: 'built', takesMs: 60_000 }),
    })
    world.enqueue({ blocks: [{ type: 'toolCall', name: 'exec', arguments: { program: 'build' } }] })
    const client = await world.connect()
    await client.send({ id: 'task', content: 'please build it', session: 's' })
    await world.clock.advance(1_000)
    expect(eventsOf(client)).toContain('tool_start')
    world.enqueue({ blocks: [{ type: 'text', text: 'it was interrupted' }] })
    await world.restart({ kill: true })
    const later = await world.connect()
    await later.waitFor(1)
    expect(eventsOf(later)).toContain('tool_end')
  })
})

function eventsOf({ frames }: TestClient): readonly unknown[] {
  return frames.map(({ event }) => event)
}
