import { expect, it } from 'vitest'
import { settle } from '../../src/testing/manual-clock.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway } = gatewaysOfThisFile()

interface Told {
  readonly id: number
  readonly name: string
  readonly data: Record<string, unknown>
}

/** An open event stream of a page. */
class Page {
  readonly status: number
  readonly #stop: AbortController
  #text = ''
  isEnded = false

  private constructor(status: number, body: AsyncIterable<Uint8Array>, stop: AbortController) {
    this.status = status
    this.#stop = stop
    void this.#read(body)
  }

  static async open(gateway: MemoryGateway, query = ''): Promise<Page> {
    const stop = new AbortController()
    const url = `${gateway.url}/api/events${query}`
    const timeouts = { connectTimeoutMs: 1_000, firstByteTimeoutMs: 1_000, idleTimeoutMs: 3_600_000 }
    const { status, body } = await gateway.network.request(
      { method: 'GET', url, headers: {}, ...timeouts },
      stop.signal,
    )
    const page = new Page(status, body, stop)
    await settle()
    return page
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await settle()
  }

  get events(): readonly Told[] {
    return this.#text.split('\n\n').flatMap((block) => {
      const found = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/u.exec(block)
      return found === null
        ? []
        : [{ id: Number(found[1]), name: found[2] ?? '', data: JSON.parse(found[3] ?? '') as Told['data'] }]
    })
  }

  turns(): readonly Record<string, unknown>[] {
    return this.events.filter(({ name }) => name === 'turn').map(({ data }) => data['event'] as Record<string, unknown>)
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const piece of body) this.#text += Buffer.from(piece).toString()
    } catch {
      // The page was closed.
    }
    this.isEnded = true
  }
}

it('tells a turn of another channel from its acceptance to its answer, and the row goes idle within a second', async () => {
  const gateway = await openGateway()
  const page = await Page.open(gateway, '?session=s')
  const client = await gateway.connect()
  const { content } = await client.ask({ id: '1', content: 'What is 12 * (3 + 4)?', session: 's' })
  await gateway.clock.advance(1_000)
  const turns = page.turns()
  expect(turns[0]).toMatchObject({ type: 'accepted' })
  expect(turns.at(-1)).toMatchObject({ type: 'complete', content })
  expect(turns.map(({ event }) => event)).toContain('tool_end')
  let text = ''
  for (const frame of turns) {
    if (frame['event'] === 'round_end') text = ''
    if (frame['type'] !== 'delta') continue
    expect(frame['offset']).toBe(text.length)
    text += String(frame['delta'])
  }
  expect(page.events.findLast(({ name }) => name === 'session')?.data).toMatchObject({ key: 's', state: 'idle' })
  expect(page.events.some(({ name }) => name === 'status')).toBe(true)
})

it('sends a reader that comes back exactly what it missed, and deltas only to those who watch the conversation', async () => {
  const gateway = await openGateway()
  const watching = await Page.open(gateway)
  const client = await gateway.connect()
  await client.ask({ id: '1', content: 'What time is it?', session: 's' })
  await gateway.clock.advance(1_000)
  const last = watching.events.at(-1)?.id ?? 0
  expect(watching.turns().some(({ type }) => type === 'delta')).toBe(false)
  await watching.close()
  await client.ask({ id: '2', content: 'What is 2 + 2?', session: 's' })
  await gateway.clock.advance(1_000)
  const again = await Page.open(gateway, `?since=${last}`)
  expect(again.turns()[0]).toMatchObject({ type: 'accepted' })
  expect(again.turns().at(-1)).toMatchObject({ type: 'complete', content: expect.stringContaining('4') as string })
  expect(again.turns().filter(({ type }) => type === 'complete')).toHaveLength(1)
})

it('tells of a cleanup and of a conversation that were brought back', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect()
  await client.ask({ id: '1', content: 'What is 12 * (3 + 4)?', session: 's' })
  const page = await Page.open(gateway)
  const change = async (path: string, body: object = {}): Promise<unknown> => {
    await gateway.clock.advance(1_000)
    const before = page.events.length
    const init = { method: 'POST', body: JSON.stringify(body) }
    expect((await gateway.request(`/api/sessions/s/${path}`, init)).status).toBe(200)
    await gateway.clock.advance(1_000)
    return page.events.slice(before).findLast(({ name }) => name === 'session')?.data
  }
  expect(await change('restore')).toMatchObject({ key: 's', state: 'idle' })
  expect(await change('reset')).not.toHaveProperty('title')
  const archived = async (): Promise<readonly { sessionId: string }[]> =>
    ((await gateway.api('/api/sessions?archived=1')) as { sessions: { sessionId: string }[] }).sessions
  const [earlier] = await archived()
  expect(await change('restore', { archive: earlier?.sessionId })).toMatchObject({ title: 'What is 12 * (3 + 4)?' })
  // Nothing was said in the one it replaced.
  expect(await archived()).toEqual([])
})

it('says reset to a number of before a restart', async () => {
  const gateway = await openGateway()
  const page = await Page.open(gateway)
  const client = await gateway.connect()
  await client.ask({ id: '1', content: 'What time is it?', session: 's' })
  await gateway.clock.advance(1_000)
  const last = page.events.at(-1)?.id ?? 0
  const next = await gateway.restart()
  const after = await Page.open(next, `?since=${last}`)
  expect(after.events[0]?.name).toBe('reset')
  await next.stop()
})

it('takes as many streams as limits.live_streams says', async () => {
  const gateway = await openGateway({ config: { limits: { live_streams: 1 } } })
  const page = await Page.open(gateway)
  expect((await gateway.request('/api/events')).status).toBe(503)
  await page.close()
})

it('refuses the 33rd stream until one of the 32 closes, and a number that is none', async () => {
  const gateway = await openGateway()
  const pages: Page[] = []
  for (let count = 0; count < 32; count++) pages.push(await Page.open(gateway))
  expect(pages.every(({ status }) => status === 200)).toBe(true)
  const refused = await gateway.request('/api/events')
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('5')
  await pages[7]?.close()
  const next = await Page.open(gateway)
  expect(next.status).toBe(200)
  await next.close()
  expect((await gateway.request('/api/events?since=x')).status).toBe(400)
})

it('ends every stream when the gateway stops', async () => {
  const gateway = await openGateway()
  const page = await Page.open(gateway)
  expect(page.isEnded).toBe(false)
  await gateway.stop()
  await settle()
  expect(page.isEnded).toBe(true)
})

it('makes no events while no page was open for an hour, and tells one that asks for them to load again', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect()
  await client.ask({ id: '1', content: 'What time is it?', session: 's' })
  const first = await Page.open(gateway, '?since=0')
  expect(first.events[0]?.name).toBe('reset')
  expect(first.turns()).toEqual([])
  const last = first.events.at(-1)?.id ?? 0
  await first.close()
  await gateway.clock.advance(3_600_000)
  await client.ask({ id: '2', content: 'What is 2 + 2?', session: 's' })
  await gateway.clock.advance(1_000)
  const again = await Page.open(gateway, `?since=${last}`)
  expect(again.events.map(({ name }) => name)).toContain('reset')
  expect(again.turns()).toEqual([])
  await client.ask({ id: '3', content: 'What is 3 + 3?', session: 's' })
  await gateway.clock.advance(1_000)
  expect(again.turns().at(-1)).toMatchObject({ type: 'complete', content: expect.stringContaining('6') as string })
})
