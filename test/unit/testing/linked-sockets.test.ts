import { expect, test } from 'vitest'
import type { Socket } from '../../../src/base/sockets.ts'
import { SocketRefused } from '../../../src/base/sockets.ts'
import { linkedSockets } from '../../../src/testing/linked-sockets.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../../src/testing/memory-network.ts'

function record(socket: Socket): string[] {
  const seen: string[] = []
  socket.listen({
    onText: (text) => seen.push(text),
    onPong: () => seen.push('pong'),
    onClose: (code, reason) => seen.push(`close ${code} ${reason}`.trim()),
  })
  return seen
}

test('frames arrive in order, also those sent before the peer listens', async () => {
  const [left, right] = linkedSockets()
  await left.send('one')
  await left.send('two')
  const seen = record(right)
  await left.send('three')
  await settle()
  expect(seen).toEqual(['one', 'two', 'three'])
})

test('a polite close reaches both ends with its code, once', async () => {
  const [left, right] = linkedSockets()
  const [atLeft, atRight] = [record(left), record(right)]
  left.close(1000, 'done')
  await settle()
  expect(atRight).toEqual(['close 1000 done'])
  expect(atLeft).toEqual(['close 1000 done'])
  await expect(left.send('late')).rejects.toThrow('closed')
})

test('a half-open connection swallows frames and pings without telling anybody', async () => {
  const clock = new ManualClock()
  const [left, right] = linkedSockets({ clock })
  const [atLeft, atRight] = [record(left), record(right)]
  left.goHalfOpen()
  await left.send('lost')
  left.ping()
  await clock.advance(3_600_000)
  expect([...atLeft, ...atRight]).toEqual([])
  left.terminate()
  await settle()
  expect(atLeft).toEqual(['close 1006'])
  expect(atRight).toEqual([])
})

test('a paused reader lets the sender wait once the kernel is full', async () => {
  const [left, right] = linkedSockets({ kernelBytes: 10 })
  const seen = record(right)
  right.pause()
  await left.send('12345678')
  let sent = false
  const second = left.send('90').then(() => left.send('more than fits'))
  void second.then(() => (sent = true))
  await settle()
  expect(sent).toBe(false)
  expect(left.bufferedBytes).toBeGreaterThan(10)
  right.resume()
  await second
  await settle()
  expect(seen).toHaveLength(3)
})

test('delayed frames keep their order and wait for the clock', async () => {
  const clock = new ManualClock()
  const [left, right] = linkedSockets({ clock })
  const seen = record(right)
  left.delayMs = 100
  await left.send('a')
  await left.send('b')
  await clock.advance(99)
  expect(seen).toEqual([])
  await clock.advance(1)
  expect(seen).toEqual(['a', 'b'])
})

test('the memory network refuses as real servers do', async () => {
  const network = new MemoryNetwork(new ManualClock())
  const options = { maxFrameBytes: 1000, timeoutMs: 1000 }
  const never = new AbortController().signal
  await expect(network.dial('ws://h:1/', options, never)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await network.listen({
    host: 'h',
    port: 1,
    maxBodyBytes: 1000,
    maxFrameBytes: 1000,
    handle: async () => new Response('hello'),
    upgrade: () => ({ accept: false, status: 401, body: 'no' }),
  })
  await expect(network.dial('ws://h:1/', options, never)).rejects.toBeInstanceOf(SocketRefused)
  expect(network.attempts).toHaveLength(2)
})
