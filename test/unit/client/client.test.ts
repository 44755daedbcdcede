import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ClewClient, type AnswerEvent, type ClientOptions, type ClientState } from '../../../src/client/index.ts'
import { LATER_MS } from '../../../src/storage/later-commit.ts'
import type { LinkedSocket } from '../../../src/testing/linked-sockets.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { MemoryGateway } from '../../support/gateway.ts'
import { openWaiting } from '../../support/waiting-model.ts'
import { linkedWebSocket } from '../../support/linked-web-socket.ts'

let clock: ManualClock
let files: MemoryFiles
let gateway: MemoryGateway
let client: ClewClient | undefined
/** Sockets the client opened, and with which query. */
let dialled: { readonly url: URL; readonly socket: LinkedSocket | undefined }[]
let reachable: boolean

beforeEach(async () => {
  // The client lives in browsers and has their timers; everything else is on the manual clock.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  clock = new ManualClock()
  files = new MemoryFiles({ now: () => clock.now() })
  gateway = await openWaiting({ clock, files })
  dialled = []
  reachable = true
})

afterEach(async () => {
  client?.close()
  vi.useRealTimers()
  if (!files.isCrashed) await gateway.stop()
})

function connect(options: Partial<ClientOptions> = {}): ClewClient {
  const WebSocket = linkedWebSocket((url) => {
    const resume = url.searchParams.get('resume')
    const query = { account: url.searchParams.get('uid') ?? '', ...(resume === null ? {} : { resume: Number(resume) }) }
    const socket = reachable ? gateway.linkSocket(query) : undefined
    dialled.push({ url, socket })
    return socket
  })
  client = new ClewClient({ url: 'ws://gateway/ws', uid: 'me', WebSocket, ...options })
  return client
}

/** Time for the gateway and for the client. */
async function pass(ms: number): Promise<void> {
  await clock.advance(ms)
  await vi.advanceTimersByTimeAsync(ms)
  await clock.advance(1)
}

describe('an answer', () => {
  it('can be awaited, or watched as it grows', async () => {
    const me = connect()
    const answer = me.ask('hi', { session: 's' })
    const seen: AnswerEvent[] = []
    const watching = (async () => {
      for await (const event of answer) seen.push(event)
    })()
    await pass(50)
    expect(await answer.text()).toBe('answer to hi')
    await watching
    expect(seen.map((each) => (each.type === 'event' ? each.event : each.type))).toEqual([
      'accepted',
      'turn_start',
      'round_end',
      'step_cleanup_completed',
      'step_completed',
      'complete',
    ])
    expect(seen.at(-1)).toMatchObject({ session: 's', redelivered: false })
  })

  it('fails with the gateway’s code, for who awaits and for who watches', async () => {
    const me = connect()
    await pass(1)
    const answer = me.ask('  ')
    await pass(1)
    await expect(answer.text()).rejects.toMatchObject({ name: 'ClewError', code: 'FIELD_INVALID' })
    await expect(
      (async () => {
        for await (const _ of answer);
      })(),
    ).rejects.toMatchObject({ code: 'FIELD_INVALID' })
    const cancelled = me.ask('long', { session: 's' })
    await pass(1)
    const done = me.cancel('s')
    await pass(1)
    await expect(cancelled.text()).rejects.toMatchObject({ code: 'TURN_CANCELLED' })
    expect(await done).toEqual({ success: true, key: 's', cancelled: 1 })
  })

  it('is refused at once when the frame is too large, the id is taken or too much waits', async () => {
    const me = connect({ maxPending: 1, maxFrameBytes: 2_000 })
    await expect(me.ask('x'.repeat(3_000)).text()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' })
    const first = me.ask('hi', { id: '1' })
    await expect(me.ask('hi', { id: '2' }).text()).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await expect(me.get('s')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await pass(50)
    expect(await first.text()).toBe('answer to hi')
  })

  it('fails, instead of being sent for ever, when the gateway’s limit is smaller than ours', async () => {
    const me = connect({ maxFrameBytes: 10_000_000 })
    const small = me.ask('small')
    const large = me.ask('x'.repeat(1_100_000))
    await pass(50)
    await expect(large.text()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' })
    await pass(2_000)
    expect(await small.text()).toBe('answer to small')
    expect(dialled.length).toBeLessThanOrEqual(2)
  })
})

describe('a lost connection', () => {
  it('is made again; a message is answered once, whether it was accepted before or not', async () => {
    const states: ClientState[] = []
    const me = connect({ onStateChange: (state) => states.push(state) })
    const accepted = me.ask('one', { id: '1', session: 's' })
    await clock.advance(5)
    dialled[0]?.socket?.cut()
    const unsent = me.ask('two', { id: '2', session: 's' })
    await pass(1_000)
    await pass(50 + LATER_MS)
    expect([await accepted.text(), await unsent.text()]).toEqual(['answer to one', 'answer to two'])
    expect(states).toEqual(['open', 'waiting', 'connecting', 'open'])
    expect(await gateway.app.storage.outbox.counts()).toEqual({ open: 0, waiting: 0, unknown: 0, delivered: 2 })
  })

  it('resumes behind the last reply it has, and confirms every reply', async () => {
    const me = connect()
    const first = me.ask('one')
    await pass(50)
    await first.text()
    // A confirmation is stored with the next commit, or after this long.
    await pass(LATER_MS)
    expect(await gateway.app.storage.outbox.counts()).toMatchObject({ delivered: 1, unknown: 0 })
    dialled[0]?.socket?.cut()
    await pass(1_000)
    expect(dialled[0]?.url.searchParams.has('resume')).toBe(false)
    expect(Number(dialled[1]?.url.searchParams.get('resume'))).toBeGreaterThan(0)
  })

  it('is tried again with growing pauses while nobody answers', async () => {
    reachable = false
    const me = connect({ reconnect: { firstMs: 100, maxMs: 1_000 } })
    const answer = me.ask('patience')
    await pass(10_000)
    expect(dialled.length).toBeGreaterThan(8)
    expect(dialled.length).toBeLessThan(25)
    reachable = true
    await pass(1_300)
    await pass(50)
    expect(await answer.text()).toBe('answer to patience')
  })

  it('survives the gateway’s own death: what was accepted is answered after its restart', async () => {
    const me = connect()
    const answer = me.ask('one', { session: 's' })
    await clock.advance(3)
    const after = files.kill()
    for (const { socket } of dialled) socket?.cut()
    files = after
    gateway = await openWaiting({ clock, files, life: 2 })
    await pass(2_000)
    expect(await answer.text()).toBe('answer to one')
  })

  it('repeats questions, but not changes that may have happened', async () => {
    const me = connect()
    const first = me.ask('one', { session: 's' })
    await pass(50)
    await first.text()
    dialled[0]?.socket?.goHalfOpen()
    const question = me.get('s')
    const change = me.reset('s')
    await clock.advance(5)
    dialled[0]?.socket?.cut()
    await expect(change).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    const later = me.reset('s')
    await pass(1_000)
    expect(await question).toMatchObject({ key: 's' })
    expect(await later).toEqual({ success: true, key: 's' })
  })
})

describe('control', () => {
  it('lists, gets, resets and deletes, and fails with the gateway’s code', async () => {
    const me = connect()
    const answer = me.ask('hi', { session: 's' })
    await pass(50)
    await answer.text()
    const results = Promise.all([me.list(), me.get('S'), me.reset('s'), me.delete('s')])
    await pass(10)
    const [list, row, reset, gone] = await results
    expect(list).toMatchObject({ count: 1, sessions: [{ key: 's' }] })
    expect(row).toMatchObject({ key: 's', sessionId: expect.stringMatching(/^sess_/u) })
    expect([reset, gone]).toEqual([
      { success: true, key: 's' },
      { success: true, key: 's' },
    ])
    const missing = me.get('s')
    const refused = expect(missing).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' })
    await pass(10)
    await refused
  })
})

describe('closing', () => {
  it('fails whatever waits, ends the socket and sets no timer', async () => {
    const me = connect()
    const answer = me.ask('hi')
    const request = me.get('s')
    me.close()
    await expect(answer.text()).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(request).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(me.ask('more').text()).rejects.toMatchObject({ code: 'CLOSED' })
    await pass(60_000)
    expect(dialled).toHaveLength(1)
    expect(me.state).toBe('closed')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('makes a new connection when a message is not acknowledged: the old one died without a close', async () => {
    const me = connect({ silenceMs: 5_000 })
    await pass(10)
    dialled[0]?.socket?.goHalfOpen()
    const answer = me.ask('still there?', { session: 's' })
    await pass(4_000)
    expect(dialled).toHaveLength(1)
    await pass(1_100)
    await pass(100)
    expect(dialled).toHaveLength(2)
    expect(await answer.text()).toBe('answer to still there?')
  })

  it('can be asked for a new connection, and loses nothing by it', async () => {
    const me = connect()
    await pass(10)
    const answer = me.ask('hi', { session: 's' })
    me.reconnect()
    await pass(100)
    expect(dialled).toHaveLength(2)
    expect(await answer.text()).toBe('answer to hi')
  })
})
