import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/async.ts'
import type { JsonObject } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import type { Phrases } from '../core/phrases/phrases.ts'
import type { ApprovalRequest, Verdict } from '../turn/approval.ts'

interface Waiting {
  readonly message: AcceptedMessage
  readonly request: ApprovalRequest
  /** Stores the verdict, then lets the call go on. The first one counts. */
  decide(verdict: Verdict): Promise<void>
}

/** A call that waits, as `GET /api/approvals` shows it. */
export interface WaitingCall extends JsonObject {
  readonly id: string
  readonly session: SessionKey
}

/** Timers of Node take no more. */
const LONGEST_TIMER_MS = 2_147_483_647

/**
 * Tool calls that wait for a person. What was asked and decided is in the transcripts; this is only who waits now, so
 * that a turn that goes on after a restart asks again under the same id.
 */
export class Approvals {
  readonly #clock: Clock
  readonly #waiting = new Map<string, Waiting>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Shows the question and waits for a verdict, the deadline, or the signal, whose reason it throws. */
  async ask(message: AcceptedMessage, request: ApprovalRequest, signal: AbortSignal): Promise<Verdict> {
    signal.throwIfAborted()
    const decided = deferred<Verdict>()
    let first: Promise<void> | undefined
    const decide = (verdict: Verdict): Promise<void> => {
      first ??= request.store(verdict).then(() => decided.resolve(verdict))
      // A verdict that could not be stored is not one: the turn fails as it does for every other append.
      first.catch((error: unknown) => decided.reject(error))
      return first
    }
    const onAbort = (): void => decided.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.set(request.id, { message, request, decide })
    // The stamp may be from an earlier start; a wall clock that was set back must not prolong the wait.
    const longestMs = Math.min(LONGEST_TIMER_MS, request.expiresAt - request.askedAt)
    const leftMs = Math.min(longestMs, Math.max(0, request.expiresAt - this.#clock.now()))
    const timer = this.#clock.after(leftMs, () => void decide('expired').catch(() => undefined))
    try {
      await request.show()
      return await decided.promise
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      this.#waiting.delete(request.id)
    }
  }

  /** What waits, oldest first; of one session when a key is given. */
  list(key?: SessionKey): readonly WaitingCall[] {
    return this.#of(key).map(({ message, request }) => ({
      id: request.id,
      session: message.key,
      run: message.run,
      channel: message.channel,
      account: message.account,
      tool: request.tool,
      arguments: request.arguments,
      askedAt: request.askedAt,
      expiresAt: request.expiresAt,
    }))
  }

  /** The session whose call waits under this id. Throws `APPROVAL_NOT_FOUND`. */
  sessionOf(id: string): SessionKey {
    return this.#find(id).message.key
  }

  /** Durable when it resolves. Throws `APPROVAL_NOT_FOUND`. */
  async decide(id: string, approve: boolean): Promise<void> {
    await this.#find(id).decide(approve ? 'approved' : 'denied')
  }

  /** For `/approve` and `/deny`: the one named, or the only one of the session. Returns what is shown to the user. */
  async answer(key: SessionKey, id: string, approve: boolean, phrases: Phrases): Promise<string> {
    const here = this.#of(key)
    const named = id === '' ? here : here.filter(({ request }) => request.id === id.toLowerCase())
    const [only] = named
    if (only === undefined) return phrases.nothingToApprove(id)
    if (named.length > 1)
      return phrases.severalToApprove(
        named.map(({ request }) => `${request.id}: ${request.tool} ${JSON.stringify(request.arguments)}`),
      )
    await only.decide(approve ? 'approved' : 'denied')
    return phrases.decided(only.request.tool, approve)
  }

  /** The reader is back: what it may have missed is shown once more. */
  remind(channel: string, account: string): void {
    for (const { message, request } of this.#waiting.values())
      if (message.channel === channel && message.account === account) void request.show()
  }

  #of(key: SessionKey | undefined): readonly Waiting[] {
    const all = [...this.#waiting.values()]
    return key === undefined ? all : all.filter(({ message }) => message.key === key)
  }

  #find(id: string): Waiting {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined)
      throw new GatewayError('APPROVAL_NOT_FOUND', 'no tool call waits for approval under this id', { field: 'id' })
    return waiting
  }
}
