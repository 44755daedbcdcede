import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'

/**
 * A model behind an OpenAI-compatible API that says one word after the other, to everybody who asks, until they leave.
 * It stands for a service elsewhere but shares the processors with what is measured: it is as cheap as can be.
 * `node word-stream.ts <ms between words>`; it sends its address to its parent first, then how many words it has said,
 * whenever it is asked (`words`). `end` finishes all answers.
 */
const everyMs = Number(process.argv[2])
/** One timer serves everybody, each of them in a slot of its own, so that the words do not come in bursts. */
const slots: Set<ServerResponse>[] = Array.from({ length: everyMs }, () => new Set())
const word = asChunk({ choices: [{ index: 0, delta: { content: 'word ' } }] })
const first = asChunk({ choices: [{ index: 0, delta: { role: 'assistant' } }] })
const last = asChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
let opened = 0
let words = 0
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
setInterval(() => {
  // After a late tick the slots it left out are served as well: the rate stays what it is said to be.
  const due = Math.floor(performance.now())
  for (tick = Math.max(tick, due - everyMs); tick < due; tick++) {
    for (const response of slots[tick % everyMs] ?? []) {
      response.socket?.write(word)
      words++
    }
  }
}, 1)
process.on('message', (asked) => {
  if (asked === 'words') return void process.send?.(words)
  for (const response of slots.flatMap((slot) => [...slot])) {
    response.socket?.write(last)
    response.end()
  }
})
process.on('disconnect', () => process.exit())
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)

/** One event as a chunk of the transfer encoding. */
function asChunk(fields: object): Buffer {
  const event = `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'm', ...fields })}\n\n`
  return Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`)
}
