import { describe, expect, it } from 'vitest'
import type { InboundMessage } from '../../src/core/inbound.ts'
import { type ModelWorld, say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const SHOT = '/home/clew/workspace/shot.png'

/** Pictures in each user message of the last request. */
const images = (world: ModelWorld): readonly number[] =>
  (world.requests.at(-1)?.conversation.turns ?? []).flatMap((turn) => (turn.role === 'user' ? [turn.images] : []))
const body = (world: ModelWorld): string => world.requests.at(-1)?.bodyText ?? ''

/** As a channel with attachments hands it over. */
async function attach(world: ModelWorld): Promise<void> {
  const path = '/home/clew/media/photo.png'
  world.files.plant(path, PIXEL)
  const message: InboundMessage = {
    channel: 'webhook',
    account: 'tester',
    messageId: 'photo',
    text: 'what is on this?',
    attachments: [{ name: 'photo.png', mimeType: 'image/png', path, bytes: PIXEL.length }],
    route: { session: 's' },
    replyTo: {},
  }
  await world.gateway.app.gateway.accept(message)
  await world.clock.advance(10_000)
}

describe('pictures of a message', () => {
  it.each(['anthropic', 'openai', 'google'] as const)('named in its text reach %s', async (model) => {
    const world = await openWorld({ models: [model] })
    world.files.plant(SHOT, PIXEL)
    await say(await world.connect(), '请看 ./shot.png，这是什么？')
    expect(images(world)).toEqual([1])
    expect(body(world)).toContain(PIXEL.toString('base64').slice(0, 40))
    expect(world.violations()).toEqual([])
  })

  it('attached to it reach the model, with a marker a later turn finds again', async () => {
    const world = await openWorld()
    await attach(world)
    expect(images(world)).toEqual([1])
    expect(body(world)).toContain('[media attached: /home/clew/media/photo.png (image/png)]')
    expect(world.violations()).toEqual([])
  })

  it('in the user’s own folder are outside the allowed ones too, and said to be', async () => {
    const world = await openWorld()
    await say(await world.connect(), 'look at ~/pictures/cat.png')
    expect(images(world)).toEqual([0])
    expect(body(world)).not.toContain('another system')
    expect(body(world)).toContain('images not attached: cat.png')
  })

  it('outside the allowed folders reach nobody; the model is told', async () => {
    const world = await openWorld()
    world.files.plant('/etc/secret.png', PIXEL)
    await say(await world.connect(), 'look at /etc/secret.png')
    expect(images(world)).toEqual([0])
    expect(body(world)).toContain('images not attached')
  })

  it('are named, not sent, to a model that takes none; a model with eyes gets them back for three turns', async () => {
    const world = await openWorld({
      models: ['anthropic', 'mistral'],
      settings: { mistral: { models: { 'mistral-large-latest': { images: false } } } },
    })
    world.files.plant(SHOT, PIXEL)
    const client = await world.connect()
    await say(client, '/model mistral/mistral-large-latest')
    await say(client, 'look at ./shot.png')
    expect(images(world)).toEqual([0])
    expect(body(world)).toContain('does not accept images')
    await say(client, '/model anthropic/claude-sonnet-4-5')
    const seen: (readonly number[])[] = []
    for (const question of ['what colour is it?', 'and the frame?', 'and now?', 'and later?']) {
      await say(client, question)
      seen.push(images(world))
    }
    expect(seen.map(([first]) => first)).toEqual([1, 1, 1, 0])
    expect(body(world)).toMatch(/\[image[^\]]*\]/u)
    expect(world.violations()).toEqual([])
  })
})
