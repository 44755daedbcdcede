import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'

/**
 * The least a durable gateway costs on this machine for the same job as ours: the same frames with the same fields, the
 * same request (the whole conversation), the text so far at most every 50 ms and whole before the answer. A message is on
 * the disk before it is said to be accepted, its answer before it is sent; commits that wait together share a sync. It
 * keeps conversations in memory and trusts everybody: no limits, tools, hooks, other nodes, files that others can read.
 * `node bare-gateway.ts <journal> <base url of the model>`; it sends its port to its parent.
 */
const [journalPath = '', baseUrl = ''] = process.argv.slice(2)
const SHOW_EVERY_MS = 50
const journal = await open(journalPath, 'a')
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
let waiting: { readonly line: string; readonly done: () => void }[] = []
let isWriting = false

interface Said {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

const conversations = new Map<string, Said[]>()

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

interface Asked {
  readonly id: string
  readonly content: string
  readonly session: string
}

async function converse(socket: WebSocket, nextSeq: () => number, { id, content, session }: Asked): Promise<void> {
  const runId = `run_${randomBytes(10).toString('hex')}`
  const startTime = Date.now()
  const send = (frame: object): void =>
    socket.send(JSON.stringify({ ...frame, session, messageId: id, runId, seq: nextSeq() }))
  const event = (name: string, data: object): void => send({ type: 'event', event: name, data })
  await commit({ id, session, runId, content })
  send({ type: 'accepted' })
  const said = conversations.get(session) ?? []
  conversations.set(session, said)
  said.push({ role: 'user', content })
  event('turn_start', { model: 'local/m' })
  let text = ''
  let shown = ''
  let timer: NodeJS.Timeout | undefined
  const show = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (shown === text) return
    shown = text
    send({ type: 'progress', content: text })
    timer = setTimeout(show, SHOW_EVERY_MS)
  }
  await ask(said, (delta) => {
    text += delta
    if (timer === undefined) show()
  })
  said.push({ role: 'assistant', content: text })
  await commit({ session, runId, text, endTime: Date.now() })
  show()
  clearTimeout(timer)
  const tokens = { tokens_saved: 0, tokens_remaining: 0, tokens_before: 0, net_tokens_saved: 0, net_requests: 0 }
  const counts = { cleaned_messages: 0, remaining_messages: said.length, ...tokens }
  event('round_end', { round: 0, usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 } })
  event('step_cleanup_completed', {
    stepId: runId,
    ...counts,
    estimated: true,
    net_basis: 'estimated',
    reason: 'nothing to hide',
  })
  event('step_completed', { stepId: runId, rounds: 1, title: content, startTime, endTime: Date.now() })
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, usd: null }
  send({ type: 'complete', content: text, model: 'local/m', usage })
}

function ask(messages: readonly Said[], heard: (delta: string) => void): Promise<void> {
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
    call.end(JSON.stringify({ model: 'm', stream: true, messages }))
  })
}

function deltaOf(data: string): string {
  const chunk = JSON.parse(data) as { choices: [{ delta: { content?: string } }] }
  return chunk.choices[0].delta.content ?? ''
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
server.on('connection', (socket) => {
  let seq = 0
  socket.on('message', (data: Buffer) => {
    void converse(socket, () => ++seq, JSON.parse(data.toString()) as Asked)
  })
})
process.on('disconnect', () => process.exit())
server.on('listening', () => process.send?.((server.address() as AddressInfo).port))
