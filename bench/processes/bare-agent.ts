import { createHmac, randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { request, type ClientRequest } from 'node:http'
import { WebSocket } from 'ws'
import { AGENT } from '../lib/xiaoyi-agent.ts'

/**
 * What a clear costs at least on this machine: the same links, frames, model and disk, and nothing of a gateway. It
 * keeps no history, no queue and no transcripts, trusts every frame and survives nothing. One write and one sync before
 * a message is acknowledged and before a clear is answered, as everybody must who says that it is on the disk.
 * `node bare-agent.ts <file> <base url of the model> <url of a link>…`
 */
const [journalPath = '', baseUrl = '', ...urls] = process.argv.slice(2)
const PIECE_MS = 100

interface Frame {
  readonly id: string
  readonly sessionId: string
  readonly method: string
  readonly params?: { readonly id: string; readonly sessionId?: string }
}

interface Address {
  readonly id: string
  readonly sessionId: string
  readonly taskId: string
}

interface Turn extends Address {
  text: string
  shown: number
  isOver: boolean
  timer: NodeJS.Timeout | undefined
  call: ClientRequest | undefined
}

const journal = await open(journalPath, 'a')
const running = new Map<string, Turn>()
for (const url of urls) connect(url)
process.on('disconnect', () => process.exit())

function connect(url: string): void {
  const ts = String(Date.now())
  const sign = createHmac('sha256', AGENT.sk).update(ts).digest('base64')
  const headers = { 'x-access-key': AGENT.ak, 'x-sign': sign, 'x-ts': ts, 'x-agent-id': AGENT.agentId }
  const socket = new WebSocket(url, { headers, perMessageDeflate: false })
  socket.on('open', () => socket.send(JSON.stringify({ msgType: 'clawd_bot_init', agentId: AGENT.agentId })))
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame
    if (frame.method === 'message/stream') void answer(socket, frame)
    else if (frame.method === 'clearContext') void clear(socket, frame)
  })
}

async function answer(socket: WebSocket, { id, sessionId, params }: Frame): Promise<void> {
  await keep({ id, sessionId, params })
  const turn: Turn = {
    id,
    sessionId: params?.sessionId ?? sessionId,
    taskId: params?.id ?? id,
    text: '',
    shown: 0,
    isOver: false,
    timer: undefined,
    call: undefined,
  }
  running.set(turn.sessionId, turn)
  send(socket, turn, status(turn, 'working', false))
  const headers = { 'content-type': 'application/json' }
  const call = request(`${baseUrl}/chat/completions`, { method: 'POST', headers })
  turn.call = call
  call.on('error', () => undefined)
  call.on('response', (response) => {
    response.setEncoding('utf8')
    response.on('error', () => undefined)
    response.on('data', (text: string) => {
      for (const line of text.split('\n')) if (line.startsWith('data: ')) turn.text += wordOf(line.slice(6))
      if (turn.timer === undefined) show(socket, turn)
    })
  })
  call.end(JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'stream' }] }))
}

function wordOf(data: string): string {
  const chunk = JSON.parse(data) as { choices: [{ delta: { content?: string } }] }
  return chunk.choices[0].delta.content ?? ''
}

function show(socket: WebSocket, turn: Turn): void {
  turn.timer = undefined
  if (turn.isOver || turn.text.length === turn.shown) return
  const artifact = { artifactId: randomUUID(), parts: [{ kind: 'text', text: turn.text.slice(turn.shown) }] }
  const flags = { append: turn.shown > 0, lastChunk: false, final: false }
  send(socket, turn, { result: { taskId: turn.taskId, kind: 'artifact-update', ...flags, artifact } })
  turn.shown = turn.text.length
  turn.timer = setTimeout(() => show(socket, turn), PIECE_MS)
}

async function clear(socket: WebSocket, { id, sessionId }: Frame): Promise<void> {
  const turn = running.get(sessionId)
  running.delete(sessionId)
  if (turn !== undefined) turn.isOver = true
  await keep({ id, cleared: sessionId })
  if (turn !== undefined) send(socket, turn, status(turn, 'canceled', true))
  send(socket, { id, sessionId, taskId: id }, { result: { status: { state: 'cleared' } } })
  turn?.call?.destroy()
}

async function keep(record: object): Promise<void> {
  await journal.write(`${JSON.stringify(record)}\n`)
  await journal.datasync()
}

function status({ taskId }: Address, state: string, final: boolean): object {
  return { result: { taskId, kind: 'status-update', final, status: { state } } }
}

function send(socket: WebSocket, { id, sessionId, taskId }: Address, detail: object): void {
  const msgDetail = JSON.stringify({ jsonrpc: '2.0', id, ...detail })
  socket.send(JSON.stringify({ msgType: 'agent_response', agentId: AGENT.agentId, sessionId, taskId, msgDetail }))
}
