import { Answer, ClewError } from './answer.ts'
import { parseFrame, type ServerFrame } from './frames.ts'

/** The part of the browser's WebSocket that is used; `ws` has it too. */
export interface WebSocketLike {
  readonly readyState: number
  send(text: string): void
  close(code?: number, reason?: string): void
  onopen: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
}

/** What makes a socket: the browser's `WebSocket`, or that of `ws`. */
export type WebSocketConstructor = new (url: string) => WebSocketLike

/** Where the gateway is and who asks. */
export interface ClientOptions {
  /** `ws://127.0.0.1:8080/ws` */
  readonly url: string
  /** Who you are, stable over reconnects and restarts: unanswered replies find you by it. One is made up when absent. */
  readonly uid?: string
  readonly token?: string
  /** Node below 22 has none of its own: pass `WebSocket` from the package `ws`. */
  readonly WebSocket?: WebSocketConstructor
  readonly reconnect?: { readonly firstMs?: number; readonly maxMs?: number }
  /** A message that is not even acknowledged for this long was sent into a dead connection: a new one is made. 15 s. */
  readonly silenceMs?: number
  /** Messages and requests waiting for an answer beyond this are refused at once. */
  readonly maxPending?: number
  /** Frames the gateway would refuse are refused here, with the same code. Its default is 1 MiB. */
  readonly maxFrameBytes?: number
  readonly onStateChange?: (state: ClientState) => void
}

/** Where the connection stands; `waiting` is the pause before the next try. */
export type ClientState = 'connecting' | 'open' | 'waiting' | 'closed'

/** Where a message belongs and how its answer comes. */
export interface AskOptions {
  readonly id?: string
  readonly session?: string
  readonly peerKind?: 'dm' | 'group' | 'channel'
  readonly peerId?: string | number
  readonly topicId?: string | number
  readonly threadId?: string | number
  readonly senderId?: string | number
  /** Progress and events, not only the end. On unless switched off. */
  readonly stream?: boolean
  readonly auto_cleanup_enabled?: boolean
  /** Files that go with it: uploaded ones by id (`POST /api/files`), or small ones as base64. */
  readonly files?: readonly FileToSend[]
}

/** A file of a message. */
export type FileToSend =
  | { readonly id: string }
  | { readonly name: string; readonly mimeType?: string; readonly data: string }

/** A row of the session list. */
export interface SessionInfo {
  readonly key: string
  readonly sessionId: string
  readonly updatedAt: number
  readonly [field: string]: unknown
}

interface PendingRequest {
  readonly text: string
  /** Asking twice changes nothing: it is sent again after a loss. Others may have taken effect without a confirmation. */
  readonly repeatable: boolean
  sent: boolean
  resolve(data: Readonly<Record<string, unknown>>): void
  reject(error: Error): void
}

const OPEN = 1

/**
 * A connection to a gateway that survives its own end: it reconnects, asks for what it missed, and sends again what was
 * not confirmed. Sending a message twice is safe, because the gateway knows it by its id.
 */
export class ClewClient {
  readonly uid: string
  readonly #options: ClientOptions
  readonly #Socket: WebSocketConstructor
  readonly #answers = new Map<string, { readonly answer: Answer; readonly text: string }>()
  readonly #requests = new Map<string, PendingRequest>()
  #socket: WebSocketLike | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Runs while something was sent and nothing was heard since. */
  #deaf: ReturnType<typeof setTimeout> | undefined
  #attempts = 0
  #lastSeq = 0
  #nextRequest = 1
  #state: ClientState = 'connecting'

  constructor(options: ClientOptions) {
    const Socket = options.WebSocket ?? (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket
    if (Socket === undefined)
      throw new Error('this runtime has no WebSocket: pass one, for example from the package "ws"')
    this.#Socket = Socket
    this.#options = options
    this.uid = options.uid ?? globalThis.crypto.randomUUID()
    this.#connect()
  }

  get state(): ClientState {
    return this.#state
  }

  /** Sends a message. While the connection is down it waits and is sent once there is one. */
  ask(content: string, options: AskOptions = {}): Answer {
    const { stream = true, id = globalThis.crypto.randomUUID(), ...route } = options
    const answer = new Answer(id)
    if (this.#state === 'closed') answer.fail(new ClewError('CLOSED', 'the client is closed'))
    else if (this.#isFull()) answer.fail(new ClewError('QUEUE_FULL', 'too many messages are waiting for an answer'))
    else if (this.#answers.has(id))
      answer.fail(new ClewError('FIELD_INVALID', 'a message with this id is still waiting for its answer'))
    else this.#post(answer, JSON.stringify({ id, content, stream, ack: true, ...route }))
    return answer
  }

  list(query: { readonly limit?: number; readonly cursor?: string; readonly prefix?: string } = {}): Promise<{
    readonly sessions: readonly SessionInfo[]
    readonly count: number
    readonly nextCursor?: string
  }> {
    return this.#request('session.list', query) as Promise<never>
  }

  get(key: string): Promise<SessionInfo> {
    return this.#request('session.get', { key }) as Promise<never>
  }

  reset(key: string): Promise<{ readonly success: true; readonly key: string }> {
    return this.#request('session.reset', { key }) as Promise<never>
  }

  delete(key: string): Promise<{ readonly success: true; readonly key: string }> {
    return this.#request('session.delete', { key }) as Promise<never>
  }

  cancel(key: string): Promise<{ readonly success: true; readonly key: string; readonly cancelled: number }> {
    return this.#request('session.cancel', { key }) as Promise<never>
  }

  /** A new connection in place of one that may be dead without having been closed, as after a laptop's sleep. */
  reconnect(): void {
    if (this.#state === 'closed') return
    const old = this.#socket
    this.#socket = undefined
    old?.close(1000, 'a new connection is made')
    clearTimeout(this.#timer)
    this.#hear()
    this.#failUncertain()
    this.#connect()
  }

  /** Ends the connection; whatever still waits fails. */
  close(): void {
    if (this.#state === 'closed') return
    this.#setState('closed')
    clearTimeout(this.#timer)
    this.#hear()
    this.#socket?.close(1000, 'bye')
    const error = new ClewError('CLOSED', 'the client was closed before the answer came')
    for (const { answer } of this.#answers.values()) answer.fail(error)
    for (const request of this.#requests.values()) request.reject(error)
    this.#answers.clear()
    this.#requests.clear()
  }

  #post(answer: Answer, text: string): void {
    const limit = this.#options.maxFrameBytes ?? 1024 * 1024
    if (new TextEncoder().encode(text).length > limit) {
      answer.fail(new ClewError('FRAME_TOO_LARGE', `the message has more than ${limit} bytes`))
      return
    }
    this.#answers.set(answer.id, { answer, text })
    if (this.#sendNow(text)) this.#listen()
  }

  #request(type: string, fields: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    if (this.#state === 'closed') return Promise.reject(new ClewError('CLOSED', 'the client is closed'))
    if (this.#isFull())
      return Promise.reject(new ClewError('QUEUE_FULL', 'too many requests are waiting for an answer'))
    const requestId = `${this.uid}-${this.#nextRequest++}`
    const text = JSON.stringify({ type, requestId, ...fields })
    return new Promise((resolve, reject) => {
      const repeatable = type === 'session.get' || type === 'session.list'
      const sent = this.#sendNow(text)
      this.#requests.set(requestId, { text, repeatable, sent, resolve, reject })
      if (sent) this.#listen()
    })
  }

  /** Something was sent that is answered at once: silence means that nothing arrives. */
  #listen(): void {
    this.#deaf ??= setTimeout(() => this.reconnect(), this.#options.silenceMs ?? 15_000)
  }

  #hear(): void {
    clearTimeout(this.#deaf)
    this.#deaf = undefined
  }

  #isFull(): boolean {
    return this.#answers.size + this.#requests.size >= (this.#options.maxPending ?? 1_000)
  }

  #connect(): void {
    this.#setState('connecting')
    const socket = new this.#Socket(this.#address())
    this.#socket = socket
    socket.onopen = () => {
      if (this.#socket === socket && this.#state !== 'closed') this.#onOpen()
    }
    socket.onmessage = ({ data }: { readonly data: unknown }) => {
      if (typeof data === 'string' && this.#socket === socket) this.#onFrame(parseFrame(data))
    }
    // The close event that follows carries the news.
    socket.onerror = () => undefined
    socket.onclose = () => {
      if (this.#socket === socket) this.#onClose()
    }
  }

  #address(): string {
    const url = new URL(this.#options.url)
    url.searchParams.set('uid', this.uid)
    if (this.#options.token !== undefined) url.searchParams.set('token', this.#options.token)
    if (this.#lastSeq > 0) url.searchParams.set('resume', String(this.#lastSeq))
    return url.href
  }

  #onOpen(): void {
    this.#setState('open')
    // Says that we confirm: from here on the gateway keeps a reply until we have it.
    this.#sendNow(JSON.stringify({ type: 'ack', seq: this.#lastSeq }))
    for (const { text } of this.#answers.values()) this.#sendNow(text)
    for (const request of this.#requests.values()) request.sent = this.#sendNow(request.text)
    if (this.#answers.size + this.#requests.size > 0) this.#listen()
  }

  #onClose(): void {
    this.#socket = undefined
    this.#hear()
    if (this.#state === 'closed') return
    this.#failUncertain()
    this.#setState('waiting')
    const { firstMs = 500, maxMs = 30_000 } = this.#options.reconnect ?? {}
    const nominal = Math.min(maxMs, firstMs * 2 ** Math.min(this.#attempts++, 20))
    this.#timer = setTimeout(() => this.#connect(), nominal * (0.8 + 0.4 * Math.random()))
  }

  /** A reset that was sent may have happened: sending it again could wipe what came after it. */
  #failUncertain(): void {
    for (const [id, { repeatable, sent, reject }] of [...this.#requests]) {
      if (repeatable || !sent) continue
      this.#requests.delete(id)
      reject(new ClewError('CONNECTION_LOST', 'the connection ended before the answer came; it may have taken effect'))
    }
  }

  #onFrame(frame: ServerFrame | undefined): void {
    if (frame === undefined) return
    this.#hear()
    // A gateway that accepts and hangs up at once is not a connection: only what it says ends the backing off.
    this.#attempts = 0
    if (frame.requestId !== undefined) return this.#onControlReply(frame)
    const id = frame.messageId === undefined ? this.#tooLargeOf(frame) : String(frame.messageId)
    const waiting = id === undefined ? undefined : this.#answers.get(id)
    const ended = waiting?.answer.take(frame) ?? false
    if (id !== undefined && ended) this.#answers.delete(id)
    // Confirm terminal frames, also those without a waiting caller: the gateway need not keep them.
    if (frame.seq !== undefined && frame.runId !== undefined && (frame.type === 'complete' || frame.type === 'error')) {
      this.#lastSeq = Math.max(this.#lastSeq, frame.seq)
      this.#sendNow(JSON.stringify({ type: 'ack', seq: frame.seq }))
    }
  }

  /** The gateway does not read a frame that is too large, so it cannot name it: it is the largest we have. */
  #tooLargeOf({ code }: ServerFrame): string | undefined {
    if (code !== 'FRAME_TOO_LARGE') return undefined
    return [...this.#answers].sort(([, a], [, b]) => b.text.length - a.text.length)[0]?.[0]
  }

  #onControlReply(frame: ServerFrame): void {
    const request = this.#requests.get(frame.requestId ?? '')
    if (request === undefined) return
    this.#requests.delete(frame.requestId ?? '')
    if (frame.type === 'error') return request.reject(new ClewError(frame.code ?? 'UNKNOWN', frame.error ?? ''))
    const data = frame.data ?? {}
    if (data['success'] === false) request.reject(new ClewError(String(data['code']), String(data['error'])))
    else request.resolve(data)
  }

  #sendNow(text: string): boolean {
    if (this.#socket?.readyState !== OPEN) return false
    this.#socket.send(text)
    return true
  }

  #setState(state: ClientState): void {
    if (this.#state === state) return
    this.#state = state
    this.#options.onStateChange?.(state)
  }
}
