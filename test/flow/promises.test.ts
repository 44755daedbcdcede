import { afterEach, expect, it } from 'vitest'
import type { InboundMessage } from '../../src/core/inbound.ts'
import { MemoryGateway, type Frame, type TestClient } from '../support/gateway.ts'

/** The promises of the README that no other test holds to the letter. */
let open: MemoryGateway[] = []

async function openGateway(): Promise<MemoryGateway> {
  const gateway = await MemoryGateway.open()
  open.push(gateway)
  return gateway
}

async function crash(gateway: MemoryGateway): Promise<MemoryGateway> {
  const again = await gateway.restart()
  open.push(again)
  return again
}

/** Sends a frame and cuts the power in the very moment a frame of this type arrives. */
async function crashAt(type: string, gateway: MemoryGateway, client: TestClient, sent: Frame): Promise<MemoryGateway> {
  let restarted: Promise<MemoryGateway> | undefined
  client.onFrame = (frame) => {
    if (frame['type'] === type) restarted ??= gateway.restart()
  }
  await client.send(sent)
  await gateway.clock.runUntil(() => restarted !== undefined)
  if (restarted === undefined) throw new Error('no such frame came')
  const again = await restarted
  open.push(again)
  return again
}

afterEach(async () => {
  for (const gateway of open) if (!gateway.files.isCrashed) await gateway.stop()
  open = []
})

it('a message may be acknowledged only when it survives a power cut in the same moment', async () => {
  const gateway = await openGateway()
  await (await gateway.connect('?uid=ann')).ask({ id: '1', content: 'hello', session: 's' })
  let restarted: Promise<MemoryGateway> | undefined
  const message: InboundMessage = {
    channel: 'webhook',
    account: 'ann',
    messageId: '2',
    text: 'hello',
    attachments: [],
    route: { session: 's' },
    replyTo: { connection: '', messageId: '2', stream: false },
  }
  await gateway.app.gateway
    .accept(message, () => {
      restarted = gateway.restart()
    })
    .catch(() => undefined)
  const again = await restarted
  if (again === undefined) throw new Error('nobody was told')
  open.push(again)
  const answers = await (await again.connect('?uid=ann')).waitFor(1)
  expect(answers.at(-1)).toMatchObject({ type: 'complete', messageId: '2' })
})

it('a reply that was sent is known after the power failed in the same moment: it comes again marked, not anew', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann')
  const again = await crashAt('complete', gateway, client, { id: '1', content: 'hello', session: 's' })
  const returned = await again.connect('?uid=ann')
  await again.clock.advance(10_000)
  expect(returned.frames).toEqual([{ ...client.frames[0], redelivered: true }])
  expect(await again.api('/api/sessions/s')).toMatchObject({ requests: 1 })
})

it('messages that wait in one session are answered in the order they were sent, also after a crash', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann')
  const ids = ['first', 'second', 'third', 'fourth', 'fifth']
  for (const id of ids) await client.send({ id, content: `count to 40 (${id})`, session: 's', ack: true })
  await client.settle()
  expect(client.frames.filter(({ type }) => type === 'accepted').map(({ messageId }) => messageId)).toEqual(ids)
  const again = await crash(gateway)
  const returned = await again.connect('?uid=ann')
  const frames = await returned.waitFor(ids.length)
  expect(frames.map(({ messageId }) => messageId)).toEqual(ids)
  const { messages } = await again.api('/api/sessions/s')
  const said = (messages as readonly { role: string; text: string }[]).filter(({ role }) => role === 'user')
  expect(said.map(({ text }) => /\((\w+)\)/.exec(text)?.[1])).toEqual(ids)
})

it('a reset that was confirmed holds when the power fails in the same moment', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann')
  await client.ask({ id: '1', content: 'hello', session: 's' })
  const before = await client.ask({ type: 'session.get', key: 's' })
  const again = await crashAt('session.reset', gateway, client, { type: 'session.reset', key: 's' })
  const returned = await again.connect('?uid=ann')
  const after = await returned.ask({ type: 'session.get', key: 's' })
  expect(sessionIdOf(after)).not.toBe(sessionIdOf(before))
  const answer = await returned.ask({ id: '2', content: 'What did I say?', session: 's' })
  expect(answer['content']).toContain('this is the beginning')
})

it('a delete that was confirmed holds when the power fails in the same moment', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann')
  await client.ask({ id: '1', content: 'hello', session: 's' })
  const again = await crashAt('session.delete', gateway, client, { type: 'session.delete', key: 's' })
  const returned = await again.connect('?uid=ann')
  expect(await returned.ask({ type: 'session.get', key: 's' })).toMatchObject({ data: { code: 'SESSION_NOT_FOUND' } })
  expect(await again.files.list('/home/clew/sessions')).toEqual([])
})

it('after a cancel was confirmed nothing more of the answer is sent, and it is not resumed', async () => {
  const gateway = await openGateway()
  const client = await gateway.connect('?uid=ann&stream=1')
  await client.send({ id: '1', content: 'count to 2000', session: 's' })
  await gateway.clock.advance(500)
  await client.send({ type: 'session.cancel', key: 's' })
  await gateway.clock.runUntil(() => client.frames.some(({ type }) => type === 'session.cancel'))
  expect(client.frames.at(-1)).toMatchObject({ type: 'session.cancel', data: { success: true, cancelled: 1 } })
  const sent = client.frames.length
  await gateway.clock.advance(10_000)
  expect(client.frames.slice(sent)).toEqual([])
  expect(client.terminal().filter(({ code }) => code === 'TURN_CANCELLED')).toHaveLength(1)
  const again = await crash(gateway)
  expect(await again.api('/api/status')).toMatchObject({ activity: { running: 0, queued: 0 } })
})

function sessionIdOf(frame: Readonly<Record<string, unknown>>): unknown {
  return (frame['data'] as { readonly sessionId?: string }).sessionId
}
