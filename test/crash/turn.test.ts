import { describe, expect, it } from 'vitest'
import type { SeenRequest } from '../../src/simulator/provider/seen-request.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import type { Fault } from '../../src/testing/memory-files.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import type { Frame } from '../support/gateway.ts'
import { messagesOf, ModelWorld, openCalls } from '../support/model-world.ts'

/** Writes a file (can be repeated), runs a program (must not be), then answers. */
function script({ conversation }: SeenRequest): ScriptedReply {
  const rounds = conversation.turns.filter((turn) => turn.role === 'assistant').length
  if (rounds === 0)
    return {
      blocks: [
        { type: 'toolCall', name: 'files', arguments: { action: 'write', path: 'a.py', text: 'print(1)' } },
        { type: 'toolCall', name: 'exec', arguments: { program: 'deploy' } },
      ],
    }
  return { blocks: [{ type: 'text', text: 'it is deployed' }] }
}

interface Life {
  readonly world: ModelWorld
  readonly frames: Frame[]
  /** Programs that ran to their end, before and after the crash. */
  readonly deployed: number
}

async function openWorld(): Promise<ModelWorld> {
  return ModelWorld.open({
    script,
    config: { agent: { exec: { allow: ['deploy'] }, tools: ['files'] } },
    programs: () => ({ stdout: 'deployed', takesMs: 100 }),
  })
}

const TASK = { id: 'task', content: 'deploy it', session: 's' }

async function ask(world: ModelWorld): Promise<Frame[]> {
  const client = await world.connect('?stream=1&uid=tester')
  await client.send(TASK)
  await world.clock.advance(10_000)
  return client.frames
}

const terminal = (frames: readonly Frame[]): readonly Frame[] =>
  frames.filter(({ type }) => type !== 'progress' && type !== 'event' && type !== 'accepted')

async function crashAt(at: number, fault: Fault, kill: boolean): Promise<Life> {
  const world = await openWorld()
  world.files.injectFault(world.files.operations + at, fault)
  const frames: Frame[] = []
  try {
    frames.push(...(await ask(world)))
  } catch {
    // The crash closed the connection under the client.
  }
  const deployedBefore = world.commands.ended.length
  await world.restart({ kill })
  const client = await world.connect('?stream=1&uid=tester')
  await world.clock.advance(10_000)
  // A message that was never acknowledged is the sender's to repeat.
  if (!frames.some(({ type }) => type === 'accepted')) {
    // All that may have come of it is a refusal.
    for (const frame of frames.splice(0)) expect(frame).toMatchObject({ type: 'error', code: 'STORAGE_FAILED' })
    await client.send(TASK)
    await world.clock.advance(10_000)
  }
  frames.push(...client.frames)
  return { world, frames, deployed: deployedBefore + world.commands.ended.length }
}

describe('a step that a crash interrupts', () => {
  it('goes on or closes cleanly wherever it was, with a kill and with a power cut', ENDS_BY_COUNT, async () => {
    const whole = await openWorld()
    const before = whole.files.operations
    await ask(whole)
    const operations = whole.files.operations - before
    await whole.stop()
    let unsure = 0
    for (let at = 0; at < operations; at++) {
      for (const [fault, kill] of [
        ['crash-before', false],
        ['crash-torn', true],
        ['crash-after', true],
      ] as const) {
        const where = `operation ${at} of ${operations}, ${fault}, ${kill ? 'kill' : 'power cut'}`
        const { world, frames, deployed } = await crashAt(at, fault, kill)
        const lines = await world.transcript()
        const messages = messagesOf(lines)
        expect(openCalls(lines), where).toEqual([])
        expect(deployed, where).toBeLessThanOrEqual(1)
        const told = JSON.stringify(messages).includes('may or may not have taken effect')
        if (told) unsure++
        expect(deployed === 1 || told, `${where}: neither done nor said to be unsure`).toBe(true)
        expect(
          messages.filter(({ role }) => role === 'user'),
          where,
        ).toHaveLength(1)
        expect(
          messages.filter(({ role }) => role === 'assistant'),
          where,
        ).toHaveLength(2)
        expect(world.requests.length, where).toBeLessThanOrEqual(3)
        expect(world.violations(), where).toEqual([])
        const replies = terminal(frames)
        expect(
          replies.every((reply) => reply['content'] === 'it is deployed'),
          where,
        ).toBe(true)
        const first = replies.filter((reply) => reply['redelivered'] !== true)
        expect(first.length, `${where}: ${JSON.stringify(replies)}`).toBeLessThanOrEqual(1)
        expect(replies.length, where).toBeGreaterThanOrEqual(1)
        await world.stop()
      }
    }
    expect(unsure).toBeGreaterThan(0)
    console.info(
      `crash points of a two-round step: ${operations} operations, ${operations * 3} crashes, ${unsure} unsure calls`,
    )
  })
})
