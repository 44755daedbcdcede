import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Sessions } from '../session/sessions.ts'

export interface QueueLimits {
  readonly queuedPerSession: number
  readonly queuedTotal: number
}

/** Whether there is still a place in the queues; a message being made durable holds one. */
export class Admission {
  readonly #limits: QueueLimits
  readonly #sessions: Pick<Sessions, 'activity' | 'activityOf'>
  readonly #entering = new Map<SessionKey, number>()
  #enteringTotal = 0

  constructor(limits: QueueLimits, sessions: Pick<Sessions, 'activity' | 'activityOf'>) {
    this.#limits = limits
    this.#sessions = sessions
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
    const queued = this.#sessions.activityOf(key).queued + (this.#entering.get(key) ?? 0)
    if (queued >= queuedPerSession) {
      throw new GatewayError('QUEUE_FULL', `this session already has ${queued} messages waiting`, {
        queued,
        limit: queuedPerSession,
      })
    }
    const total = this.#sessions.activity().queued + this.#enteringTotal
    if (total >= queuedTotal) {
      throw new GatewayError('QUEUE_FULL', `the gateway already has ${total} messages waiting`, {
        queued: total,
        limit: queuedTotal,
      })
    }
  }
}
