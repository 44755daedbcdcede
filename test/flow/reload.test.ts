import { afterEach, describe, expect, it } from 'vitest'
import { LiveAgent } from '../../src/app/agent.ts'
import type { Agent } from '../../src/app/agent.ts'
import { MemoryGateway, type Frame } from '../support/gateway.ts'

let gateway: MemoryGateway

afterEach(async () => {
  await gateway.stop()
})

const BRIDGE = '/home/clew/bridge.json'

function reload(token?: string): Promise<{ status: number; text: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return gateway.request('/api/reload', { method: 'POST', headers })
}

describe('reload', () => {
  it('applies what it can, names what needs a restart, and keeps connections and conversations', async () => {
    gateway = await MemoryGateway.open({ config: {} })
    const client = await gateway.connect('?uid=ada')
    await client.ask({ id: '1', session: 's', content: 'hello' })
    gateway.files.plant(
      BRIDGE,
      JSON.stringify({ queue: { mode: 'steer' }, language: 'zh', limits: { connections: 7 }, listn: {} }),
    )
    const report = JSON.parse((await reload()).text) as Frame
    expect(report['applied']).toEqual(['language', 'queue.mode'])
    expect(report['restart']).toEqual(['limits.connections'])
    expect(report['warnings']).toEqual([expect.stringContaining('listn')])
    expect(await gateway.api('/api/status')).toMatchObject({ queueMode: 'steer', language: 'zh' })
    const answer = await client.ask({ id: '2', session: 's', content: 'and again' })
    expect(answer['content']).toContain('message 2 of our conversation')
    expect((await client.ask({ id: '3', session: 's', content: '/status' }))['content']).toContain('steer')
    expect(client.closed).toBeUndefined()
  })

  it('names a key that needs a restart again until there was one', async () => {
    gateway = await MemoryGateway.open({ config: {} })
    gateway.files.plant(BRIDGE, JSON.stringify({ limits: { connections: 7 } }))
    await reload()
    expect(JSON.parse((await reload()).text)).toEqual({ applied: [], restart: ['limits.connections'], warnings: [] })
  })

  it.each([
    ['that is no JSON', '{', 'CONFIG_INVALID'],
    ['with an unknown tool', '{"language":"zh","agent":{"tools":["calculater"]}}', undefined],
    ['with a model of no provider', '{"language":"zh","model":"nobody/x"}', undefined],
    ['with a hook that is not there', '{"language":"zh","hooks":["./nope.mjs"]}', undefined],
  ])('a file %s changes nothing and is refused with the reason', async (_what, text, code) => {
    gateway = await MemoryGateway.open({ config: {} })
    gateway.files.plant(BRIDGE, text)
    const { status, text: body } = await reload()
    expect(status).toBe(400)
    const refusal = JSON.parse(body) as Frame
    expect(refusal['error']).toBeTypeOf('string')
    if (code !== undefined) expect(refusal['code']).toBe(code)
    expect(await gateway.api('/api/status')).toMatchObject({ language: 'auto', model: 'demo' })
  })

  it('takes new tokens, refuses old ones, and leaves open connections alone', async () => {
    const [old, fresh] = ['o'.repeat(20), 'f'.repeat(20)]
    gateway = await MemoryGateway.open({ config: { listen: { token: old } } })
    const client = await gateway.connect(`?token=${old}`)
    gateway.files.plant(BRIDGE, JSON.stringify({ listen: { token: fresh } }))
    expect((await reload('x'.repeat(20))).status).toBe(401)
    expect((await reload(old)).status).toBe(200)
    expect((await reload(old)).status).toBe(401)
    expect((await reload(fresh)).status).toBe(200)
    expect((await client.ask({ id: '1', content: 'still here' }))['type']).toBe('complete')
  })

  it('a turn that runs ends with the settings it began with; the next one has the new ones', async () => {
    gateway = await MemoryGateway.open({ config: { task: { max_rounds: 1 } } })
    const client = await gateway.connect('?uid=ada&stream=1')
    await client.send({ id: '1', session: 's', content: 'calculate 2*3' })
    // The turn runs once it shows something.
    await gateway.clock.runUntil(() => client.frames.length > 0)
    gateway.files.plant(BRIDGE, JSON.stringify({ task: { max_rounds: 8 } }))
    await reload()
    const [first] = await client.waitFor(1)
    const second = await client.ask({ id: '2', session: 's', content: 'calculate 2*3' })
    expect(String(second['content'])).toContain('6')
    expect(String(first?.['content'])).toContain('task.max_rounds')
    expect(second['content']).not.toBe(first?.['content'])
  })
})

describe('the agent that answers', () => {
  function agentWith(toolbox: { closed: number }): Agent {
    return { toolbox: { close: async () => void toolbox.closed++ } } as unknown as Agent
  }

  it('closes tools after the last turn that uses them, and never twice', async () => {
    gateway = await MemoryGateway.open({ config: {} })
    const [first, second] = [{ closed: 0 }, { closed: 0 }]
    const old = agentWith(first)
    const agent = new LiveAgent(old)
    const turn = agent.borrow()
    agent.replace({ ...old })
    agent.replace(agentWith(second))
    expect(first.closed).toBe(0)
    turn.release()
    await agent.close()
    expect([first.closed, second.closed]).toEqual([1, 1])
  })
})
