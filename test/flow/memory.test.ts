import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { messagesOf, say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()
const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const memory = (args: Record<string, string>): ScriptedAnswer => ({
  blocks: [{ type: 'toolCall', name: 'memory', arguments: args }],
})
const open = (): Promise<ModelWorld> => openWorld({ config: { agent: { tools: ['memory', 'files'] } } })

/** What the tool answered last in a session. */
async function lastResult(world: ModelWorld, session = 's'): Promise<string> {
  const results = messagesOf(await world.transcript(session)).filter(({ role }) => role === 'toolResult')
  const content = (results.at(-1)?.content ?? []) as { text: string }[]
  return content.map((block) => block.text).join('')
}

async function use(world: ModelWorld, args: Record<string, string>, query?: string, session = 's'): Promise<string> {
  const client = await world.connect(query)
  world.enqueue(memory(args), text('done'))
  await say(client, 'use it', { session })
  return lastResult(world, session)
}

describe('the memory tool', () => {
  it('keeps notes over /new, other sessions and a crash', async () => {
    const world = await open()
    const id = /Saved as note ([0-9a-f]{8})\./u.exec(await use(world, { action: 'save', text: 'Ada likes tea' }))?.[1]
    await say(await world.connect(), '/new')
    expect(await use(world, { action: 'list' })).toBe(`${id}: Ada likes tea`)
    await world.restart()
    expect(await use(world, { action: 'read', id: id ?? '' }, undefined, 'other')).toBe('Ada likes tea')
    expect(await use(world, { action: 'save', id: id ?? '', text: 'Ada likes coffee' })).toBe(`Saved as note ${id}.`)
    expect(await use(world, { action: 'list' })).toBe(`${id}: Ada likes coffee`)
    expect(await use(world, { action: 'delete', id: id ?? '' })).toBe(`Deleted note ${id}.`)
    expect(await use(world, { action: 'list' })).toBe('There are no notes.')
  })

  it('keeps people apart, and remembers nobody it could not recognise', async () => {
    const world = await open()
    await use(world, { action: 'save', text: 'a secret' }, '?uid=ada', 'a')
    expect(await use(world, { action: 'list' }, '?uid=bob', 'b')).toBe('There are no notes.')
    expect(await use(world, { action: 'save', text: 'x' }, '', 'c')).toMatch(/^No notes can be kept/u)
    expect(await use(world, { action: 'read', id: '../../bridge' }, '?uid=ada', 'a')).toMatch(/^There is no note/u)
    expect(await use(world, { action: 'save', text: 'x'.repeat(20_000) }, '?uid=ada', 'a')).toContain('20000 bytes')
  })

  it('is off until it is switched on', async () => {
    const world = await openWorld()
    await say(await world.connect(), 'hello')
    const body = world.requests[0]?.body as unknown as { tools: { name: string }[] } | undefined
    expect(body?.tools.map(({ name }) => name)).not.toContain('memory')
  })
})

const systemOf = (world: ModelWorld, n: number): string =>
  JSON.stringify((world.requests[n]?.body as unknown as { system: unknown } | undefined)?.system)

describe('files of the workspace', () => {
  const plant = (world: ModelWorld, name: string, content: string): void =>
    world.files.plant(`/home/clew/workspace/${name}`, content)

  it('stand in the system prompt, and stay as they were for the whole session', async () => {
    const world = await open()
    const client = await world.connect()
    plant(world, 'USER.md', 'The user is Ada.')
    plant(world, 'AGENTS.md', 'Answer in verse.')
    plant(world, 'skills/pdf/SKILL.md', '---\nname: pdf\ndescription: Makes PDF files.\n---\nSecret recipe.')
    await say(client, 'one')
    const first = systemOf(world, 0)
    expect(first.indexOf('Answer in verse.')).toBeGreaterThan(0)
    expect(first.indexOf('The user is Ada.')).toBeGreaterThan(first.indexOf('Answer in verse.'))
    expect(first).toContain('skills/pdf/SKILL.md: Makes PDF files.')
    expect(first).not.toContain('Secret recipe')
    plant(world, 'AGENTS.md', 'Answer in prose.')
    await say(client, 'two')
    expect(systemOf(world, 1)).toBe(first)
    await world.restart()
    await say(await world.connect(), 'three')
    expect(systemOf(world, 2)).toBe(first)
    await say(await world.connect(), '/new')
    await say(await world.connect(), 'four')
    expect(systemOf(world, 3)).toContain('Answer in prose.')
    expect(world.violations()).toEqual([])
  })

  it('take 64 KB together', async () => {
    const world = await open()
    plant(world, 'AGENTS.md', '汉'.repeat(20_000))
    plant(world, 'SOUL.md', 's'.repeat(20_000))
    plant(world, 'USER.md', 'never reached')
    await say(await world.connect(), 'one')
    const system = systemOf(world, 0)
    expect(system.split('汉').length - 1).toBe(20_000)
    expect(system.split('s'.repeat(5_000)).length - 1).toBe(1)
    expect(system).not.toContain('never reached')
  })
})
