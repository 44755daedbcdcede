import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'

export interface QueueLimits {
  readonly queuedPerSession: number
  readonly queuedTotal: number
}

/** How much waits already, without what is only being made durable. */
export interface Waiting {
  inSession(key: SessionKey): number
  inAll(): number
}

/** Whether there is still a place in the queues; a message being made durable holds one. */
export class Admission {
  readonly #limits: QueueLimits
  readonly #waiting: Waiting
  readonly #entering = new Map<SessionKey, number>()
  #enteringTotal = 0

  constructor(limits: QueueLimits, waiting: Waiting) {
    this.#limits = limits
    this.#waiting = waiting
  }

  /** Throws `QUEUE_FULL`. Gives back what ends the hold: from then on the message is in its queue, or nowhere. */
  enter(key: SessionKey, needsPlace: boolean): () => void {
    if (needsPlace) this.#check(key)
    this.#entering.set(key, (this.#entering.get(key) ?? 0) + 1)
    this.#enteringTotal++
    return () => {
      this.#enteringTotal--
      const left = (this.#entering.get(key) ?? 1) - 1
      if (left === 0) this.#entering.delete(key)
      else this.#entering.set(key, left)
    }
  }

  #check(key: SessionKey): void {
    const { queuedPerSession, queuedTotal } = this.#limits
    const queued = this.#waiting.inSession(key) + (this.#entering.get(key) ?? 0)
    if (queued >= queuedPerSession) {
      throw new GatewayError('QUEUE_FULL', `this session already has ${queued} messages waiting`, {
        queued,
        limit: queuedPerSession,
      })
    }
    const total = this.#waiting.inAll() + this.#enteringTotal
    if (total >= queuedTotal) {
      throw new GatewayError('QUEUE_FULL', `the gateway already has ${total} messages waiting`, {
        queued: total,
        limit: queuedTotal,
      })
    }
  }
}
