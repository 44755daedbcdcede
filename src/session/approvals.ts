import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/async.ts'
import type { JsonObject } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import { causeOf } from '../core/outcome.ts'
import type { Phrases } from '../core/phrases/phrases.ts'
import type { Storage } from '../storage/storage.ts'
import type { ApprovalRequest, Verdict } from '../turn/approval.ts'
import { SharedQuestions } from './shared-questions.ts'

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
  readonly run: RunId
  readonly tool: string
  readonly arguments: JsonObject
}

/** Timers of Node take no more. */
const LONGEST_TIMER_MS = 2_147_483_647

/**
 * Tool calls that wait for a person. What was asked and decided is in the transcripts; this is only who waits now, so
 * that a turn that goes on after a restart asks again under the same id. Where there are other nodes, a person may decide
 * at any of them.
 */
export class Approvals {
  readonly #clock: Clock
  readonly #tell: Storage['tell']
  readonly #shared: SharedQuestions | undefined
  readonly #waiting = new Map<string, Waiting>()

  constructor(clock: Clock, storage: Pick<Storage, 'state' | 'inbox' | 'transact' | 'watch' | 'tell'>) {
    this.#clock = clock
    this.#tell = storage.tell?.bind(storage)
    if (this.#tell === undefined) return
    this.#shared = new SharedQuestions(storage)
    storage.watch((notice) => {
      if (this.#waiting.size > 0 && SharedQuestions.isHint(notice)) void this.#takeVerdicts()
    })
  }

  /** Shows the question and waits for a verdict, the deadline, or the signal, whose reason it throws. */
  async ask(message: AcceptedMessage, request: ApprovalRequest, signal: AbortSignal): Promise<Verdict> {
    signal.throwIfAborted()
    const decided = deferred<Verdict>()
    decided.promise.catch(() => undefined)
    let first: Promise<void> | undefined
    const decide = (verdict: Verdict): Promise<void> => {
      first ??= request.store(verdict).then(async () => {
        await this.#unshare(request.id)
        decided.resolve(verdict)
      })
      // A verdict that could not be stored is not one: the turn fails as it does for every other append.
      first.catch((error: unknown) => decided.reject(error))
      return first
    }
    const onAbort = (): void => decided.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const waiting: Waiting = { message, request, decide }
    this.#waiting.set(request.id, waiting)
    // The stamp may be from an earlier start; a wall clock that was set back must not prolong the wait.
    const longestMs = Math.min(LONGEST_TIMER_MS, request.expiresAt - request.askedAt)
    const leftMs = Math.min(longestMs, Math.max(0, request.expiresAt - this.#clock.now()))
    const timer = this.#clock.after(leftMs, () => void decide('expired').catch(() => undefined))
    try {
      // While the database is away it is asked here alone.
      await this.#shared?.put(describe(waiting)).catch(() => undefined)
      await request.show()
      await this.#takeVerdicts()
      return await decided.promise
    } finally {
      // After a shutdown another node asks, and knows what was decided meanwhile.
      if (signal.aborted && causeOf(signal) !== 'shutdown') void this.#unshare(request.id)
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      this.#waiting.delete(request.id)
    }
  }

  /** What waits, oldest first; of one session when a key is given. */
  async list(key?: SessionKey): Promise<readonly WaitingCall[]> {
    const here = [...this.#waiting.values()].filter(({ message }) => (key ?? message.key) === message.key)
    const elsewhere = ((await this.#shared?.list(key)) ?? []).filter(({ id }) => !this.#waiting.has(id))
    return [...elsewhere, ...here.map(describe)]
  }

  /** The session whose call waits under this id. Throws `APPROVAL_NOT_FOUND`. */
  async sessionOf(id: string): Promise<SessionKey> {
    const key = this.#waiting.get(id)?.message.key ?? (await this.#shared?.find(id))?.session
    if (key === undefined) throw notFound()
    return key
  }

  /** Durable when it resolves. Throws `APPROVAL_NOT_FOUND`. */
  async decide(id: string, approve: boolean): Promise<void> {
    const decision = approve ? 'approved' : 'denied'
    const here = this.#waiting.get(id)
    if (here !== undefined) return here.decide(decision)
    if (this.#shared === undefined || (await this.#shared.find(id)) === undefined) throw notFound()
    await this.#shared.decide(id, decision)
  }

  /** For `/approve` and `/deny`: the one named, or the only one of the session. Returns what is shown to the user. */
  async answer(key: SessionKey, id: string, approve: boolean, phrases: Phrases): Promise<string> {
    const waiting = await this.list(key)
    const named = id === '' ? waiting : waiting.filter((call) => call.id === id.toLowerCase())
    const [only] = named
    if (only === undefined) return phrases.nothingToApprove(id)
    if (named.length > 1)
      return phrases.severalToApprove(named.map((call) => `${call.id}: ${call.tool} ${JSON.stringify(call.arguments)}`))
    await this.decide(only.id, approve)
    return phrases.decided(only.tool, approve)
  }

  /** The reader is back: what it may have missed is shown once more, also what waits at other nodes. */
  remind(channel: string, account: string): void {
    this.showAgain(channel, account)
    this.#tell?.({ kind: 'reader', channel, account })
  }

  /** What waits here. */
  showAgain(channel: string, account: string): void {
    for (const { message, request } of this.#waiting.values())
      if (message.channel === channel && message.account === account) void request.show()
  }

  /** Those that other nodes were given for calls that wait here; the next look finds what this one misses. */
  async #takeVerdicts(): Promise<void> {
    const verdicts = (await this.#shared?.verdicts().catch(() => undefined)) ?? []
    for (const [id, decision] of verdicts)
      this.#waiting
        .get(id)
        ?.decide(decision)
        .catch(() => undefined)
  }

  /** What stays while the database is away names a message that is answered soon, and counts no more then. */
  async #unshare(id: string): Promise<void> {
    await this.#shared?.remove(id).catch(() => undefined)
  }
}

function describe({ message, request }: Waiting): WaitingCall {
  return {
    id: request.id,
    session: message.key,
    run: message.run,
    channel: message.channel,
    account: message.account,
    tool: request.tool,
    arguments: request.arguments,
    askedAt: request.askedAt,
    expiresAt: request.expiresAt,
  }
}

function notFound(): GatewayError {
  return new GatewayError('APPROVAL_NOT_FOUND', 'no tool call waits for approval under this id', { field: 'id' })
}
