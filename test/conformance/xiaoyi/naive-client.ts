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
  /** One thing more that it does wrong. */
  readonly fault?: NaiveFault
}

/**
 * Mistakes in what the naive client otherwise gets right. `sloppy` writes frames carelessly: status text, flags left
 * out when false, one artifact id per task.
 */
export type NaiveFault =
  | 'sloppy'
  | 'one-link'
  | 'no-init'
  | 'no-heartbeat'
  | 'no-return'
  | 'first-link-only'
  | 'no-working'
  | 'end-without-text'
  | 'all-rounds-at-end'
  | 'no-empty-end'
  | 'knows-ids-only'
  | 'newest-only'
  | 'closes-on-rubbish'
  | 'answers-everything'

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
  readonly #seenIds = new Set<string>()
  #newest = ''
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
    for (const url of this.#has('one-link') ? options.urls.slice(0, 1) : options.urls) this.#connect(url)
  }

  #has(fault: NaiveFault): boolean {
    return this.#options.fault === fault
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
          if (!this.#has('no-return')) again()
        },
      })
      if (!this.#has('no-init')) void socket.send(JSON.stringify({ msgType: 'clawd_bot_init', agentId }))
      if (!this.#has('no-heartbeat')) this.#beat(socket)
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
      if (this.#has('closes-on-rubbish')) socket.terminate()
      return
    }
    if (!isRecord(frame)) return
    const params = isRecord(frame['params']) ? frame['params'] : undefined
    if (frame['method'] === undefined && this.#has('answers-everything'))
      this.#message(socket, frame, {}).catch(() => {})
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
    if (this.#has('knows-ids-only') && this.#seenIds.has(taskId)) return
    this.#seenIds.add(taskId)
    this.#newest = taskId
    const send = (result: object): void => {
      if (this.#has('newest-only') && taskId !== this.#newest) return
      this.#send(this.#linkFor(socket), String(params['sessionId']), taskId, { result })
    }
    const status = this.#has('sloppy') ? { ...PROCESSING, state: 'working' } : { state: 'working' }
    if (!this.#has('no-working')) send({ taskId, kind: 'status-update', final: false, status })
    const history = this.#history.get(session) ?? []
    this.#history.set(session, history)
    const earlier = [...history]
    history.push(text)
    let said = ''
    for await (const step of conformanceAgent(text, earlier, this.#options.clock, this.#stopping.signal)) {
      if (step.kind === 'text') said += step.delta
      const result = this.#artifact(taskId, step, said)
      if (result !== undefined) send(result)
    }
  }

  #linkFor(socket: Socket): Socket {
    const [first = socket] = this.#sockets
    return this.#has('first-link-only') ? first : socket
  }

  #artifact(taskId: string, step: AgentStep, said: string): object | undefined {
    if (step.kind === 'fail' || step.kind === 'thinking') return undefined
    const final = step.kind === 'end'
    const isSloppy = this.#has('sloppy')
    const text = step.kind === 'end' ? this.#endText(step.text, said) : step.delta
    if (final && text === '' && this.#has('no-empty-end')) return undefined
    return {
      taskId,
      kind: 'artifact-update',
      append: !final || this.#has('end-without-text'),
      // As a serialiser that omits false values would write it.
      ...(final || !isSloppy ? { lastChunk: final } : {}),
      final,
      artifact: { artifactId: `${taskId}-${isSloppy ? 0 : this.#artifacts++}`, parts: [{ kind: 'text', text }] },
    }
  }

  #endText(text: string, said: string): string {
    if (this.#has('end-without-text')) return ''
    return this.#has('all-rounds-at-end') ? said : text
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
