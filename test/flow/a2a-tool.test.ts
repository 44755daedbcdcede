import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { rpc } from '../support/a2a-client.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { messagesOf, say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

// The tool loads it when it is first used; loaded already, it works within virtual time.
await import('../../src/tool/a2a/remote-task.ts')

const openWorld = worldsOfThisFile()
const { open: openGateway } = gatewaysOfThisFile()

const URL = 'http://127.0.0.1:9090'
const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const call = (args: Record<string, string>): ScriptedAnswer => ({
  blocks: [{ type: 'toolCall', name: 'a2a', arguments: { agent: 'other', ...args } }],
})

/** A gateway whose model calls the agent of another gateway, which is the demo. */
async function openBoth(
  agent: Record<string, unknown> = {},
  other: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<{ readonly world: ModelWorld; readonly other: MemoryGateway }> {
  const agents = { other: { url: URL, private: true, ...agent } }
  const world = await openWorld({ config: { a2a: { agents, ...more } } })
  const { clock, network } = world.gateway
  const listen = { port: 9090, ...(other['listen'] as object | undefined) }
  return { world, other: await openGateway({ clock, network, seed: 7, config: { ...other, listen } }) }
}

async function lastResult(world: ModelWorld): Promise<{ readonly text: string; readonly isError: boolean }> {
  const results = messagesOf(await world.transcript('s')).filter(({ role }) => role === 'toolResult')
  const { content, isError } = results.at(-1) as unknown as { content: { text: string }[]; isError: boolean }
  return { text: content.map((block) => block.text).join(''), isError }
}

async function use(world: ModelWorld, args: Record<string, string>) {
  world.enqueue(call(args), text('done'))
  await say(await world.connect(), 'ask it', { session: 's' })
  return lastResult(world)
}

describe('the a2a tool', () => {
  it('gives a task to another gateway and goes on in its context', async () => {
    const { world } = await openBoth()
    const first = await use(world, { message: 'I like green tea' })
    const context = /\[context: (.+)\]$/u.exec(first.text)?.[1] ?? ''
    expect([first.isError, context]).toEqual([false, expect.stringMatching(/./u)])
    const second = await use(world, { message: 'What did I say?', context })
    expect(second.text).toContain('green tea')
  })

  it('waits for long tasks, and cuts long answers', async () => {
    const { world } = await openBoth({}, {}, { answer_chars: 100 })
    const { text: answer } = await use(world, { message: 'count to 2000' })
    expect(answer).toContain('[cut after 100 characters]')
  })

  it('stops the other task when its turn is stopped', async () => {
    const { world, other } = await openBoth()
    const client = await world.connect()
    world.enqueue(call({ message: 'count to 9999' }))
    await client.send({ id: '1', content: 'ask it', session: 's' })
    const states = async (): Promise<string[]> => {
      const { result } = await rpc(other, 'ListTasks', {})
      return (result['tasks'] as { status: { state: string } }[]).map(({ status }) => status.state)
    }
    await world.clock.runUntil(() => other.app.sessions.activity().running === 1)
    await client.send({ type: 'session.cancel', key: 's' })
    await world.clock.runUntil(() => client.terminal().length > 0)
    await world.clock.runUntil(() => other.app.sessions.activity().running === 0)
    expect(await states()).toEqual(['TASK_STATE_CANCELED'])
  })

  it('passes on what the other asks, and the answer', async () => {
    const { world } = await openBoth({}, { agent: { tools: ['calculator'], approve: ['calculator'] } })
    const asked = await use(world, { message: 'What is 6 * 7?' })
    const task = /task: (run_\w+)\]/u.exec(asked.text)?.[1] ?? ''
    expect(asked.text).toContain('needs approval')
    expect((await use(world, { message: 'approve', task })).text).toContain('42')
  })

  it('sends its token, and says when it is refused', async () => {
    const listen = { token: 'token-0123456789abcdef' }
    const right = await openBoth({ token: listen.token }, { listen })
    expect((await use(right.world, { message: 'Hello' })).isError).toBe(false)
    const wrong = await openBoth({ token: 'wrong' }, { listen })
    expect(await use(wrong.world, { message: 'Hello' })).toMatchObject({
      isError: true,
      text: expect.stringContaining('could not be asked'),
    })
  })

  it('reaches this machine only where that is allowed', async () => {
    const { world, other } = await openBoth({ private: false })
    const refused = await use(world, { message: 'Hello' })
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('not on the public internet') })
    expect(await other.app.storage.outbox.counts()).toMatchObject({ delivered: 0, open: 0 })
  })

  it('does not follow a card to another private address, nor give it the token', async () => {
    const { world, other } = await openBoth({ token: 'secret-0123456789' }, { a2a: { public_url: 'http://10.0.0.1' } })
    const refused = await use(world, { message: 'Hello' })
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('not on the public internet') })
    expect(await other.app.storage.outbox.counts()).toMatchObject({ delivered: 0, open: 0 })
  })

  it('is there only with agents to call', async () => {
    const world = await openWorld({ config: { agent: { tools: ['time', 'a2a'] } } })
    const { tools, notes } = await world.gateway.api('/api/tools')
    expect((tools as { name: string }[]).map(({ name }) => name)).not.toContain('a2a')
    expect(notes).toEqual(['a2a is off: a2a.agents lists no agent it may call'])
  })
})
