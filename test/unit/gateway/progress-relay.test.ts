import { expect, test } from 'vitest'
import type { Channel } from '../../../src/channel/channel.ts'
import type { SessionEvent, TurnEvent } from '../../../src/core/event.ts'
import type { RunId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { Channels } from '../../../src/gateway/delivery.ts'
import { ProgressRelay } from '../../../src/gateway/progress-relay.ts'
import type { Progress } from '../../../src/storage/storage.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const MESSAGE: AcceptedMessage = {
  run: 'run_1' as RunId,
  key: 's' as SessionKey,
  channel: 'test',
  account: 'ann',
  messageId: 'm1',
  text: 'a secret of the message',
  attachments: [],
  route: {},
  replyTo: { socket: 1 },
  acceptedAt: 1,
}

const eventOf = (event: TurnEvent): SessionEvent => ({
  session: MESSAGE.key,
  sessionId: 'sess_1' as SessionId,
  run: MESSAGE.run,
  at: 1,
  event,
})
const text = (delta: string, round = 0): SessionEvent => eventOf({ type: 'text-delta', round, delta })

/** One node: where its client is connected, what it told, what its client was shown. */
function openNode(clock: ManualClock) {
  const shown: TurnEvent[] = []
  const told: Progress[] = []
  const node = { reached: false, shown, told }
  const channels = new Channels()
  channels.add({
    name: 'test',
    start: async () => undefined,
    observe: ({ event }) => void shown.push(event),
    deliver: async () => 'delivered',
    reaches: () => node.reached,
    status: () => ({}),
    drain: () => undefined,
    close: async () => undefined,
  } satisfies Channel)
  const storage = { tell: (notice: object) => void told.push((notice as { progress: Progress }).progress) }
  return { ...node, node, relay: new ProgressRelay({ clock, storage, channels }) }
}

const textOf = (events: readonly TurnEvent[]): string =>
  events.map((event) => (event.type === 'text-delta' ? event.delta : '|')).join('')

test('texts are told ten times a second, in order with what else happens, without the message', async () => {
  const clock = new ManualClock(0)
  const [a, b] = [openNode(clock), openNode(clock)]
  b.node.reached = true
  for (let n = 0; n < 1_000; n++) {
    a.relay.show(text(`${n} `), MESSAGE)
    if (n === 500)
      a.relay.show(eventOf({ type: 'tool-start', round: 0, callId: 'c', tool: 't', arguments: {} }), MESSAGE)
    if (n % 250 === 249) await clock.advance(100)
  }
  a.relay.show(eventOf({ type: 'turn-end', outcome: { kind: 'complete' } as never }), MESSAGE)
  expect(JSON.stringify(a.told)).not.toContain('secret')
  expect(a.told.filter(({ event }) => event.event.type === 'text-delta').length).toBeLessThan(12)
  for (const progress of a.told) b.relay.hear(progress)
  const all = Array.from({ length: 1_000 }, (_, n) => `${n} `).join('')
  expect(textOf(b.shown).replaceAll('|', '')).toBe(all)
  expect(b.shown.map(({ type }) => type)).toContain('tool-start')
  expect(b.shown.at(-1)).toMatchObject({ type: 'turn-end' })
})

test('no notice is longer than PostgreSQL takes, whatever is in the text', async () => {
  const clock = new ManualClock(0)
  const [a, b] = [openNode(clock), openNode(clock)]
  b.node.reached = true
  const long = '\u0001\ud83d\ude00中"\\'.repeat(2_000)
  a.relay.show(text(long), MESSAGE)
  await clock.advance(100)
  expect(Math.max(...a.told.map((one) => Buffer.byteLength(JSON.stringify(one))))).toBeLessThan(7_500)
  for (const progress of a.told) b.relay.hear(progress)
  expect(textOf(b.shown)).toBe(long)
})

test('a client that comes in the middle sees the whole text within two seconds; what was lost is never guessed', async () => {
  const clock = new ManualClock(0)
  const [a, b] = [openNode(clock), openNode(clock)]
  b.node.reached = true
  a.relay.show(text('one '), MESSAGE)
  await clock.advance(100)
  a.told.splice(0)
  a.relay.show(text('two '), MESSAGE)
  await clock.advance(100)
  for (const progress of a.told.splice(0)) b.relay.hear(progress)
  expect(textOf(b.shown)).toBe('')
  await clock.advance(2_000)
  a.relay.show(text('three'), MESSAGE)
  await clock.advance(100)
  for (const progress of a.told.splice(0)) b.relay.hear(progress)
  expect(textOf(b.shown)).toBe('one two three')
})

test('nothing is told while the client is connected here, and nothing shown where it is not', async () => {
  const clock = new ManualClock(0)
  const [a, b] = [openNode(clock), openNode(clock)]
  a.node.reached = true
  a.relay.show(text('one '), MESSAGE)
  await clock.advance(100)
  expect(a.told).toEqual([])
  a.node.reached = false
  a.relay.show(text('two'), MESSAGE)
  await clock.advance(100)
  for (const progress of a.told) b.relay.hear(progress)
  expect(b.shown).toEqual([])
  b.node.reached = true
  for (const progress of a.told) b.relay.hear(progress)
  expect(textOf(b.shown)).toBe('one two')
})
