import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import type { Frame, TestClient } from '../support/gateway.ts'
import { messagesOf, openCalls, say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()

const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const exec = (...programs: string[]): ScriptedAnswer => ({
  blocks: programs.map((program) => ({ type: 'toolCall', name: 'exec', arguments: { program } })),
})

const agent = { tools: ['time'], exec: { allow: ['deploy', 'clean'] }, approve: ['exec'], approve_timeout_ms: 600_000 }
const open = (config: Record<string, unknown> = {}): Promise<ModelWorld> =>
  openWorld({ config: { agent, ...config }, programs: () => ({ stdout: 'it ran' }) })

const questions = (client: TestClient): Frame[] =>
  client.frames.filter(({ event }) => event === 'approval_requested').map(({ data }) => data as Frame)

/** Says something whose answer needs an approval, and waits for the question. */
async function askedFor(world: ModelWorld, client: TestClient, content = 'deploy it'): Promise<Frame> {
  const before = questions(client).length
  await client.send({ id: `q${before}-${content}`, content, session: 's' })
  await world.clock.runUntil(() => questions(client).length > before)
  return questions(client)[before] ?? {}
}

const results = async (world: ModelWorld): Promise<string[]> =>
  messagesOf(await world.transcript())
    .filter(({ role }) => role === 'toolResult')
    .map(({ content }) => (content as { text: string }[]).map((block) => block.text).join(''))

describe('a tool that needs approval', () => {
  it('runs after /approve and not before', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('deployed'))
    const question = await askedFor(world, client)
    expect(question).toMatchObject({ tool: 'exec', arguments: { program: 'deploy' } })
    expect(question['id']).toMatch(/^[0-9a-f]{8}$/u)
    expect(world.commands.started).toEqual([])
    expect(await say(client, '/approve')).toMatchObject({ type: 'complete', content: 'Approved: exec.' })
    expect((await client.waitFor(2))[1]).toMatchObject({ type: 'complete', content: 'deployed' })
    expect(world.commands.started.map(({ program }) => program)).toEqual(['deploy'])
    const decided = client.frames.find(({ event }) => event === 'approval_decided')
    expect(decided?.['data']).toMatchObject({ id: question['id'], verdict: 'approved' })
    expect(world.violations()).toEqual([])
  })

  it('does not run after /deny, and the model is told', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('all right, not'))
    const question = await askedFor(world, client)
    expect(await say(client, `/deny ${String(question['id'])}`)).toMatchObject({ content: 'Denied: exec.' })
    expect((await client.waitFor(2))[1]).toMatchObject({ content: 'all right, not' })
    expect(world.commands.started).toEqual([])
    expect((await results(world))[0]).toMatch(/^Not run: the user did not allow this call/u)
  })

  it('counts as denied when nobody answers in time', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('nobody was there'))
    await askedFor(world, client)
    await world.clock.advance(600_000)
    expect((await client.waitFor(1))[0]).toMatchObject({ content: 'nobody was there' })
    expect(world.commands.started).toEqual([])
    expect((await results(world))[0]).toMatch(/^Not run: the user did not allow this call in time/u)
    expect(await say(client, '/approve')).toMatchObject({ content: 'Nothing waits for approval.' })
  })

  it('is named when several wait, and each is decided alone', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), exec('clean'), text('one'))
    const first = await askedFor(world, client)
    await client.send({ id: 'other', content: 'clean up', session: 'other' })
    await world.clock.runUntil(() => questions(client).length === 2)
    expect(await say(client, `/approve ${String(questions(client)[1]?.['id'])}`)).toMatchObject({
      content: expect.stringMatching(/^Nothing waits under the id/u) as string,
    })
    await say(client, `/approve ${String(first['id'])}`)
    await world.clock.runUntil(() => world.commands.ended.length === 1)
    expect(world.commands.ended[0]?.program).toBe('deploy')
  })

  it('asks also a client that wants nothing but answers', async () => {
    const world = await open()
    const client = await world.connect('?uid=plain')
    world.enqueue(exec('deploy'), text('deployed'))
    await askedFor(world, client)
    await say(client, '/approve')
    expect((await client.waitFor(2))[1]).toMatchObject({ content: 'deployed' })
    expect(client.frames.filter(({ type }) => type === 'event').map(({ event }) => event)).toEqual([
      'approval_requested',
    ])
  })

  it('asks again when the client comes back', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('deployed'))
    const question = await askedFor(world, client)
    client.socket.close(1000, 'bye')
    await client.settle()
    const back = await world.connect()
    await world.clock.runUntil(() => questions(back).length > 0)
    expect(questions(back)[0]).toEqual(question)
  })
})

describe('a turn that waits for approval', () => {
  it('is left alone by control, and gives its place to others', async () => {
    const world = await open({ limits: { concurrent_turns: 1 } })
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('from another session'), text('deployed'))
    await askedFor(world, client)
    const other = await client.ask({ id: 'o', content: 'hello', session: 'other' })
    expect(other).toMatchObject({ type: 'complete', content: 'from another session' })
    expect(await say(client, '/status')).toMatchObject({ type: 'complete' })
    await say(client, '/approve')
    expect((await client.waitFor(4))[3]).toMatchObject({ content: 'deployed' })
  })

  it('ends with /stop, without having run anything', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'))
    await askedFor(world, client)
    await say(client, '/stop')
    await client.waitFor(2)
    expect(world.commands.started).toEqual([])
    expect(await results(world)).toEqual(['Not run: the turn was stopped first.'])
    expect((await world.gateway.api('/api/approvals'))['approvals']).toEqual([])
  })

  it('does not hold up a shutdown, and waits again after the next start', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'))
    const question = await askedFor(world, client)
    await world.gateway.app.gateway.drain(new AbortController().signal)
    world.enqueue(text('deployed'))
    await world.restart()
    const back = await world.connect()
    await world.clock.runUntil(() => questions(back).length > 0)
    expect(questions(back)[0]?.['id']).toBe(question['id'])
  })

  it.each([{ kill: true }, { kill: false }])(
    'survives a crash (%j): the same question, and it runs once',
    async (how) => {
      const world = await open()
      const client = await world.connect()
      world.enqueue(exec('deploy'))
      const question = await askedFor(world, client)
      await world.restart(how)
      const back = await world.connect()
      await world.clock.runUntil(() => questions(back).length > 0)
      expect(questions(back)[0]).toMatchObject({ id: question['id'], expiresAt: question['expiresAt'] })
      expect(world.commands.started).toEqual([])
      world.enqueue(text('deployed'))
      await say(back, '/approve')
      await world.clock.runUntil(() => back.terminal().some(({ content }) => content === 'deployed'))
      expect(world.commands.started.map(({ program }) => program)).toEqual(['deploy'])
      expect(openCalls(await world.transcript())).toEqual([])
    },
  )

  it('waits through any number of crashes', async () => {
    const world = await open({ agent: { ...agent, approve_timeout_ms: 86_400_000 } })
    const client = await world.connect()
    world.enqueue(exec('deploy'))
    const question = await askedFor(world, client)
    for (let crash = 0; crash < 4; crash++) {
      await world.restart({ kill: true })
      const back = await world.connect()
      await world.clock.runUntil(() => questions(back).length > 0 || back.terminal().length > 0)
      expect(questions(back)[0]?.['id']).toBe(question['id'])
      expect(back.terminal()).toEqual([])
    }
  })

  it('that was approved and killed in the middle of its call is not run twice', async () => {
    const world = await openWorld({ config: { agent }, programs: () => ({ takesMs: 60_000 }) })
    const client = await world.connect()
    world.enqueue(exec('deploy'))
    await askedFor(world, client)
    await say(client, '/approve')
    await world.clock.runUntil(() => world.commands.started.length === 1)
    world.enqueue(text('it may have happened'))
    await world.restart({ kill: true })
    const back = await world.connect()
    await world.clock.runUntil(() => back.terminal().length > 0)
    expect(world.commands.started).toEqual([])
    expect((await results(world))[0]).toMatch(/^The program was restarted while this call was running/u)
    const ends = back.frames.filter((frame) => frame['event'] === 'tool_end')
    expect(ends.map((frame) => frame['data'])).toMatchObject([{ failed: true }])
  })

  it('whose time passed while the gateway was down is denied at the next start', async () => {
    const world = await open({ agent: { ...agent, approve_timeout_ms: 30_000 } })
    const client = await world.connect()
    world.enqueue(exec('deploy'))
    await askedFor(world, client)
    world.enqueue(text('too late'))
    await world.restart({ kill: true })
    const back = await world.connect()
    await world.clock.runUntil(() => back.terminal().length > 0)
    expect(world.commands.started).toEqual([])
    expect((await results(world))[0]).toMatch(/^Not run: the user did not allow this call in time/u)
  })
})

describe('the interface for programs', () => {
  it('lists what waits and decides it', async () => {
    const world = await open()
    const client = await world.connect()
    world.enqueue(exec('deploy'), text('deployed'))
    const { id } = await askedFor(world, client)
    const { approvals } = (await world.gateway.api('/api/approvals')) as { approvals: Frame[] }
    expect(approvals).toMatchObject([
      { id, session: 's', channel: 'webhook', account: 'tester', tool: 'exec', arguments: { program: 'deploy' } },
    ])
    const post = (path: string, body: unknown): Promise<Frame> =>
      world.gateway.api(path, { method: 'POST', body: JSON.stringify(body) })
    expect(await post(`/api/approvals/${String(id)}`, { approve: 'yes' })).toMatchObject({ code: 'FIELD_INVALID' })
    expect(await post('/api/approvals/none', { approve: true })).toMatchObject({ code: 'APPROVAL_NOT_FOUND' })
    expect(await post(`/api/approvals/${String(id)}`, { approve: true })).toEqual({
      success: true,
      id,
      session: 's',
      approved: true,
    })
    expect((await client.waitFor(1))[0]).toMatchObject({ content: 'deployed' })
    expect((await world.gateway.api('/api/approvals'))['approvals']).toEqual([])
  })
})
