import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Socket } from '../../../src/base/sockets.ts'
import { toSocket } from '../../../src/platform/ws-sockets.ts'

/** A socket whose writes to the system are counted, and what its peer has read. */
async function counted(): Promise<{ socket: Socket; writes: () => number; read: string[]; close(): void }> {
  let writes = 0
  const read: string[] = []
  const http = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  const opened = new Promise<Socket>((resolve) => {
    http.on('upgrade', (request, stream: Duplex, head) => {
      sockets.handleUpgrade(request, stream, head, (ws) => {
        const write = stream._writev?.bind(stream)
        stream._writev = (chunks, done) => {
          writes++
          write?.(chunks, done)
        }
        resolve(toSocket(ws, stream))
      })
    })
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const peer = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`)
  peer.on('message', (data: Buffer) => read.push(data.toString()))
  const [socket] = await Promise.all([opened, once(peer, 'open')])
  const close = (): void => {
    peer.terminate()
    socket.terminate()
    http.close()
  }
  return { socket, writes: () => writes, read, close }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('frames that may wait leave with one write at the end of the turn', async () => {
  const { socket, writes, read, close } = await counted()
  const sending = ['1', '2', '3'].map((text) => socket.send(text, 'soon'))
  expect(writes()).toBe(0)
  await Promise.all(sending)
  expect(writes()).toBe(1)
  while (read.length < 3) await turn()
  expect(read).toEqual(['1', '2', '3'])
  close()
})

it('a frame that may not wait takes them along at once', async () => {
  const { socket, writes, close } = await counted()
  const sending = [socket.send('1', 'soon'), socket.send('2', 'soon'), socket.send('urgent')]
  expect(writes()).toBe(1)
  await Promise.all(sending)
  await turn()
  expect(writes()).toBe(1)
  close()
})
