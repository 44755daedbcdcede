import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { EventRequest, MessageRequest, Part } from './codec.ts'
import type { Content } from './media.ts'
import { BoundedMap } from './bounded-map.ts'
import type { XiaoyiLimits } from './settings.ts'

export interface ArrivalsDeps {
  readonly clock: Clock
  readonly limits: XiaoyiLimits
  readContent(parts: readonly Part[], signal: AbortSignal): Promise<Content>
  /** Makes the message durable. Must not throw: a refusal is shown to the phone here. */
  accept(arrival: Arrival, content: Content): Promise<'accepted' | 'refused'>
  /** The message was cancelled before it was accepted: nothing else closes its task. */
  onAborted(arrival: Arrival): void
}

export interface Arrival {
  readonly request: MessageRequest
  readonly link: number
  readonly sessionId: string
}

interface Underway extends Arrival {
  readonly controller: AbortController
  readonly done: Promise<void>
}

/**
 * Messages between their frame and their acceptance. Files are read here, outside the read loop, all messages at the
 * same time; they are accepted in the order they arrived within their session. A cancel or clear ends them.
 */
export class Arrivals {
  readonly #deps: ArrivalsDeps
  readonly #recent: BoundedMap<true>
  readonly #underway = new Set<Underway>()
  readonly #last = new Map<string, Promise<void>>()

  constructor(deps: ArrivalsDeps) {
    this.#deps = deps
    const { maxRemembered, rememberMs } = deps.limits
    this.#recent = new BoundedMap(maxRemembered, { clock: deps.clock, maxMs: rememberMs })
  }

  /** True for an event that came before, over the other link as a rule; one without an id cannot be recognised. */
  isRepeated({ sessionId, id, parts }: EventRequest): boolean {
    if (id === '') return false
    const fingerprint = fingerprintOf([sessionId, 'event', id], parts)
    if (this.#recent.has(fingerprint)) return true
    this.#recent.set(fingerprint, true)
    return false
  }

  /** `duplicate`: the same message, by ids and content, came before (over the other link, as a rule). */
  take(arrival: Arrival): 'taken' | 'duplicate' | 'full' {
    const { request, link, sessionId } = arrival
    const fingerprint = fingerprintOf([sessionId, request.taskId, request.id], request.parts)
    if (this.#recent.has(fingerprint)) return 'duplicate'
    if (this.#underway.size >= this.#deps.limits.maxArrivals) return 'full'
    this.#recent.set(fingerprint, true)
    const controller = new AbortController()
    const before = this.#last.get(arrival.sessionId) ?? Promise.resolve()
    const done = this.#process(arrival, before, controller.signal).then((outcome) => {
      // What was not accepted may come again and be accepted then.
      if (outcome !== 'accepted') this.#recent.delete(fingerprint)
      this.#underway.delete(underway)
      if (this.#last.get(arrival.sessionId) === done) this.#last.delete(arrival.sessionId)
    })
    const underway: Underway = { request, link, sessionId, controller, done }
    this.#underway.add(underway)
    this.#last.set(arrival.sessionId, done)
    return 'taken'
  }

  /** Ends what is still being read; resolves when every message it concerns is either accepted or over. */
  async abort(concerns: (arrival: Arrival) => boolean): Promise<number> {
    const concerned = [...this.#underway].filter(concerns)
    for (const { controller } of concerned) controller.abort(new Error('cancelled'))
    await Promise.all(concerned.map(({ done }) => done))
    return concerned.length
  }

  async #process(
    arrival: Arrival,
    before: Promise<void>,
    signal: AbortSignal,
  ): Promise<'accepted' | 'refused' | 'aborted'> {
    const reading = this.#deps.readContent(arrival.request.parts, signal).catch(() => undefined)
    const content = await reading
    await before
    if (content === undefined || signal.aborted) {
      this.#deps.onAborted(arrival)
      return 'aborted'
    }
    return this.#deps.accept(arrival, content)
  }
}

/** Ids alone are not enough: the service reuses them for the answer to a question of the agent. */
function fingerprintOf(ids: readonly string[], parts: readonly Part[]): string {
  const hash = createHash('sha256')
  for (const id of ids) hash.update(`${id}\n`)
  for (const part of parts) hash.update(`${JSON.stringify(withoutSignature(part))}\n`)
  return hash.digest('base64')
}

/** A file's URL is signed anew for each delivery; its path stays. */
function withoutSignature(part: Part): Part {
  if (part.kind !== 'file' || part.source.kind !== 'uri') return part
  return { ...part, source: { kind: 'uri', uri: part.source.uri.split('?', 1)[0] ?? '' } }
}
