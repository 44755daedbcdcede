import type { Clock } from '../../base/clock.ts'
import { deferred } from '../../base/async.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { SocketDialer } from '../../base/sockets.ts'
import { GatewayError, toGatewayError } from '../../core/errors.ts'
import { decodeRequest, type MessageRequest, type Part, type XiaoyiRequest } from './codec.ts'
import {
  encodeArtifact,
  encodeCanceled,
  encodeCleared,
  encodeError,
  encodeStatus,
  type ReplyAddress,
  type TaskState,
} from './frames.ts'
import type { Link } from './link.ts'
import { Links } from './links.ts'
import { BoundedMap } from './bounded-map.ts'
import { toXiaoyiSettings, type XiaoyiConfig, type XiaoyiSettings } from './settings.ts'

/** A message of a phone; it is answered by passing it back. */
export interface XiaoyiMessage {
  readonly sessionId: string
  readonly taskId: string
  readonly id: string
  /** Its text parts, joined by line ends. */
  readonly text: string
  readonly parts: readonly Part[]
}

/** The events of a client, and what each listener is given. */
export interface XiaoyiClientEvents {
  message: XiaoyiMessage
  /** Data parts without a text: not a question, and not to be answered. */
  data: { readonly sessionId: string; readonly id: string; readonly parts: readonly Part[] }
  /** To be answered with `sendTasksCancelResponse`. `taskId` only where the service names one. */
  cancel: { readonly sessionId: string; readonly id: string; readonly taskId?: string }
  /** To be answered with `sendClearContextResponse`. */
  clear: { readonly sessionId: string; readonly id: string }
  connected: { readonly link: number; readonly url: string }
  disconnected: { readonly link: number; readonly url: string; readonly reason: string }
  error: { readonly reason: string; readonly link?: number }
}

/** How a piece of an answer is shown on the phone. */
export interface SendResponseOptions {
  /** Added to what is shown; otherwise it replaces it. */
  readonly append?: boolean
  /** Nothing can follow it. True by default. */
  readonly final?: boolean
  /** Shown as the model's thinking instead of its answer. */
  readonly reasoning?: boolean
}

export interface XiaoyiClientDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly dialer: SocketDialer
  readonly log: Log
}

type Listener<Name extends keyof XiaoyiClientEvents> = (event: XiaoyiClientEvents[Name]) => void
type Answered = Pick<XiaoyiMessage, 'sessionId' | 'taskId' | 'id'>

/**
 * The protocol without the gateway: signed links that come back by themselves, requests as events, answers as calls.
 * What the gateway adds (durable messages, order, redelivery after a crash) is the caller's business here.
 */
export class XiaoyiClient {
  readonly #deps: XiaoyiClientDeps
  readonly #settings: XiaoyiSettings
  readonly #links: Links
  readonly #listeners = new Map<keyof XiaoyiClientEvents, Set<Listener<never>>>()
  /** The same request comes over both links. */
  readonly #recent: BoundedMap<true>
  /** Certificates of addresses that no name vouches for, as seen first. */
  readonly #pins = new Map<string, string>()
  /** Where each session spoke last. */
  readonly #linkOf: BoundedMap<number>
  readonly #counts = { received: 0, sent: 0, malformed: 0, connections: 0 }

  constructor(config: XiaoyiConfig, deps: XiaoyiClientDeps) {
    this.#deps = deps
    this.#settings = toXiaoyiSettings(config)
    const { maxRemembered, rememberMs } = this.#settings.limits
    this.#recent = new BoundedMap(maxRemembered, { clock: deps.clock, maxMs: rememberMs })
    this.#linkOf = new BoundedMap(maxRemembered, { clock: deps.clock, maxMs: Number.POSITIVE_INFINITY })
    const checkFingerprint = (link: Link, seen: string): void => this.#checkPin(link.url, seen)
    this.#links = new Links(
      { ...deps, settings: this.#settings, checkFingerprint },
      {
        onText: (link, text) => this.#read(link, text),
        onUndecodable: (link) => this.#malformed(link, 'a binary frame was no text'),
        onRoutes: () => undefined,
        onOpen: (link) => {
          this.#counts.connections++
          this.#emit('connected', { link: link.index, url: link.url })
        },
        onDown: ({ index, url, lastError = 'closed' }) =>
          this.#emit('disconnected', { link: index, url, reason: lastError }),
        onFailed: ({ index, lastError = 'connecting failed' }) =>
          this.#emit('error', { link: index, reason: lastError }),
      },
    )
  }

  /** Returns what takes the listener away again. */
  on<Name extends keyof XiaoyiClientEvents>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  /** Resolves when the first link is up; the others follow. Goes on trying until `disconnect`, or the signal. */
  async connect(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    const up = deferred()
    const stopListening = this.on('connected', () => up.resolve())
    const onAbort = (): void => up.reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#links.start()
    if (this.isReady()) up.resolve()
    try {
      await up.promise
    } catch (error) {
      await this.disconnect()
      throw error
    } finally {
      stopListening()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  disconnect(): Promise<void> {
    return this.#links.stop()
  }

  /** Whether anything can be sent right now. */
  isReady(): boolean {
    return this.#links.anyOpen
  }

  /** State, tries and last error of each link. */
  linkStates(): JsonObject {
    return this.#links.status()
  }

  statistics(): Readonly<{ received: number; sent: number; malformed: number; connections: number }> {
    return { ...this.#counts }
  }

  /** A piece of the answer, or, with `final`, its end. A piece for a link that is down is held for a while. */
  sendResponse(
    to: Answered,
    text: string,
    { append = false, final = true, reasoning = false }: SendResponseOptions = {},
  ): void {
    const part = reasoning ? { reasoningText: text } : { text }
    const update = { artifactId: this.#deps.ids.uuid(), append, lastChunk: final, final, part }
    this.#send(to, (agentId, address) => encodeArtifact(agentId, address, update))
  }

  /** Text in a status stays on the phone for good. */
  sendStatusUpdate(
    to: Answered,
    state: TaskState,
    options: { readonly text?: string; readonly final?: boolean } = {},
  ): void {
    const { text, final = false } = options
    const status = { state, final, ...(text === undefined ? {} : { text }) }
    this.#send(to, (agentId, address) => encodeStatus(agentId, address, status))
  }

  /** Only once the context is really cleared. */
  sendClearContextResponse(requestId: string, sessionId: string, success = true): void {
    const request = { id: requestId, sessionId }
    this.#post(sessionId, encodeCleared(this.#settings.agentId, request, success ? 'cleared' : 'failed'))
  }

  /** Only once the task has really stopped; a task that was running needs its own final status first. */
  sendTasksCancelResponse(requestId: string, sessionId: string, success = true, taskId = requestId): void {
    const request = { id: requestId, sessionId, taskId }
    this.#post(sessionId, encodeCanceled(this.#settings.agentId, request, success ? 'canceled' : 'failed'))
  }

  #send({ sessionId, taskId, id }: Answered, encode: (agentId: string, address: ReplyAddress) => string): void {
    this.#post(sessionId, encode(this.#settings.agentId, { sessionId, taskId, requestId: id }))
  }

  #post(sessionId: string, frame: string): void {
    this.#counts.sent++
    this.#links.post(this.#linkOf.get(sessionId) ?? 0, frame)
  }

  #read(link: Link, raw: string): void {
    this.#counts.received++
    try {
      this.#handle(link, decodeRequest(raw, this.#settings.agentId, this.#settings.limits))
    } catch (error) {
      this.#malformed(link, toGatewayError(error).message)
    }
  }

  #handle(link: Link, request: XiaoyiRequest): void {
    if (!('sessionId' in request)) return
    this.#linkOf.set(request.sessionId, link.index)
    const { kind, id, sessionId } = request
    if (kind === 'rejected') {
      const address = { sessionId, requestId: id, taskId: request.taskId ?? id }
      return this.#post(
        sessionId,
        encodeError(this.#settings.agentId, address, { code: request.code, message: request.reason }),
      )
    }
    const fingerprint = JSON.stringify(request)
    if (this.#recent.has(fingerprint)) return
    this.#recent.set(fingerprint, true)
    if (kind === 'message') this.#emit('message', messageOf(request))
    else if (kind === 'event') this.#emit('data', { sessionId, id, parts: request.parts })
    else if (kind === 'clear') this.#emit('clear', { sessionId, id })
    else this.#emit('cancel', { sessionId, id, ...(request.taskId === undefined ? {} : { taskId: request.taskId }) })
  }

  #malformed(link: Link, reason: string): void {
    this.#counts.malformed++
    this.#emit('error', { link: link.index, reason })
  }

  /** A listener that throws is a defect of its own; the link and the other listeners go on. */
  #emit<Name extends keyof XiaoyiClientEvents>(name: Name, event: XiaoyiClientEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        ;(listener as Listener<Name>)(event)
      } catch (error) {
        this.#deps.log.error('a listener of the XiaoYi client failed', {
          event: name,
          reason: error instanceof Error ? error.name : 'unknown',
        })
      }
    }
  }

  #checkPin(url: string, seen: string): void {
    const pinned = this.#pins.get(url)
    if (pinned === undefined) this.#pins.set(url, seen)
    else if (pinned !== seen)
      throw new GatewayError('XIAOYI_CERTIFICATE_CHANGED', 'the certificate is not the one seen before', {
        pinned,
        seen,
      })
  }
}

function messageOf({ sessionId, taskId, id, parts }: MessageRequest): XiaoyiMessage {
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n')
  return { sessionId, taskId, id, text, parts }
}
