import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A model behind an OpenAI-compatible API: every answer has so many deltas of 12 characters, 12 ms apart.
 * `node short-answers.ts <deltas>`; it sends its address to its parent first, then, whenever it is asked, how many
 * requests came and how many bytes they had.
 */
const deltas = Number(process.argv[2])
const EVERY_MS = 12
const event = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'm', ...fields })}\n\n`
const word = event({ choices: [{ index: 0, delta: { role: 'assistant', content: 'twelve chars' } }] })
const last = `${event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`

let requests = 0
let bytes = 0
const server = createServer((request, response) => {
  requests++
  request.on('data', (piece: Buffer) => void (bytes += piece.length))
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let said = 0
    const timer = setInterval(() => {
      if (said++ < deltas) return void response.write(word)
      clearInterval(timer)
      response.end(last)
    }, EVERY_MS)
    response.on('close', () => clearInterval(timer))
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
process.on('message', () => process.send?.({ requests, bytes }))
process.on('disconnect', () => process.exit())
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
