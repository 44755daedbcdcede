import type { Clock } from '../../base/clock.ts'
import { errnoOf } from '../../base/files.ts'
import type { HttpListener, HttpServers, UpgradeDecision, UpgradeRequest } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject, JsonValue } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import { SELF_SIGNED } from './certificate.ts'
import { Connections } from './connections.ts'
import type { NewFile } from './file-server.ts'
import { FileServer } from './file-server.ts'
import type { AgentCredentials } from './handshake.ts'
import { refusalOf } from './handshake.ts'
import type { PhoneControl, PhoneLimits } from './phone.ts'
import { VirtualPhone } from './phone.ts'
import { keepLast, type PhoneTask } from './phone-task.ts'
import { PUSH_PATH, PushEndpoint } from './push-endpoint.ts'
import { renderPhone } from './render.ts'
import type { CancelShape, ClearShape, RequestIds } from './requests.ts'
import { cancelRequest, clearRequest, messageRequest, textPart, variablesPart, wrapped } from './requests.ts'
import type { Switches } from './switches.ts'
import { REAL_SERVICE } from './switches.ts'

/** What a simulated XiaoYi service needs. */
export interface XiaoyiSimulatorOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly servers: HttpServers
  readonly agent: AgentCredentials
  /** One or two (or more); port 0 picks a free one. */
  readonly endpoints: readonly { readonly host: string; readonly port: number; readonly tls?: boolean }[]
  readonly switches?: Partial<Switches>
  readonly phoneLimits?: Partial<PhoneLimits>
}

/** How the phone says it. */
export interface SayOptions {
  /** Which link carries it; default: the one opened last. */
  readonly via?: number
  readonly sessionId?: string
  /** Given ids instead of new ones, e.g. for the answer to a question of the agent. */
  readonly taskId?: string
  readonly parts?: readonly JsonValue[]
}

const WS_PATH = '/openclaw/v1/ws/link'
const MAX_HANDSHAKES = 10_000

/** Huawei's side of the protocol on this machine, with one phone. */
export class XiaoyiSimulator {
  readonly phone: VirtualPhone
  readonly switches: Switches
  readonly connections: Connections
  readonly files: FileServer
  readonly push: PushEndpoint
  /** The last handshakes and how each was answered. */
  readonly handshakes: { readonly endpoint: number; readonly status: number; readonly at: number }[] = []
  readonly #options: XiaoyiSimulatorOptions
  readonly #listeners: HttpListener[] = []
  /** Survives restarts of the app. */
  #sessionId: string
  /** New with every launch of the app. */
  #topSessionId: string
  #pushId: string
  #sequence = 0
  #heldRequest: (() => void) | undefined

  constructor(options: XiaoyiSimulatorOptions) {
    const { agent, clock, ids } = options
    this.#options = options
    this.switches = { ...REAL_SERVICE, ...options.switches }
    this.phone = new VirtualPhone(agent.agentId, clock, this.switches, options.phoneLimits)
    this.connections = new Connections({ agentId: agent.agentId, clock, switches: this.switches, phone: this.phone })
    this.files = new FileServer(clock, ids)
    this.push = new PushEndpoint(agent, this.switches, clock, ids)
    this.#sessionId = ids.uuid()
    this.#topSessionId = ids.uuid()
    this.#pushId = ids.hex(16)
  }

  /** All endpoints or none: one that cannot be opened closes the others. */
  async listen(): Promise<void> {
    try {
      for (const index of this.#options.endpoints.keys()) this.#listeners.push(await this.#listenOn(index))
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** What goes into `wsUrl1`, `wsUrl2`. */
  get urls(): readonly string[] {
    return this.#options.endpoints.map((_, index) => `${this.#origin(index, 'ws')}${WS_PATH}`)
  }

  get pushUrl(): string {
    return `${this.#origin(0, 'http')}${PUSH_PATH}`
  }

  get sessionId(): string {
    return this.#sessionId
  }

  get topSessionId(): string {
    return this.#topSessionId
  }

  /** The person types something. The task is `undelivered` when no agent is connected. */
  say(text: string, options: SayOptions = {}): PhoneTask {
    return this.sayParts(options.parts ?? [textPart(text)], options)
  }

  sayParts(parts: readonly JsonValue[], options: SayOptions = {}): PhoneTask {
    const sessionId = options.sessionId ?? this.#sessionId
    const ids = this.#messageIds(options.taskId)
    const base = { ...this.#requestIds(ids.id), sessionId, deviceId: 'device-1', ...ids }
    const context = variablesPart({ push_id: this.#pushId, device_type: 'phone' })
    const bare = messageRequest(base, [context, ...parts])
    const request = JSON.stringify(this.switches.wrapRequests ? wrapped('message', base, bare) : bare)
    const targets = this.#targets(options.via)
    const endpoint = targets[0]?.endpoint ?? -1
    const task = this.phone.addTask({
      taskId: String(ids.taskId),
      requestId: String(ids.id),
      sessionId,
      request,
      endpoint,
    })
    if (targets.length === 0) task.end('undelivered')
    this.#send(request, options.via)
    return task
  }

  /** The service delivers a message it has delivered before. */
  redeliver(task: PhoneTask, via?: number): void {
    const [target] = this.#targets(via)
    if (target !== undefined) task.deliverLate(target.endpoint)
    this.#send(task.request, via)
  }

  clear(shape: ClearShape = 'official', via?: number): PhoneControl {
    const ids = this.#requestIds(this.#nextId())
    const { frame, sessionId } = clearRequest(shape, ids)
    const control = this.#control('clear', ids.id, sessionId, frame, via)
    if (this.switches.newSessionAfterClear) this.#sessionId = this.#options.ids.uuid()
    return control
  }

  /** Without a task id in most shapes, as the real service does. */
  cancel(shape: CancelShape = 'official', task?: PhoneTask, via?: number): PhoneControl {
    const ids = this.#requestIds(this.#nextId())
    const taskId = task?.taskId ?? this.phone.running.at(-1)?.taskId
    const { frame, sessionId } = cancelRequest(shape, { ...ids, taskId })
    return this.#control('cancel', ids.id, sessionId, frame, via, task)
  }

  /** Anything at all, malformed frames included. */
  sendRaw(text: string, via?: number): void {
    for (const connection of this.#targets(via)) this.connections.send(connection, text)
  }

  /** The app is closed and opened again: the launch id changes, the conversation stays. */
  restartApp(): void {
    this.#topSessionId = this.#options.ids.uuid()
  }

  /** Another conversation, as after a clear. */
  newConversation(): string {
    this.#sessionId = this.#options.ids.uuid()
    this.#pushId = this.#options.ids.hex(16)
    return this.#sessionId
  }

  addFile(file: NewFile): string {
    return this.files.add(this.#origin(0, 'http'), file)
  }

  async close(): Promise<void> {
    this.phone.close()
    this.connections.stop()
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }

  #control(
    kind: 'clear' | 'cancel',
    id: string,
    sessionId: string,
    frame: JsonObject,
    via: number | undefined,
    task?: PhoneTask,
  ): PhoneControl {
    const mine = this.phone.running.filter((running) => running.sessionId === this.#sessionId)
    const tasks = task === undefined ? mine : [task]
    const control = this.phone.addControl({ kind, id, sessionId, tasks })
    this.#send(JSON.stringify(frame), via)
    return control
  }

  #send(text: string, via: number | undefined): void {
    const { requestDelayMs, swapRequests } = this.switches
    const send = (): void => this.sendRaw(text, via)
    if (swapRequests && this.#heldRequest === undefined) {
      this.#heldRequest = send
      return
    }
    if (requestDelayMs > 0) this.connections.after(requestDelayMs, send)
    else send()
    const held = this.#heldRequest
    this.#heldRequest = undefined
    held?.()
  }

  #targets(via: number | undefined) {
    const ready = this.connections.ready(via)
    return this.switches.duplicateOnAllLinks ? ready : ready.slice(-1)
  }

  #requestIds(id: string | number): RequestIds & { readonly id: string } {
    const { agentId } = this.#options.agent
    return { agentId, id: String(id), sessionId: this.#sessionId, topSessionId: this.#topSessionId }
  }

  #messageIds(taskId: string | undefined) {
    const id = taskId ?? this.#nextId()
    switch (this.switches.idPolicy) {
      case 'equal':
        return { id, taskId: id, messageId: id }
      case 'distinct':
        return { id: `req-${id}`, taskId: `task-${id}`, messageId: `msg-${id}` }
      case 'numeric':
        return { id: this.#sequence, taskId: this.#sequence + 1_000_000, messageId: this.#sequence }
    }
    throw new Error('unknown id policy')
  }

  /** Real ids look like this, ampersands included. */
  #nextId(): string {
    this.#sequence++
    return `${this.#options.ids.uuid()}&${this.#sequence}&8a39&0`
  }

  async #listenOn(index: number): Promise<HttpListener> {
    const { host = '127.0.0.1', port = 0, tls } = this.#options.endpoints[index] ?? {}
    try {
      return await this.#options.servers.listen({
        host,
        port,
        maxBodyBytes: 4 * 1024 * 1024,
        maxFrameBytes: 4 * 1024 * 1024,
        ...(tls === true ? { tls: SELF_SIGNED } : {}),
        handle: (request) => this.#handle(request),
        upgrade: (request) => this.#upgrade(index, request),
      })
    } catch (error) {
      if (errnoOf(error) !== 'EADDRINUSE') throw error
      throw new GatewayError('PORT_IN_USE', `port ${port} on ${host} is already in use; choose another`, { host, port })
    }
  }

  #upgrade(endpoint: number, request: UpgradeRequest): UpgradeDecision {
    const { agent, clock } = this.#options
    const refusal =
      request.url.pathname === WS_PATH
        ? refusalOf(request, agent, this.switches, clock.now())
        : { status: 404, reason: `the path is not ${WS_PATH}` }
    keepLast(this.handshakes, { endpoint, status: refusal?.status ?? 101, at: clock.now() }, MAX_HANDSHAKES)
    if (refusal !== undefined) {
      const { status, reason } = refusal
      this.phone.events.onAgent?.(`link ${endpoint}: an agent was refused with ${status}: ${reason}`)
      return { accept: false, status, body: 'refused' }
    }
    return { accept: true, opened: (socket) => this.connections.add(endpoint, socket) }
  }

  async #handle(request: Request): Promise<Response> {
    const page = new URL(request.url).pathname === '/' ? new Response(renderPhone(this.phone)) : undefined
    const response = page ?? (await this.files.handle(request)) ?? (await this.push.handle(request))
    return response ?? new Response('not found', { status: 404 })
  }

  #origin(index: number, scheme: 'ws' | 'http'): string {
    const endpoint = this.#options.endpoints[index]
    const port = this.#listeners[index]?.port ?? endpoint?.port ?? 0
    return `${scheme}${endpoint?.tls === true ? 's' : ''}://${endpoint?.host ?? '127.0.0.1'}:${port}`
  }
}

/** Listening when it resolves. */
export async function createXiaoyiSimulator(options: XiaoyiSimulatorOptions): Promise<XiaoyiSimulator> {
  const simulator = new XiaoyiSimulator(options)
  await simulator.listen()
  return simulator
}
