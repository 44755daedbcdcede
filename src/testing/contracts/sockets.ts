import assert from 'node:assert/strict'
import type { Socket } from '../../base/sockets.ts'
import type { ContractRunner } from './runner.ts'

/** Two ends of one connection, for the suite. */
export interface SocketPair {
  readonly left: Socket
  readonly right: Socket
  /** Ends what the pair needed besides the two sockets. */
  close(): Promise<void>
}

/** What every `Socket` promises, whichever wire is below. `open` gives two connected ends without a listener. */
export function describeSockets(runner: ContractRunner, name: string, open: () => Promise<SocketPair>): void {
  const it = (sentence: string, body: (pair: SocketPair) => Promise<void>): void =>
    runner.it(sentence, async () => {
      const pair = await open()
      try {
        await body(pair)
      } finally {
        pair.left.terminate()
        pair.right.terminate()
        await pair.close()
      }
    })

  runner.describe(name, () => {
    it('delivers texts unchanged and in order', async ({ left, right }) => {
      const texts = ['first', '', '中文 and 👩‍👩‍👧', 'x'.repeat(100_000), '{"a":1}']
      record(left)
      const received = record(right)
      for (const text of texts) await left.send(text)
      await received.until(() => received.texts.length === texts.length)
      assert.deepEqual(received.texts, texts)
    })

    it('keeps the order of what may wait a moment and what may not', async ({ left, right }) => {
      record(left)
      const received = record(right)
      const texts = Array.from({ length: 40 }, (_, index) => `frame ${index}`)
      await Promise.all(texts.map((text, index) => left.send(text, index % 10 === 9 ? 'now' : 'soon')))
      await left.send('alone', 'soon')
      await received.until(() => received.texts.length === texts.length + 1)
      assert.deepEqual(received.texts, [...texts, 'alone'])
    })

    it('sends what waits before it closes', async ({ left, right }) => {
      record(left)
      const closed = record(right)
      void left.send('last words', 'soon')
      left.close(1000, '')
      await closed.until(() => closed.closes.length > 0)
      assert.deepEqual(closed.texts, ['last words'])
    })

    it('keeps what arrives before anybody listens', async ({ left, right }) => {
      record(left)
      await left.send('early')
      await turns()
      const received = record(right)
      await received.until(() => received.texts.length === 1)
      assert.deepEqual(received.texts, ['early'])
    })

    it('delivers nothing while paused and everything after resume', async ({ left, right }) => {
      record(left)
      const received = record(right, () => right.pause())
      for (const text of ['1', '2', '3']) await left.send(text)
      await received.until(() => received.texts.length === 1)
      await turns()
      assert.deepEqual(received.texts, ['1'])
      received.onText = () => undefined
      right.resume()
      await received.until(() => received.texts.length === 3)
      assert.deepEqual(received.texts, ['1', '2', '3'])
    })

    it('answers a ping with a pong', async ({ left, right }) => {
      const pinging = record(left)
      record(right)
      left.ping()
      await pinging.until(() => pinging.pongs === 1)
    })

    it('tells both ends the code and reason of a polite close, once', async ({ left, right }) => {
      const closing = record(left)
      const closed = record(right)
      left.close(4001, 'enough for today')
      await closing.until(() => closing.closes.length > 0)
      await closed.until(() => closed.closes.length > 0)
      left.terminate()
      right.close(1000, 'late')
      await turns()
      assert.deepEqual(closed.closes, [[4001, 'enough for today']])
      assert.deepEqual(closing.closes, [[4001, 'enough for today']])
      assert.equal(left.isOpen, false)
      assert.equal(right.isOpen, false)
    })

    it('delivers what was sent before a close', async ({ left, right }) => {
      record(left)
      const received = record(right)
      const sends = ['a', 'b'].map((text) => left.send(text))
      left.close(1000, 'done')
      await Promise.all(sends)
      await received.until(() => received.closes.length > 0)
      assert.deepEqual(received.texts, ['a', 'b'])
    })

    it('delivers nothing more to the end that closed', async ({ left, right }) => {
      const closing = record(left)
      record(right)
      const sent = right.send('crossing the close on its way')
      left.close(1000, 'done')
      await closing.until(() => closing.closes.length > 0)
      await sent.catch(() => undefined)
      assert.deepEqual(closing.texts, [])
    })

    it('can be closed while paused', async ({ left, right }) => {
      const closing = record(left)
      record(right)
      left.pause()
      left.close(1001, 'bye')
      await closing.until(() => closing.closes.length > 0)
      assert.deepEqual(closing.closes, [[1001, 'bye']])
    })

    it('reports 1006 to the peer of a terminated end', async ({ left, right }) => {
      const ended = record(left)
      const peer = record(right)
      left.terminate()
      await ended.until(() => ended.closes.length > 0)
      await peer.until(() => peer.closes.length > 0)
      assert.equal(ended.closes[0]?.[0], 1006)
      assert.deepEqual(peer.closes, [[1006, '']])
    })

    it('rejects a send on a socket that is gone', async ({ left, right }) => {
      const ended = record(left)
      record(right)
      left.terminate()
      await ended.until(() => ended.closes.length > 0)
      await assert.rejects(left.send('too late'))
      left.ping()
    })

    it('counts what a peer that does not read leaves behind, and drains it', async ({ left, right }) => {
      record(left)
      const received = record(right)
      right.pause()
      const sends: Promise<void>[] = []
      for (let sent = 0; sent < 1_024 && left.bufferedBytes < 1_000_000; sent++) {
        sends.push(left.send('y'.repeat(65_536)))
        await turns()
      }
      assert.ok(left.bufferedBytes > 0)
      right.resume()
      await Promise.all(sends)
      await received.until(() => received.texts.length === sends.length)
      assert.equal(left.bufferedBytes, 0)
    })
  })
}

class Recording {
  readonly texts: string[] = []
  readonly closes: [code: number, reason: string][] = []
  pongs = 0
  onText: () => void
  #changed: () => void = () => undefined

  constructor(onText: () => void) {
    this.onText = onText
  }

  changed(): void {
    this.#changed()
  }

  /** Waits for the socket's own events, never for time. */
  async until(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => (this.#changed = resolve))
  }
}

function record(socket: Socket, onText: () => void = () => undefined): Recording {
  const recording = new Recording(onText)
  socket.listen({
    onText(text) {
      recording.texts.push(text)
      recording.onText()
      recording.changed()
    },
    onPong() {
      recording.pongs++
      recording.changed()
    },
    onClose(code, reason) {
      recording.closes.push([code, reason])
      recording.changed()
    },
  })
  return recording
}

/** Lets whatever could go wrong happen: a few rounds of the event loop, as a real wire needs them. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
