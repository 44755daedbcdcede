import { createHmac } from 'node:crypto'
import type { Clock } from '../../../src/base/clock.ts'
import { isRecord } from '../../../src/base/json.ts'
import type { Socket, SocketDialer } from '../../../src/base/sockets.ts'
import type { AgentStep } from './agent.ts'
import { conformanceAgent } from './agent.ts'

export interface NaiveOptions {
  readonly urls: readonly string[]
  readonly ak: string
  readonly sk: string
  readonly agentId: string
  readonly clock: Clock
  readonly dialer: SocketDialer
  /** Also write frames carelessly: status text, flags left out when false, one artifact id per task. */
  readonly sloppy?: boolean
}

const PROCESSING = { message: { role: 'agent', parts: [{ kind: 'text', text: 'processing…' }] } }

/**
 * What one writes in an afternoon from the protocol summary alone. Every shortcut in it was found in a published client:
 * it signs once, reconnects at once, looks for ids in `params` only, keeps no state per task, trusts every frame.
 */
export class NaiveClient {
  readonly #options: NaiveOptions
  readonly #headers: Record<string, string>
  readonly #sockets = new Set<Socket>()
  readonly #history = new Map<string, string[]>()
  readonly #stopping = new AbortController()
  #artifacts = 0

  constructor(options: NaiveOptions) {
    this.#options = options
    const timestamp = String(options.clock.now())
    this.#headers = {
      'x-access-key': options.ak,
      'x-sign': createHmac('sha256', options.sk).update(timestamp).digest('base64'),
      'x-ts': timestamp,
      'x-agent-id': options.agentId,
    }
    for (const url of options.urls) this.#connect(url)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'))
    for (const socket of this.#sockets) socket.terminate()
  }

  #connect(url: string): void {
    const { dialer, clock, agentId } = this.#options
    const { signal } = this.#stopping
    const again = (): void => {
      if (!signal.aborted) clock.after(1_000, () => signal.aborted || this.#connect(url))
    }
    const options = { headers: this.#headers, maxFrameBytes: 1e9, timeoutMs: 10_000 }
    dialer.dial(url, options, signal).then((socket) => {
      this.#sockets.add(socket)
      socket.listen({
        onText: (text) => this.#read(socket, text),
        onPong: () => {},
        onClose: () => {
          this.#sockets.delete(socket)
          again()
        },
      })
      void socket.send(JSON.stringify({ msgType: 'clawd_bot_init', agentId }))
      this.#beat(socket)
    }, again)
  }

  #beat(socket: Socket): void {
    this.#options.clock.after(20_000, () => {
      if (!socket.isOpen) return
      void socket.send(JSON.stringify({ msgType: 'heartbeat', agentId: this.#options.agentId }))
      this.#beat(socket)
    })
  }

  #read(socket: Socket, text: string): void {
    let frame: unknown
    try {
      frame = JSON.parse(text)
    } catch {
      return
    }
    if (!isRecord(frame)) return
    const params = isRecord(frame['params']) ? frame['params'] : undefined
    if (frame['method'] === 'message/stream' && params !== undefined) {
      this.#message(socket, frame, params).catch(() => {})
    }
    if (frame['method'] === 'clearContext' && params !== undefined) this.#clear(socket, frame, params)
    if (frame['method'] === 'tasks/cancel' && params !== undefined) this.#cancel(socket, frame, params)
  }

  async #message(socket: Socket, frame: Record<string, unknown>, params: Record<string, unknown>): Promise<void> {
    const message = isRecord(params['message']) ? params['message'] : {}
    const parts = Array.isArray(message['parts']) ? message['parts'].filter(isRecord) : []
    const text = parts.map((part) => (typeof part['text'] === 'string' ? part['text'] : '')).join('')
    const session = String(frame['sessionId'])
    const taskId = String(params['id'])
    const send = (result: object): void => this.#send(socket, String(params['sessionId']), taskId, { result })
    send({
      taskId,
      kind: 'status-update',
      final: false,
      status: this.#options.sloppy === true ? { ...PROCESSING, state: 'working' } : { state: 'working' },
    })
    const history = this.#history.get(session) ?? []
    this.#history.set(session, history)
    const earlier = [...history]
    history.push(text)
    for await (const step of conformanceAgent(text, earlier, this.#options.clock, this.#stopping.signal)) {
      const result = this.#artifact(taskId, step)
      if (result !== undefined) send(result)
    }
  }

  #artifact(taskId: string, step: AgentStep): object | undefined {
    if (step.kind === 'fail' || step.kind === 'thinking') return undefined
    const final = step.kind === 'end'
    const isSloppy = this.#options.sloppy === true
    const text = step.kind === 'end' ? step.text : step.delta
    return {
      taskId,
      kind: 'artifact-update',
      append: !final,
      // As a serialiser that omits false values would write it.
      ...(final || !isSloppy ? { lastChunk: final } : {}),
      final,
      artifact: { artifactId: `${taskId}-${isSloppy ? 0 : this.#artifacts++}`, parts: [{ kind: 'text', text }] },
    }
  }

  #clear(socket: Socket, frame: Record<string, unknown>, params: Record<string, unknown>): void {
    this.#history.delete(String(params['sessionId']))
    this.#send(socket, String(params['sessionId']), String(frame['id']), { result: { status: { state: 'cleared' } } })
  }

  #cancel(socket: Socket, frame: Record<string, unknown>, params: Record<string, unknown>): void {
    const id = String(params['id'])
    this.#send(socket, String(params['sessionId']), id, {
      id: frame['id'],
      result: { id, status: { state: 'canceled' } },
    })
  }

  #send(socket: Socket, sessionId: string, taskId: string, answer: object): void {
    const msgDetail = JSON.stringify({ jsonrpc: '2.0', id: taskId, ...answer })
    const { agentId } = this.#options
    socket.send(JSON.stringify({ msgType: 'agent_response', agentId, sessionId, taskId, msgDetail })).catch(() => {})
  }
}
