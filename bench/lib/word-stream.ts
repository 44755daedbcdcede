import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A model behind an OpenAI-compatible API that says one word after the other, to everybody who asks, until they leave. */
export interface WordStream {
  readonly baseUrl: string
  readonly listeners: () => number
  close(): Promise<void>
}

/**
 * As cheap as can be: it shares the processor with what is measured. The words are encoded once, one timer serves
 * everybody, each of them in a slot of its own, so that the words do not come in bursts.
 */
export async function openWordStream(everyMs: number): Promise<WordStream> {
  const slots: Set<ServerResponse>[] = Array.from({ length: everyMs }, () => new Set())
  const word = asChunk({ choices: [{ index: 0, delta: { content: 'word ' } }] })
  const first = asChunk({ choices: [{ index: 0, delta: { role: 'assistant' } }] })
  let opened = 0
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      const slot = slots[opened++ % everyMs]
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      response.socket?.setNoDelay(true)
      response.socket?.write(first)
      slot?.add(response)
      response.on('close', () => slot?.delete(response))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  let tick = 0
  const timer = setInterval(() => {
    // After a late tick the slots it left out are served as well: the rate stays what it is said to be.
    const due = Math.floor(performance.now())
    for (tick = Math.max(tick, due - everyMs); tick < due; tick++) {
      for (const response of slots[tick % everyMs] ?? []) response.socket?.write(word)
    }
  }, 1)
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    listeners: () => slots.reduce((sum, slot) => sum + slot.size, 0),
    async close() {
      clearInterval(timer)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** One event as a chunk of the transfer encoding. */
function asChunk(fields: object): Buffer {
  const event = `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'm', ...fields })}\n\n`
  return Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`)
}
