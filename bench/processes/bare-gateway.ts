import { open } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'

/**
 * The least a durable gateway costs on this machine: it takes a message, has it on the disk before it says so, asks the
 * model over HTTP, shows the text so far at most every 50 ms, and has the answer on the disk before it sends it. Commits
 * that wait together share a sync. No history, sessions, limits, tools, hooks; it trusts everybody.
 * `node bare-gateway.ts <journal> <base url of the model>`; it sends its port to its parent.
 */
const [journalPath = '', baseUrl = ''] = process.argv.slice(2)
const SHOW_EVERY_MS = 50
const journal = await open(journalPath, 'a')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
let waiting: { readonly line: string; readonly done: () => void }[] = []
let isWriting = false

function commit(record: object): Promise<void> {
  return new Promise((done) => {
    waiting.push({ line: `${JSON.stringify(record)}\n`, done })
    if (!isWriting) void writeAll()
  })
}

async function writeAll(): Promise<void> {
  isWriting = true
  while (waiting.length > 0) {
    const batch = waiting
    waiting = []
    await journal.write(batch.map(({ line }) => line).join(''))
    await journal.datasync()
    for (const { done } of batch) done()
  }
  isWriting = false
}

async function converse(socket: WebSocket, id: string, content: string): Promise<void> {
  const send = (frame: object): void => socket.send(JSON.stringify({ messageId: id, ...frame }))
  await commit({ id, content })
  send({ type: 'accepted' })
  let text = ''
  let shownAt = 0
  await ask(content, (delta) => {
    text += delta
    if (Date.now() - shownAt < SHOW_EVERY_MS) return
    shownAt = Date.now()
    send({ type: 'progress', text })
  })
  await commit({ id, answer: text })
  send({ type: 'complete', content: text })
}

function ask(content: string, heard: (delta: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const call = request(`${baseUrl}/chat/completions`, { method: 'POST', headers, agent }, (response) => {
      let rest = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        const events = (rest + piece).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) if (event !== 'data: [DONE]') heard(deltaOf(event.slice('data: '.length)))
      })
      response.on('end', resolve)
    })
    call.on('error', reject)
    call.end(JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }))
  })
}

function deltaOf(data: string): string {
  const chunk = JSON.parse(data) as { choices: [{ delta: { content?: string } }] }
  return chunk.choices[0].delta.content ?? ''
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
server.on('connection', (socket) => {
  socket.on('message', (data: Buffer) => {
    const { id, content } = JSON.parse(data.toString()) as { id: string; content: string }
    void converse(socket, id, content)
  })
})
process.on('disconnect', () => process.exit())
server.on('listening', () => process.send?.((server.address() as AddressInfo).port))
