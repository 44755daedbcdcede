import { expect, it } from 'vitest'
import { EventStream } from '../../../src/channel/http/event-stream.ts'
import type { Frame } from '../../../src/channel/http/run-feed.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const frame = (type: string, seq: number, text = `${type} ${seq}`): Frame => ({ type, seq, text })

function open(bufferBytes = 1_000) {
  const clock = new ManualClock()
  let cancelled = 0
  const stream = new EventStream({ clock, bufferBytes, onCancel: () => cancelled++ })
  return { clock, stream, cancelled: () => cancelled }
}

it('says every 15 seconds that it is alive, until it ends', async () => {
  const { clock, stream } = open()
  await clock.advance(15_000)
  await clock.advance(15_000)
  stream.end(frame('complete', 1, '{}'))
  expect(await new Response(stream.body).text()).toBe(
    ': keep-alive\n\n: keep-alive\n\nevent: complete\nid: 1\ndata: {}\n\n',
  )
  expect(clock.pending).toBe(0)
})

it('shows a slow reader the newest progress only, and everything else in order', async () => {
  const { stream } = open(60)
  for (let seq = 1; seq <= 5; seq++) stream.show(frame('progress', seq))
  stream.show(frame('event', 6))
  stream.show(frame('progress', 7))
  stream.end(frame('complete', 8))
  const text = await new Response(stream.body).text()
  expect([...text.matchAll(/^id: (\d+)$/gmu)].map(([, seq]) => Number(seq))).toEqual([1, 2, 6, 7, 8])
})

it('ends for a reader that lets more than the buffer pile up', async () => {
  const { stream } = open(100)
  for (let seq = 1; seq <= 20; seq++) stream.show(frame('event', seq, 'x'.repeat(30)))
  stream.end(frame('complete', 21))
  const text = await new Response(stream.body).text()
  expect(text).not.toContain('id: 20\n')
  expect(text).not.toContain('event: complete')
})

it('tells when its reader has gone, and holds no timer then', async () => {
  const { clock, stream, cancelled } = open()
  await stream.body.cancel()
  stream.show(frame('event', 1))
  stream.end(undefined)
  expect(cancelled()).toBe(1)
  expect(clock.pending).toBe(0)
})
