import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/async.ts'
import type { Ids } from '../base/ids.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import { callerOf, UNKNOWN_OWNER, type AcceptedMessage, type InboundMessage } from '../core/inbound.ts'
import { chosenFor, forgetChosen } from '../session/chosen-settings.ts'
import { isImmediate, parseSlash } from '../session/commands.ts'
import { rowChangeFor } from '../session/message-row.ts'
import { routeOf, type RouteSettings, Claims, type Candidate } from './claims.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Acceptance, Accepted, Storage } from '../storage/storage.ts'

export interface QueueLimits {
  readonly queuedPerSession: number
  readonly queuedTotal: number
}

export interface InboxIntakeDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly storage: Storage
  readonly sessions: Pick<Sessions, 'activity' | 'activityOf' | 'expect'>
  readonly route: RouteSettings
  readonly limits: QueueLimits
  readonly maxSessions: number
}

/** A message that is durable: now, or since an earlier copy of it. */
export interface Stored {
  readonly message: AcceptedMessage
  readonly duplicate: boolean
  /** To be called when it stands in its queue: until then it holds a place there. */
  entered(): void
  /** Everything that is open in its session is in its queue here. */
  readonly mine: boolean
  /** What this node holds its session with. */
  readonly epoch?: number | undefined
}

/** A fresh one holds its place in the queue until `leave`. */
type Placed =
  | ((Accepted & { readonly kind: 'fresh' }) & { leave(): void })
  | Exclude<Accepted, { readonly kind: 'fresh' }>

/** Makes messages durable: finds their conversation, recognises copies, keeps the limits. */
export class InboxIntake {
  readonly #deps: InboxIntakeDeps
  readonly #claims: Claims
  readonly #admission: Admission
  /** Messages being made durable, by line. */
  readonly #storing = new Map<string, number>()
  /** By line, resolved when its last message was handed to the storage. */
  readonly #handed = new Map<string, Promise<void>>()

  constructor(deps: InboxIntakeDeps) {
    this.#deps = deps
    this.#claims = new Claims(deps)
    this.#admission = new Admission(deps.limits, deps.sessions)
  }

  /** Known before anything is looked up: the line that the message waits in. */
  orderingKeyOf(message: InboundMessage): string {
    return routeOf(message, this.#deps.route)
  }

  /** Whether a message of this line is being made durable. */
  isStoring(line: string): boolean {
    return this.#storing.has(line)
  }

  /** Messages of one line reach the storage in the order they came, however long their look-ups take. */
  async store(message: InboundMessage, line: string, signal: AbortSignal): Promise<Stored> {
    const { clock, ids } = this.#deps
    const ours = { run: `run_${ids.hex(20)}` as RunId, acceptedAt: clock.now() }
    const before = this.#handed.get(line)
    const handed = deferred()
    this.#storing.set(line, (this.#storing.get(line) ?? 0) + 1)
    this.#handed.set(line, handed.promise)
    try {
      await before
      return await this.#tryCandidates(message, ours, handed.resolve, signal)
    } finally {
      handed.resolve()
      const others = (this.#storing.get(line) ?? 1) - 1
      if (others === 0) this.#storing.delete(line)
      else this.#storing.set(line, others)
      if (this.#handed.get(line) === handed.promise) this.#handed.delete(line)
    }
  }

  async #tryCandidates(
    message: InboundMessage,
    ours: Pick<AcceptedMessage, 'run' | 'acceptedAt'>,
    onHanded: () => void,
    signal: AbortSignal,
  ): Promise<Stored> {
    for await (const candidate of this.#claims.candidates(message)) {
      const accepted: AcceptedMessage = Object.assign({}, message, ours, { key: candidate.key })
      const result = await this.#accept(accepted, candidate, onHanded, signal)
      switch (result.kind) {
        case 'fresh':
          return { message: accepted, duplicate: false, entered: result.leave, mine: result.mine, epoch: result.epoch }
        case 'duplicate':
          return { message: result.known.message, duplicate: true, mine: false, entered: () => undefined }
        case 'conflict':
          throw new GatewayError('IDEMPOTENCY_CONFLICT', 'another request was sent with this Idempotency-Key', {
            field: 'Idempotency-Key',
          })
        case 'taken':
      }
    }
    throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', {})
  }

  async #accept(
    message: AcceptedMessage,
    candidate: Candidate,
    onHanded: () => void,
    signal: AbortSignal,
  ): Promise<Placed> {
    const { storage, sessions } = this.#deps
    const recognition = recognitionOf(message)
    const claim = await this.#claims.hold(candidate, message)
    let leave = (): void => undefined
    try {
      try {
        if (claim.full !== undefined) throw claim.full
        // What is answered at once needs no place: a full queue must not keep anyone from /stop.
        leave = this.#admission.enter(message.key, !isImmediate(parseSlash(message.text)))
      } catch (full) {
        // A copy of a message that is there already needs no place either.
        const known = await storage.inbox.recall(recognition)
        if (known === undefined) throw full
        return known
      }
      const row = await this.#rowFor(message, candidate)
      const place = leave
      const over = sessions.expect(message.run)
      leave = () => {
        place()
        over()
      }
      signal.throwIfAborted()
      const accepting = storage.inbox.accept(message, { ...recognition, joins: candidate.joins, ...row })
      onHanded()
      const accepted = await accepting
      if (accepted.kind !== 'fresh') return accepted
      const held = leave
      leave = () => undefined
      return { ...accepted, leave: held }
    } finally {
      leave()
      claim.release()
    }
  }

  /** What the message changes in its session's row; a first one takes along what was chosen before it. */
  async #rowFor(message: AcceptedMessage, { record }: Candidate): Promise<Pick<Acceptance, 'session' | 'also'>> {
    const { storage, ids } = this.#deps
    const session = rowChangeFor(message, ids)
    if (session.kind === 'change-session' || record !== undefined) return { session }
    const chosen = await chosenFor(storage, message.key)
    if (Object.keys(chosen).length === 0) return { session }
    return {
      session: { ...session, defaults: { ...session.defaults, ...chosen } },
      also: [forgetChosen(message.key)],
    }
  }
}

/** What tells a redelivery from a new message: same owner, sender id, session and content; or the sender's own key. */
function recognitionOf(message: AcceptedMessage): Pick<Acceptance, 'fingerprint' | 'request'> {
  const key = requestKeyOf(message)
  const request =
    key === undefined || message.idempotency === undefined
      ? {}
      : { request: { key, digest: message.idempotency.digest } }
  return { fingerprint: fingerprintOf(message), ...request }
}

function fingerprintOf(message: AcceptedMessage): string {
  const { channel, key, messageId, text, attachments, run } = message
  const { owner } = callerOf(message)
  const files = attachments.map(({ name, bytes }) => [name, bytes])
  // Two messages without any identity are never the same one, so nothing but the run itself can be recognised.
  const sender = owner === UNKNOWN_OWNER ? [owner, run] : [owner]
  const content = JSON.stringify([channel, ...sender, key, messageId, text, files])
  return createHash('sha256').update(content).digest('base64url')
}

/** What a sender recognises its request by. A sender without any identity has none: its repeats are new messages. */
function requestKeyOf(message: AcceptedMessage): string | undefined {
  const { owner } = callerOf(message)
  if (message.idempotency === undefined || owner === UNKNOWN_OWNER) return undefined
  return JSON.stringify([message.channel, owner, message.idempotency.key])
}

/** Whether there is still a place in the queues; a message being made durable holds one. */
class Admission {
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

/**
 * What arrives for one session takes effect in the order it arrived, however long each thing takes to become ready: a
 * reset that follows a message on the same socket must find that message, and one that follows the reset must survive it.
 */
export class ArrivalOrder {
  /** The end of each session's line; absent while nothing stands in it. */
  readonly #lines = new Map<string, Promise<void>>()

  /** Runs `act` when `ready` is settled and everything that came before has acted. Resolves with what `act` returned. */
  enter<T>(line: string, ready: Promise<unknown>, act: () => T): Promise<Awaited<T>> {
    return this.#stand(line, Promise.allSettled([this.#lines.get(line), ready]), async () => act)
  }

  /**
   * The same for what has to look something up first: that is done when everything before has acted, and what comes next
   * waits for it, so that `act` finds what came before it and nothing that came later.
   */
  enterAndFind<R, T>(line: string, find: () => Promise<R>, act: (found: R) => T): Promise<Awaited<T>> {
    return this.#stand(line, this.#lines.get(line) ?? Promise.resolve(), async () => {
      const found = await find()
      return () => act(found)
    })
  }

  async #stand<T>(line: string, ready: Promise<unknown>, prepare: () => Promise<() => T>): Promise<Awaited<T>> {
    let acted: { readonly value: T } | undefined
    const turn = ready.then(prepare).then((act) => {
      // The value is not awaited here: whatever comes next waits for the start of this, not for its end.
      acted = { value: act() }
    })
    const done = turn.catch(() => undefined)
    this.#lines.set(line, done)
    try {
      await turn
    } finally {
      if (this.#lines.get(line) === done) this.#lines.delete(line)
    }
    return await (acted as unknown as { readonly value: T }).value
  }
}
