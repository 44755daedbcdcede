import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { ScriptedAnswer, ScriptedReply } from '../../src/simulator/provider/script.ts'
import { say, type ModelName, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()
const MODELS: readonly ModelName[] = ['anthropic', 'openai', 'chat', 'google', 'mistral']
const SEEDS = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
const ACTIONS = 14

type Random = () => number

function randomOf(seed: number): Random {
  let state = seed * 2_654_435_761
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

const words = (random: Random): string =>
  Array.from({ length: 1 + Math.floor(random() * 40) }, () =>
    pick(random, ['lamp', '灯', 'box', '🙂', 'e\u0301', '<b>']),
  ).join(' ')

const text = (content: string): ScriptedReply => ({ blocks: [{ type: 'text', text: content }] })

function calls(random: Random): ScriptedReply {
  const call = (): ScriptedAnswer['blocks'][number] =>
    random() < 0.3
      ? { type: 'toolCall', name: 'time', arguments: {} }
      : random() < 0.2
        ? { type: 'toolCall', name: 'no_such_tool', arguments: { text: words(random) } }
        : { type: 'toolCall', name: 'calculator', arguments: { expression: `${Math.floor(random() * 99)} * 3` } }
  return {
    blocks: [{ type: 'text', text: words(random) }, ...Array.from({ length: 1 + Math.floor(random() * 3) }, call)],
  }
}

/** One step of a conversation: rounds of calls, then an answer. */
async function speak(world: ModelWorld, random: Random): Promise<void> {
  for (let rounds = Math.floor(random() * 4); rounds > 0; rounds--) world.enqueue(calls(random))
  world.enqueue(text(words(random)))
  await say(await world.connect(), words(random))
  world.forgetQueue()
}

const post = (world: ModelWorld, path: string, body: object) =>
  world.gateway.api(`/api/sessions/s${path}`, { method: 'POST', body: JSON.stringify(body) })

interface Page {
  readonly messages: readonly { readonly id: string; readonly role: string }[]
  readonly cleanups: readonly { readonly id: string }[]
}

const pageOf = async (world: ModelWorld): Promise<Page> =>
  (await world.gateway.api('/api/sessions/s/messages?limit=500')) as unknown as Page

async function act(world: ModelWorld, random: Random): Promise<void> {
  const chance = random()
  if (chance < 0.62) return speak(world, random)
  if (chance < 0.7) {
    const { cleanups } = await pageOf(world)
    if (cleanups.length > 0) await post(world, '/restore', { cleanup: pick(random, cleanups).id })
    return
  }
  if (chance < 0.78) {
    world.enqueue(text(`A summary of ${words(random)}`))
    await say(await world.connect(), '/compact')
    return world.forgetQueue()
  }
  if (chance < 0.84) return void (await say(await world.connect(), '/compact undo'))
  if (chance < 0.9) return void (await say(await world.connect(), '/restore'))
  if (chance < 0.95) return void (await say(await world.connect(), '/cleanup'))
  return world.restart({ kill: true })
}

interface Detail {
  readonly n: number
  readonly estimate: number
  readonly fixed: number
  readonly hash: string
  readonly hashMatches: boolean
  readonly bytes: number
  readonly body: string
  readonly same: number
  readonly leftOut: { readonly messages: number; readonly tokens: number }
  readonly messages: readonly { readonly entries: readonly string[]; readonly tokens: number; readonly state: string }[]
  readonly notSent: readonly {
    readonly entry: string
    readonly tokens: number
    readonly by: string
    readonly reason: string
  }[]
}

async function details(world: ModelWorld): Promise<readonly Detail[]> {
  const { requests } = (await world.gateway.api('/api/sessions/s/requests?limit=1000')) as unknown as {
    requests: readonly { n: number; messages: number; leftOut: Detail['leftOut'] }[]
  }
  const found: Detail[] = []
  for (const row of requests) {
    const detail = (await world.gateway.api(`/api/sessions/s/requests/${row.n}?body=1`)) as unknown as Detail
    expect(detail.leftOut).toEqual(row.leftOut)
    expect(detail.messages).toHaveLength(row.messages)
    found.push(detail)
  }
  return found
}

/** Entries in the order of the file, and at which of them each request stands. */
async function order(
  world: ModelWorld,
): Promise<{ readonly before: (n: number) => readonly string[]; readonly isSummary: (id: string) => boolean }> {
  const lines = (await world.gateway.request('/api/sessions/s/export?format=jsonl')).text.trim().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as { type: string; id: string; customType?: string })
  const requests = entries.flatMap((entry, at) => (entry.customType === 'clew.request' ? [at] : []))
  const summaries = new Set(entries.flatMap(({ type, id }) => (type === 'compaction' ? [id] : [])))
  return {
    isSummary: (id) => summaries.has(id),
    before: (n) =>
      entries
        .slice(0, requests[n - 1])
        .filter(({ type }) => type === 'message')
        .map(({ id }) => id),
  }
}

it.each(SEEDS)(
  'names every message once, adds up and proves its bytes in a random conversation, seed %i',
  async (seed) => {
    const random = randomOf(seed)
    const world = await openWorld({
      models: [MODELS[seed % MODELS.length] ?? 'anthropic'],
      config: { compaction: { keepRecentTokens: 60 } },
    })
    await speak(world, random)
    for (let action = 0; action < ACTIONS; action++) await act(world, random)
    await speak(world, random)
    const { before, isSummary } = await order(world)
    const all = await details(world)
    expect(all.length).toBeGreaterThan(5)
    for (const detail of all) {
      const named = [...detail.messages.flatMap(({ entries }) => entries), ...detail.notSent.map(({ entry }) => entry)]
      // A summary that is sent stands for its own entry, which is no message.
      expect(named.filter((id) => !isSummary(id)).toSorted()).toEqual(before(detail.n).toSorted())
      expect(detail.estimate).toBe(detail.fixed + detail.messages.reduce((sum, { tokens }) => sum + tokens, 0))
      expect(detail.leftOut).toEqual({
        messages: detail.notSent.length,
        tokens: detail.notSent.reduce((sum, { tokens }) => sum + tokens, 0),
      })
      for (const { by, reason } of detail.notSent) expect([by, reason]).not.toContain('')
      expect(createHash('sha256').update(detail.body).digest('hex')).toBe(detail.hash)
      expect([detail.hashMatches, detail.bytes]).toEqual([true, Buffer.byteLength(detail.body)])
      expect(detail.messages.findIndex(({ state }) => state !== 'same')).toBe(
        detail.same === detail.messages.length ? -1 : detail.same,
      )
    }
  },
)

/** The next request after a change made by the page or by a command. */
async function afterChange(seed: number, change: (world: ModelWorld) => Promise<unknown>): Promise<string> {
  const random = randomOf(seed)
  const world = await openWorld({ config: { compaction: { keepRecentTokens: 60 } } })
  for (let step = 0; step < 4; step++) await speak(world, random)
  await change(world)
  world.enqueue(text('Done.'))
  await say(await world.connect(), 'What did you do?')
  return (await details(world)).at(-1)?.body ?? ''
}

it.each(SEEDS.slice(0, 4))('shows again exactly as /restore does, seed %i', async (seed) => {
  let shownAgain = 0
  const byPage = await afterChange(seed, async (world) => {
    const latest = (await pageOf(world)).cleanups.at(-1)
    if (latest !== undefined)
      shownAgain = (await post(world, '/restore', { cleanup: latest.id }))['success'] === true ? 1 : 0
  })
  const byCommand = await afterChange(seed, async (world) => say(await world.connect(), '/restore'))
  expect(shownAgain).toBe(1)
  expect(byPage).toBe(byCommand)
  expect(byPage).not.toBe(await afterChange(seed, async () => undefined))
})

it.each(SEEDS.slice(0, 4))('undoes a summary exactly as /compact undo does, seed %i', async (seed) => {
  const compact = async (world: ModelWorld) => {
    world.enqueue(text('They spoke of lamps.'))
    return say(await world.connect(), '/compact')
  }
  const byPage = await afterChange(seed, async (world) => {
    await compact(world)
    expect(await post(world, '/restore', { compaction: true })).toMatchObject({ success: true })
  })
  const byCommand = await afterChange(seed, async (world) => {
    await compact(world)
    await say(await world.connect(), '/compact undo')
  })
  expect(byPage).toBe(byCommand)
  expect(byPage).not.toContain('They spoke of lamps.')
})
