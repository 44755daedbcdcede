import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { LiveEvents } from '../../../src/dashboard/live-events.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const join = (waiting: JsonObject, added: JsonObject): JsonObject => ({
  text: `${String(waiting['text'])}${String(added['text'])}`,
})

it('sends the text of a turn before its end, once', async () => {
  const clock = new ManualClock()
  const live = new LiveEvents({ clock, heartbeat: () => ({}) })
  const stream = live.open({ session: 's', logs: false, maySee: () => true }, [])
  live.emitDelta('s', { text: 'one ' }, join)
  live.emitDelta('s', { text: 'two' }, join)
  live.emit('turn', { end: true }, 's')
  await clock.advance(1_000)
  live.close()
  const text = await new Response(stream).text()
  expect(text.split('\n').filter((line) => line.startsWith('data: '))).toEqual([
    'data: {"text":"one two"}',
    'data: {"end":true}',
  ])
})
