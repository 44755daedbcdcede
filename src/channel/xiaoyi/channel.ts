import type { Clock } from '../../base/clock.ts'
import { loopWork } from '../../base/loop-work.ts'
import type { Files } from '../../base/files.ts'
import type { HttpClient } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { SocketDialer } from '../../base/sockets.ts'
import { assertNever } from '../../base/assert-never.ts'
import type { SessionEvent } from '../../core/event.ts'
import type { AcceptedMessage, DeliveryFate, InboundMessage, Reply, RouteFields } from '../../core/inbound.ts'
import { GatewayError, toGatewayError } from '../../core/errors.ts'
import type { Channel, Intake, LinkHistoryRow } from '../channel.ts'
import { LinkHistory } from '../link-history.ts'
import { adoptStateFile } from './adopt-state.ts'
import type { Arrival } from './arrivals.ts'
import { Arrivals } from './arrivals.ts'
import type { MessageRequest, XiaoyiRequest } from './codec.ts'
import { decodeRequest, INVALID_PARAMS, pushIdOf } from './codec.ts'
import { Controls } from './controls.ts'
import { phoneText, reasonFor, toWireError } from './errors.ts'
import { createMediaFetch } from './fetch-media.ts'
import type { ReplyAddress, WireError } from './frames.ts'
import { encodeArtifact, encodeError, encodeStatus } from './frames.ts'
import { Holding } from './holding.ts'
import type { Link } from './link.ts'
import { LateAnswers } from './late-answers.ts'
import { Links } from './links.ts'
import type { Content, FetchMedia } from './media.ts'
import { dataOf, readContent } from './media.ts'
import { Pins } from './pins.ts'
import type { PushMessage } from './push.ts'
import { phoneRouteOf, PhoneSessions } from './phone-sessions.ts'
import type { XiaoyiSettings } from './settings.ts'
import type { XiaoyiState } from './state.ts'
import type { Task } from './task.ts'
import { Tasks, toReplyTo } from './tasks.ts'

export interface XiaoyiChannelDeps {
  readonly settings: XiaoyiSettings
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly files: Files
  /** `<home>`: files of messages go below `media/`. */
  readonly home: string
  /** Attached to its journal. */
  readonly state: XiaoyiState
  readonly dialer: SocketDialer
  readonly http: HttpClient
  /** The guarded fetch of `http` unless given. */
  readonly fetchMedia?: FetchMedia
  /** The gateway's one key function: what a control command calls the conversation of these fields. */
  keyFor(route: RouteFields): string
  /** Called after a context was really cleared. Must not throw. */
  readonly onClear?: (event: Cleared) => Promise<void>
  /** Called with data parts, beside a text or alone. Must not throw. */
  readonly onData?: (event: ReceivedData) => Promise<void>
  /** Called at every change of a link. Must not throw. */
  readonly onLink?: (row: LinkHistoryRow) => void
}

export interface Cleared {
  /** The conversation's key in the gateway. */
  readonly key: string
  readonly sessionId: string
  readonly id: string
}

export interface ReceivedData {
  readonly key: string
  readonly id: string
  readonly data: readonly JsonObject[]
}

export const XIAOYI = 'xiaoyi'
const MALFORMED_LOG_EVERY = 1_000

/** Huawei XiaoYi phones, over the service's WebSocket dialect of A2A. */
export class XiaoyiChannel implements Channel {
  readonly name = XIAOYI
  readonly #deps: XiaoyiChannelDeps
  readonly #settings: XiaoyiSettings
  readonly #pins: Pins
  readonly #links: Links
  readonly #history: LinkHistory
  readonly #tasks: Tasks
  readonly #arrivals: Arrivals
  readonly #controls: Controls
  readonly #phoneSessions: PhoneSessions
  readonly #late: LateAnswers
  readonly #holding: Holding
  readonly #closing = new AbortController()
  #intake: Intake | undefined
  #draining = false
  #malformed = 0
  #foreign = 0
  readonly #telling = new Set<Promise<void>>()
  #peerError: string | undefined

  static async open(deps: XiaoyiChannelDeps): Promise<XiaoyiChannel> {
    await adoptStateFile(`${deps.home}/xiaoyi.json`, deps.state, deps)
    return new XiaoyiChannel(deps)
  }

  private constructor(deps: XiaoyiChannelDeps) {
    const { settings, clock, log, ids, state } = deps
    this.#deps = deps
    this.#settings = settings
    this.#pins = new Pins({ state, log, clock })
    this.#late = new LateAnswers(deps)
    this.#holding = new Holding({
      clock,
      hold: () => this.#startedIntake().hold(XIAOYI, settings.agentId),
      connect: () => this.#connect(),
      disconnect: () => this.#disconnect(),
    })
    this.#phoneSessions = new PhoneSessions({
      state,
      maxRemembered: settings.limits.maxRemembered,
      keyFor: (route) => deps.keyFor(route),
      onAliasSaved: (saving) => this.#watchSaving(saving),
    })
    this.#history = new LinkHistory(clock)
    this.#links = new Links(
      { ...deps, checkFingerprint: (link, seen, validity) => this.#pins.check(link.url, seen, validity) },
      {
        onText: (link, text) => this.#read(link, text),
        onUndecodable: (link) => this.#countMalformed(link, 'FRAME_MALFORMED'),
        onRoutes: () => this.#routesChanged(),
        onChanged: (link, change) => {
          const row = this.#history.add(link.index, change)
          deps.onLink?.(row)
        },
      },
    )
    this.#tasks = new Tasks({
      clock,
      ids,
      settings,
      route: (preferred, sessionId) => this.#links.route(preferred, this.#phoneSessions.linkOf(sessionId)),
      indexOf: (url) => this.#links.indexOf(url),
      onLimit: (task) => void this.#late.closeEarly(task, 'limit', this.#tasks),
    })
    this.#arrivals = new Arrivals({
      clock,
      limits: settings.limits,
      readContent: (list, signal) => readContent(list, this.#media(), signal),
      accept: (arrival, content) => this.#accept(arrival, content),
      onAborted: (arrival) => this.#abortArrival(arrival),
    })
    this.#controls = new Controls({
      clock,
      log,
      settings,
      arrivals: this.#arrivals,
      tasks: this.#tasks,
      resolve: (sessionId) => this.#phoneSessions.resolve(sessionId),
      control: (command) => this.#startedIntake().control(command),
      onCleared: (request, sessionId, key) => this.#cleared({ id: request.id, sessionId, key }),
    })
  }

  async start(intake: Intake): Promise<void> {
    this.#intake = intake
    await this.#holding.start()
  }

  async #connect(): Promise<void> {
    await this.#deps.state.reload()
    // The phone may cancel what only waits, by its task id, and is kept from giving up on it.
    for (const message of await this.#startedIntake().unanswered(XIAOYI))
      if (this.#isOurs(message)) this.#openTask(message)
    this.#links.start()
  }

  /** The node that has the links now finishes the tasks. */
  async #disconnect(): Promise<void> {
    this.#deps.log.warn('the XiaoYi links went to another node')
    await this.#arrivals.abort(() => true)
    for (const task of this.#tasks.all()) this.#tasks.forget(task)
    await this.#links.stop()
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    if (this.reaches(message.account)) this.#openTask(message)?.observe(event.event)
  }

  /** Only where the links are. */
  reaches(account: string): boolean {
    return this.#isOurs({ account }) && this.#holding.isHolder
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    if (!this.reaches(reply.account)) return 'waiting'
    if (this.#late.isLate(reply.run)) return this.#late.deliver(reply, this.#closing.signal)
    const task = this.#tasks.open(reply.run, reply.replyTo)
    // Nothing can follow a terminal frame; without an address it cannot be sent.
    if (task === undefined) return 'delivered'
    const fate = await task.finish(reply.content)
    if (fate === 'delivered') this.#tasks.end(task)
    if (fate === 'unknown') this.#tasks.forget(task)
    return fate
  }

  status(): JsonObject {
    const { links, ...rest } = this.#links.status()
    const pinned = this.#pins.status()
    const list = Array.isArray(links) ? (links as readonly JsonObject[]) : []
    return {
      agentId: this.#settings.agentId,
      links: list.map((link, index) => {
        const url = this.#settings.servers[index]?.url ?? ''
        return { ...link, pinned: pinned[url] ?? null, ...this.#pins.faultOf(url) }
      }),
      ...rest,
      streamMode: this.#settings.streamMode,
      openTasks: this.#tasks.size,
      malformedFrames: this.#malformed,
      foreignFrames: this.#foreign,
      lastPeerError: this.#peerError ?? null,
      draining: this.#draining,
      isHolder: this.#holding.isHolder,
    }
  }

  drain(): void {
    this.#draining = true
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#draining = true
    this.#closing.abort(new GatewayError('SHUTTING_DOWN', 'the channel is closing'))
    await this.#holding.close()
    await this.#arrivals.abort(() => true)
    // A task that only waits in the queue stays open on the phone: its answer comes after the restart. So does one that
    // another node goes on with.
    const begun = this.#holding.hasSuccessor ? [] : this.#tasks.all().filter((task) => task.isOpen && task.hasStarted)
    await Promise.all(begun.map((task) => this.#late.closeEarly(task, 'restarting', this.#tasks)))
    for (const task of this.#tasks.all()) task.abandon()
    await this.#links.stop()
    await this.#holding.release()
    await Promise.all(this.#telling)
  }

  /** Accepts the certificates that were refused because they changed; tells how many. */
  async trust(): Promise<number> {
    const accepted = await this.#pins.trustSeen()
    this.#links.retryNow()
    return accepted
  }

  linkHistory(): readonly LinkHistoryRow[] {
    return this.#history.rows
  }

  reconnect(): number {
    return this.#links.reconnect()
  }

  /** Notifies the person behind a session. Throws `XIAOYI_PUSH_FAILED` when that is not possible. */
  push(message: Omit<PushMessage, 'pushId'>, signal: AbortSignal): Promise<void> {
    return this.#late.push(message, signal)
  }

  #read(link: Link, raw: string): void {
    let request: XiaoyiRequest
    try {
      request = loopWork('frame', () => decodeRequest(raw, this.#settings.agentId, this.#settings.limits))
    } catch (error) {
      return this.#countMalformed(link, toGatewayError(error).code)
    }
    this.#handle(link, request)
  }

  #handle(link: Link, request: XiaoyiRequest): void {
    switch (request.kind) {
      case 'message':
        return this.#takeMessage(link, request)
      case 'event':
        this.#phoneSessions.observe(request, link.index, pushIdOf(request.parts))
        return this.#arrivals.isRepeated(request) ? undefined : this.#receivedData(request, request.parts)
      case 'clear':
      case 'cancel':
        this.#phoneSessions.observe({ sessionId: request.sessionId }, link.index)
        return void this.#controls.answer(request).then((frame) => this.#links.post(link.index, frame))
      case 'rejected':
        return this.#reject(link, request)
      case 'peer-error':
        this.#peerError = request.code
        return this.#deps.log.warn('the XiaoYi service reported an error', { code: request.code, link: link.index })
      case 'foreign':
        this.#foreign++
        return
      case 'heartbeat':
        return
      default:
        return assertNever(request)
    }
  }

  #takeMessage(link: Link, request: MessageRequest): void {
    this.#phoneSessions.observe(request, link.index, pushIdOf(request.parts))
    const arrival = { request, link: link.index, sessionId: request.sessionId }
    if (this.#closing.signal.aborted) return this.#endUnaccepted(arrival, 'SHUTTING_DOWN')
    const taken = this.#arrivals.take(arrival)
    if (taken === 'taken') this.#receivedData(request, request.parts)
    if (taken === 'full') this.#endUnaccepted(arrival, 'QUEUE_FULL')
    if (taken === 'duplicate') {
      const same = this.#tasks.ofSession(request.sessionId).find((task) => task.address.taskId === request.taskId)
      same?.rebind(link.index)
    }
  }

  /** Durable before the acknowledgement, and so is everything needed to find the conversation again. */
  async #accept(arrival: Arrival, content: Content): Promise<'accepted' | 'refused'> {
    const { request } = arrival
    const text = [content.text, ...content.notes].filter((line) => line !== '').join('\n')
    if (content.text === '' && content.attachments.length === 0) {
      this.#endWithText(arrival, content.notes.length > 0 ? text : phoneText('empty', this.#settings.language))
      return 'accepted'
    }
    try {
      const message = this.#inbound(arrival, text, content)
      const { run, duplicate } = await this.#startedIntake().accept(message)
      if (!duplicate) this.#openTask({ run, replyTo: message.replyTo, acceptedAt: this.#deps.clock.now() })
      return 'accepted'
    } catch (error) {
      const { code } = toGatewayError(error)
      this.#deps.log.warn('a XiaoYi message was not accepted', { code, link: arrival.link, taskId: request.taskId })
      this.#endUnaccepted(arrival, code)
      return 'refused'
    }
  }

  #inbound({ request, link }: Arrival, text: string, content: Content): InboundMessage {
    const { id, taskId } = request
    const url = this.#settings.servers[link]?.url ?? ''
    return {
      channel: XIAOYI,
      account: this.#settings.agentId,
      // A token may bear the agent's name; what came from the phones is not its holder's.
      caller: { owner: `${XIAOYI}:${this.#settings.agentId}`, sees: 'all' },
      messageId: id === taskId ? id : `${taskId} ${id}`,
      text,
      attachments: content.attachments,
      route: phoneRouteOf(request.sessionId),
      replyTo: toReplyTo(addressOf(request), url),
    }
  }

  /** What came to another agent id waits for it: the phones of this one have no such task. */
  #isOurs({ account }: { readonly account: string }): boolean {
    return account === this.#settings.agentId
  }

  /** Acknowledged once, at the first sign of the run. */
  #openTask({ run, replyTo, acceptedAt }: Pick<AcceptedMessage, 'run' | 'replyTo' | 'acceptedAt'>): Task | undefined {
    if (this.#late.isLate(run)) return undefined
    const known = this.#tasks.get(run)
    if (known !== undefined) return known
    const task = this.#tasks.open(run, replyTo)
    task?.acknowledge(acceptedAt)
    return task
  }

  #abortArrival(arrival: Arrival): void {
    if (this.#closing.signal.aborted) return this.#endUnaccepted(arrival, 'SHUTTING_DOWN')
    const canceled = { state: 'canceled', final: true } as const
    this.#links.post(arrival.link, encodeStatus(this.#settings.agentId, addressOf(arrival.request), canceled))
  }

  #endUnaccepted(arrival: Arrival, code: GatewayError['code']): void {
    this.#endWithText(arrival, phoneText(reasonFor(code), this.#settings.language), toWireError(code))
  }

  #endWithText(arrival: Arrival, text: string, error?: WireError): void {
    this.#links.post(arrival.link, this.#finalText(addressOf(arrival.request), text, error))
  }

  #reject(link: Link, request: Extract<XiaoyiRequest, { kind: 'rejected' }>): void {
    const { agentId, language } = this.#settings
    const { id, sessionId, taskId, code, reason } = request
    const address = { sessionId, requestId: id, taskId: taskId ?? id }
    const error = { code, message: reason }
    // An error object alone has never been seen to end a task on the phone, so a task gets a sentence with it.
    const ends = code === INVALID_PARAMS && taskId !== undefined
    const frame = ends
      ? this.#finalText(address, phoneText('badRequest', language), error)
      : encodeError(agentId, address, error)
    this.#links.post(link.index, frame)
  }

  #finalText(address: ReplyAddress, text: string, error?: WireError): string {
    return encodeArtifact(this.#settings.agentId, address, {
      artifactId: this.#deps.ids.uuid(),
      append: false,
      lastChunk: true,
      final: true,
      part: { text },
      ...(error === undefined ? {} : { error }),
    })
  }

  #cleared(cleared: Cleared): void {
    this.#phoneSessions.unbind(cleared.sessionId)
    this.#tell(this.#deps.onClear?.(cleared))
  }

  #receivedData(request: { readonly id: string; readonly sessionId: string }, parts: MessageRequest['parts']): void {
    const data = dataOf(parts)
    if (data.length === 0) return
    const { key } = this.#phoneSessions.resolve(request.sessionId)
    this.#tell(this.#deps.onData?.({ key, id: request.id, data }))
  }

  /** `close` waits for these calls. */
  #tell(call: Promise<void> | undefined): void {
    if (call === undefined) return
    this.#telling.add(call)
    void call.finally(() => this.#telling.delete(call))
  }

  #routesChanged(): void {
    for (const task of this.#tasks.all()) task.flush()
    if (this.#links.anyOpen) this.#intake?.available(XIAOYI, this.#settings.agentId)
  }

  #media() {
    const { files, home, ids, log, http, clock, fetchMedia = createMediaFetch(http, clock) } = this.#deps
    const { media: settings, language } = this.#settings
    return { files, directory: `${home}/media`, ids, log, fetchMedia, settings, language }
  }

  #startedIntake(): Intake {
    if (this.#intake === undefined) throw new GatewayError('INTERNAL', 'the XiaoYi channel was not started')
    return this.#intake
  }

  #countMalformed(link: Link, code: string): void {
    // A peer that sends nothing but garbage must not fill the log as well.
    if (this.#malformed++ % MALFORMED_LOG_EVERY !== 0) return
    this.#deps.log.warn('XiaoYi frames could not be read', { link: link.index, code, count: this.#malformed })
  }

  #watchSaving(saving: Promise<void>): void {
    saving.catch((error: unknown) => {
      this.#deps.log.error('the XiaoYi state could not be saved', { code: toGatewayError(error).code })
    })
  }
}

function addressOf(request: MessageRequest): ReplyAddress {
  return { sessionId: request.sessionId, taskId: request.taskId, requestId: request.id }
}
