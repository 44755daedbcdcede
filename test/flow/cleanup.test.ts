import { afterEach, describe, expect, it } from 'vitest'
import { MemoryGateway, type Frame, type GatewayOptions } from '../support/gateway.ts'

let open: MemoryGateway[] = []

async function openGateway(options?: GatewayOptions): Promise<MemoryGateway> {
  const gateway = await MemoryGateway.open(options)
  open.push(gateway)
  return gateway
}

afterEach(async () => {
  for (const gateway of open) await gateway.stop()
  open = []
})

const TASK = '写一个错误的计算，然后修复它'

async function cleanedGateway(): Promise<{ gateway: MemoryGateway; frames: Frame[]; data: Record<string, number> }> {
  const gateway = await openGateway()
  const client = await gateway.connect('?stream=1')
  await client.ask({ id: '1', content: TASK, session: 's' })
  const event = client.frames.find((frame) => frame['event'] === 'step_cleanup_completed')
  return { gateway, frames: client.frames, data: event?.['data'] as Record<string, number> }
}

async function bodyOf(gateway: MemoryGateway, request: number): Promise<string> {
  return String((await gateway.api(`/api/sessions/s?request=${request}`))['body'])
}

describe('cleanup after a step', () => {
  it('hides the seed’s error-fixing rounds: 4 messages go, instruction and final answer stay, the numbers add up', async () => {
    const { data } = await cleanedGateway()
    // The seed counts the system prompt among its 7 and 3 messages; remaining_messages here counts without it.
    expect(data).toMatchObject({ cleaned_messages: 4, remaining_messages: 2 })
    expect((data['tokens_before'] ?? 0) - (data['tokens_remaining'] ?? 0)).toBe(data['tokens_saved'])
    expect(data['tokens_saved']).toBeGreaterThan(0)
  })

  it('is announced before the step is', async () => {
    const { frames } = await cleanedGateway()
    const names = frames.map((frame) => frame['event'] ?? frame['type'])
    expect(names.indexOf('step_cleanup_completed')).toBeLessThan(names.indexOf('step_completed'))
    expect(names.at(-1)).toBe('complete')
  })

  it('leaves the follow-up question answerable and tells the model what is missing', async () => {
    const { gateway } = await cleanedGateway()
    const client = await gateway.connect()
    const answer = await client.ask({ id: '2', content: '你刚才说了什么？', session: 's' })
    expect(answer['content']).toContain('84')
    const body = await bodyOf(gateway, 4)
    expect(body).toContain(TASK)
    expect(body).not.toContain('随手写')
    expect(body).toContain('recall_rounds')
  })

  it('is undone by /restore: the next request is byte-identical to one that was never cleaned', async () => {
    const uncleaned = await openGateway({ config: { task: { auto_cleanup_enabled: false } } })
    const { gateway: cleaned } = await cleanedGateway()
    const bodies: string[] = []
    for (const gateway of [cleaned, uncleaned]) {
      const client = await gateway.connect('?stream=1')
      if (gateway === uncleaned) await client.ask({ id: '1', content: TASK, session: 's' })
      const reply = await client.ask({ id: 'r', content: '/restore', session: 's' })
      expect(reply['content']).toContain(gateway === cleaned ? '重新对模型可见' : '没有可以撤销的清理')
      await client.ask({ id: '3', content: 'What did I say?', session: 's' })
      bodies.push((await bodyOf(gateway, 4)).replaceAll(/"timestamp":\d+/gu, ''))
    }
    expect(bodies[0]).toBe(bodies[1])
  })

  it('deletes nothing: the transcript still holds every message, and /cleanup hides them again after a restore', async () => {
    const { gateway } = await cleanedGateway()
    const client = await gateway.connect()
    const shown = await gateway.api('/api/sessions/s')
    const messages = shown['messages'] as { hidden?: boolean }[]
    expect(messages).toHaveLength(6)
    expect(messages.filter(({ hidden }) => hidden === true)).toHaveLength(4)
    await client.ask({ id: 'r', content: '/restore', session: 's' })
    expect((await client.ask({ id: 'c', content: '/cleanup', session: 's' }))['content']).toContain('的 4 条消息')
  })

  it('announces a step without anything in the middle too, with zeros and the reason', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?stream=1')
    await client.ask({ id: '1', content: 'hello', session: 's' })
    await client.ask({ id: '2', content: 'hello again', session: 's' })
    const events = client.frames.filter((frame) => frame['event'] === 'step_cleanup_completed')
    const nothing = { cleaned_messages: 0, tokens_saved: 0, net_tokens_saved: 0, reason: 'nothing to hide' }
    expect(events.map((frame) => frame['data'])).toMatchObject([
      { ...nothing, remaining_messages: 2 },
      { ...nothing, remaining_messages: 4 },
    ])
    const [first, second] = events.map((frame) => frame['data'] as Record<string, number>)
    expect(first?.['tokens_remaining']).toBeGreaterThan(0)
    expect(second?.['tokens_remaining']).toBeGreaterThan(first?.['tokens_remaining'] ?? 0)
    expect(first?.['tokens_before']).toBe(first?.['tokens_remaining'])
  })

  it('also says what it saves net of cache effects, over how many requests, and that this is an estimate', async () => {
    const { data } = await cleanedGateway()
    expect(data).toMatchObject({ net_requests: 5, net_basis: 'estimated' })
    expect(Number.isInteger(data['net_tokens_saved'])).toBe(true)
    expect(data['net_tokens_saved']).toBeLessThan(data['tokens_saved'] ?? 0)
  })

  it('can be switched off for one message', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?stream=1')
    await client.ask({ id: '1', content: TASK, session: 's', auto_cleanup_enabled: false })
    expect(client.frames.some((frame) => frame['event'] === 'step_cleanup_completed')).toBe(false)
  })
})

describe('every request', () => {
  it('can be rebuilt byte for byte from the transcript, its hash verified', async () => {
    const { gateway } = await cleanedGateway()
    for (const n of [1, 2, 3]) {
      const shown = await gateway.api(`/api/sessions/s?request=${n}`)
      expect(shown).toMatchObject({ request: n, hashMatches: true })
    }
  })
})

describe('steps as data', () => {
  it('have title, times, rounds, results and what was hidden, on their own and with the session', async () => {
    const { gateway } = await cleanedGateway()
    const client = await gateway.connect()
    await client.ask({ id: '2', content: 'hello\nthere', session: 's' })
    const { steps } = (await gateway.api('/api/sessions/s/steps')) as { steps: Record<string, unknown>[] }
    expect(steps).toMatchObject([
      {
        title: TASK,
        instructionText: TASK,
        outcome: 'completed',
        rounds: [
          {
            hidden: true,
            llmResponse: { toolCalls: [{ name: 'calculator' }], stopReason: 'toolUse', model: 'demo/demo' },
            toolCallResults: [{ toolName: 'calculator', isError: true }],
          },
          { hidden: true, toolCallResults: [{ isError: false, text: '84' }] },
          { llmResponse: { toolCalls: [], stopReason: 'stop' }, toolCallResults: [] },
        ],
        cleanup: { cleanedMessages: 4, estimated: true },
      },
      { title: 'hello', instructionText: 'hello\nthere', outcome: 'completed', rounds: [{ toolCallResults: [] }] },
    ])
    const [first] = steps
    expect(first?.['result']).toContain('84')
    expect(Number(first?.['endTime'])).toBeGreaterThan(Number(first?.['startTime']))
    expect((await gateway.api('/api/sessions/s'))['steps']).toEqual(steps)
  })

  it('say how they ended without an answer', async () => {
    const gateway = await openGateway({ config: { task: { max_rounds: 1 } } })
    const client = await gateway.connect()
    await client.ask({ id: '1', content: TASK, session: 's' })
    const { steps } = (await gateway.api('/api/sessions/s/steps')) as { steps: Record<string, unknown>[] }
    expect(steps).toMatchObject([{ outcome: 'round-limit' }])
    expect(steps[0]).not.toHaveProperty('result')
  })
})

describe('what cleanups saved in all', () => {
  it('is in /status, the list, the session and the metrics, with the net, and goes down with /restore', async () => {
    const { gateway, data } = await cleanedGateway()
    const client = await gateway.connect()
    await client.ask({ id: '2', content: 'thanks', session: 's' })
    const saved = data['tokens_saved'] ?? 0
    // The demo model has no cache: what is hidden is saved in every request.
    const totals = { steps: 1, messages: 4, tokensSaved: saved, netTokensSaved: saved, netBasis: 'estimated' }
    expect(await gateway.api('/api/sessions')).toMatchObject({ sessions: [{ cleanup: totals }] })
    expect(await gateway.api('/api/sessions/s')).toMatchObject({ cleanup: totals })
    const status = String((await client.ask({ id: '3', content: '/status', session: 's' }))['content'])
    expect(status).toMatch(/^context about \d+ tokens in 4 messages \(estimated\)$/mu)
    expect(status).toContain(
      `cleaned up 4 messages of 1 step, ${saved} tokens saved; net of cache effects ${saved} so far (estimated)`,
    )
    const metrics = await gateway.app.metrics.expose()
    expect(metrics).toContain('clew_cleanup_steps_total 1')
    expect(metrics).toContain('clew_cleanup_messages_total 4')
    expect(metrics).toContain(`clew_cleanup_tokens_saved_total ${saved}`)
    expect(metrics).toContain(`clew_cleanup_net_tokens_saved ${saved}`)
    await client.ask({ id: '4', content: '/restore', session: 's' })
    expect(await gateway.api('/api/sessions/s')).toMatchObject({
      cleanup: { steps: 0, messages: 0, tokensSaved: 0, netTokensSaved: saved },
    })
  })

  it('goes down by each step once when two restores come at the same time', async () => {
    const { gateway } = await cleanedGateway()
    const client = await gateway.connect()
    await client.ask({ id: '2', content: TASK, session: 's' })
    const totals = async (): Promise<unknown> => (await gateway.api('/api/sessions/s'))['cleanup']
    expect(await totals()).toMatchObject({ steps: 2, messages: 8 })
    const restore = () => gateway.request('/api/sessions/s/restore', { method: 'POST', body: '{}' })
    const answers = await Promise.all([restore(), restore(), restore()])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400])
    expect(await totals()).toMatchObject({ steps: 0, messages: 0, tokensSaved: 0 })
  })
})
