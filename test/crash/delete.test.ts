import { expect, it } from 'vitest'
import type { Fault } from '../../src/testing/memory-files.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import type { Frame } from '../support/gateway.ts'
import { ModelWorld, say } from '../support/model-world.ts'

const SESSIONS = '/home/clew/sessions'
const DELETE = { type: 'session.delete', key: 's' }

/** A conversation with two archived ones, and another conversation that is to stay. */
async function openWorld(): Promise<ModelWorld> {
  const world = await ModelWorld.open()
  const client = await world.connect()
  await say(client, 'the first secret')
  await say(client, '/new')
  await say(client, 'the second secret')
  await say(client, '/new')
  await say(client, 'the third secret')
  await say(client, 'stays', { session: 'other' })
  await world.clock.advance(10_000)
  return world
}

/** The other conversation is as it was, and there is no file but its own: a power cut may leave it in the journal alone. */
async function expectDeleted(world: ModelWorld, kept: readonly string[], where: string): Promise<void> {
  expect(await isListed(world), where).toBe(false)
  expect(
    (await transcriptsOf(world)).filter((name) => !kept.includes(name)),
    where,
  ).toEqual([])
  expect(JSON.stringify(await world.gateway.api('/api/sessions/other')), where).toContain('stays')
}

/** Whether it was confirmed; the disk may crash before that. */
async function tryDelete(world: ModelWorld): Promise<boolean> {
  const client = await world.connect()
  const answers = (): readonly Frame[] => client.frames.filter(({ type }) => type === DELETE.type)
  await client.send(DELETE)
  await world.clock.runUntil(() => answers().length > 0 || world.files.isCrashed)
  await world.clock.advance(1_000)
  return answers().some(({ data }) => (data as Frame)['success'] === true)
}

async function transcriptsOf(world: ModelWorld): Promise<readonly string[]> {
  const names = await world.files.list(SESSIONS)
  return names.filter((name) => name.includes('.jsonl'))
}

async function isListed(world: ModelWorld): Promise<boolean> {
  const client = await world.connect()
  const { data } = await client.ask({ type: 'session.get', key: 's' })
  return (data as Frame)['code'] !== 'SESSION_NOT_FOUND'
}

it(
  'a delete that a crash interrupts has happened, or is finished by the next one, wherever it was',
  ENDS_BY_COUNT,
  async () => {
    const whole = await openWorld()
    const before = whole.files.operations
    expect(await transcriptsOf(whole)).toHaveLength(4)
    expect(await tryDelete(whole)).toBe(true)
    const operations = whole.files.operations - before
    const kept = await transcriptsOf(whole)
    expect(kept).toHaveLength(1)
    await whole.stop()
    const seen = { confirmed: 0, gone: 0, listed: 0 }
    for (let at = 0; at < operations; at++) {
      for (const [fault, kill] of [
        ['crash-before', false],
        ['crash-torn', true],
        ['crash-after', true],
        ['crash-after', false],
      ] as const) {
        const where = `operation ${at} of ${operations}, ${fault}, ${kill ? 'kill' : 'power cut'}`
        seen[await crashAt(at, fault, kill, where)]++
      }
    }
    expect(seen.listed, JSON.stringify(seen)).toBeGreaterThan(0)
    expect(seen.gone + seen.confirmed, JSON.stringify(seen)).toBeGreaterThan(0)

    async function crashAt(at: number, fault: Fault, kill: boolean, where: string): Promise<keyof typeof seen> {
      const world = await openWorld()
      world.files.injectFault(world.files.operations + at, fault)
      const wasConfirmed = await tryDelete(world)
      await world.restart({ kill })
      const wasListed = await isListed(world)
      if (wasConfirmed) expect(wasListed, `${where}: confirmed and still listed`).toBe(false)
      // What is not listed cannot be deleted by anyone any more: nothing of it may be there.
      if (wasListed) expect(await tryDelete(world), where).toBe(true)
      await expectDeleted(world, kept, where)
      await world.restart({ kill: true })
      await expectDeleted(world, kept, where)
      await world.stop()
      return wasConfirmed ? 'confirmed' : wasListed ? 'listed' : 'gone'
    }
  },
)
