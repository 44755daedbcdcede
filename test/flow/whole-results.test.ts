import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { messagesOf, say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import type { Frame } from '../support/gateway.ts'

const openWorld = worldsOfThisFile()

const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const call = (name: string, args: Record<string, string | number | string[]>): ScriptedAnswer => ({
  blocks: [{ type: 'toolCall', name, arguments: args }],
})

/** Lines that can be told apart, so that a missing one is noticed. */
const OUTPUT = Array.from({ length: 54_364 }, (_, at) => `${String(at).padStart(9, '0')}\n`).join('')
const config = { agent: { tools: [], exec: { allow: ['dump'] }, tool_output_chars: 50_000 } }
const open = (): Promise<ModelWorld> => openWorld({ config, programs: () => ({ stdout: OUTPUT }) })

interface StoredResult {
  readonly content: readonly { readonly text: string }[]
  readonly clewBlobs?: readonly { readonly blob: string; readonly characters: number }[]
}

async function storedResult(world: ModelWorld): Promise<StoredResult> {
  return messagesOf(await world.transcript()).find(({ role }) => role === 'toolResult') as unknown as StoredResult
}

/** What the model was shown as the latest tool result. */
function shownResult(world: ModelWorld, n: number): string {
  const body = world.requests[n]?.body as unknown as { messages: { content: Frame[] | string }[] }
  const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  const result = blocks.findLast((block) => block['type'] === 'tool_result')
  const content = result?.['content'] as string | { text: string }[]
  return typeof content === 'string' ? content : content.map((block) => block.text).join('')
}

describe('a tool result that is longer than the model may see', () => {
  it('is kept whole, shown shortened, and read on by the model and by people', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(call('exec', { program: 'dump' }), text('a lot'))
    await say(client, 'dump it')

    const stored = await storedResult(world)
    const [reference] = stored.clewBlobs ?? []
    const whole = await world.gateway.api(`/api/sessions/s/blobs/${reference?.blob}`)
    expect(whole['text']).toBe(`dump: it ended with code 0\n${OUTPUT}`)
    expect(whole).toMatchObject({ key: 's', characters: reference?.characters })
    expect(stored.content[0]?.text.length).toBeLessThanOrEqual(400_000)

    const shown = shownResult(world, 1)
    expect(shown.length).toBeLessThanOrEqual(50_000)
    const named = /read_result \(id "([^"]+)"\)/u.exec(shown)?.[1] ?? ''
    const at = OUTPUT.indexOf('000030000')
    world.enqueue(call('read_result', { id: named, offset: at, limit: 40 }), text('there it is'))
    await say(client, 'what is in the middle?')
    expect(shownResult(world, 3)).toMatch(/^\[characters 300000 to 300040 of 543667 of the result of exec\]\n/u)
    expect(shownResult(world, 3)).toContain('000030000\n')
    expect(shownResult(world, 3)).toContain('continue with offset 300040]')
    expect(world.violations()).toEqual([])
  })

  it('is found by the blob its stored notice names, and by the id of its call', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(call('exec', { program: 'dump' }), text('a lot'))
    await say(client, 'dump it')
    const stored = (await storedResult(world)) as StoredResult & { readonly toolCallId: string }
    const blob = /read_result with id "([0-9a-f]{64})"/u.exec(stored.content[0]?.text ?? '')?.[1] ?? ''
    const byBlob = await world.gateway.api(`/api/sessions/s/blobs/${blob}`)
    const byCall = await world.gateway.api(`/api/sessions/s/blobs/${stored.toolCallId}`)
    expect(byCall['text']).toBe(byBlob['text'])
    expect(byCall['toolName']).toBe('exec')
    const missing = await world.gateway.api('/api/sessions/s/blobs/nothing')
    expect(missing).toMatchObject({ code: 'BLOB_NOT_FOUND' })
  })

  it('is said to be unknown when the model names one that is not there', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(call('read_result', { id: 'nothing' }), text('no'))
    await say(client, 'read it')
    expect(shownResult(world, 1)).toBe('No result with the id "nothing" is in this conversation.')
  })
})

it('offers read_result last, from the first request on', async () => {
  const world = await open()
  const client = await world.connect()
  world.enqueue(text('hello'))
  await say(client, 'hello')
  const body = world.requests[0]?.body as unknown as { tools: { name: string }[] } | undefined
  expect(body?.tools.map(({ name }) => name)).toEqual(['exec', 'recall_rounds', 'read_result'])
})

it('keeps with each user message the channel and the session it came through', async () => {
  const world = await open()
  const client = await world.connect()
  world.enqueue(text('hello'))
  await say(client, 'hello')
  const [message] = messagesOf(await world.transcript()) as unknown as { provenance: unknown }[]
  expect(message?.provenance).toEqual({ kind: 'external_user', sourceChannel: 'webhook', sourceSessionKey: 's' })
})
