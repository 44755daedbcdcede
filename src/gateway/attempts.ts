import type { Log } from '../base/log.ts'
import type { RunId } from '../core/ids.ts'
import {
  isEphemeralAccount,
  type AcceptedMessage,
  type DeliveryFate,
  type Reply,
  type ReplyContent,
} from '../core/inbound.ts'
import type { Committed, Storage, StoredMessage } from '../storage/storage.ts'
import type { Channels, Destination } from './delivery.ts'

export interface AttemptsDeps {
  readonly log: Log
  readonly storage: Pick<Storage, 'inbox' | 'outbox' | 'transact'>
  readonly channels: Channels
}

interface Attempt {
  /** An earlier attempt may have reached the peer. */
  readonly redelivered: boolean
  /** The peer asked for it: it goes out even while an earlier attempt is unconfirmed. */
  readonly requested?: boolean
}

interface Attempted {
  readonly message: AcceptedMessage
  readonly fate: DeliveryFate
}

/** Other accounts that sent the same message while it was being worked on; more of them have to ask again. */
const MAX_COPIES = 8

/**
 * Answers on their way to their channels: who sends which one, that only one attempt counts as the first, and what
 * became of it.
 */
export class Attempts {
  readonly #deps: AttemptsDeps
  /** Being made durable: their first attempt is still to come, and goes to wherever they are redirected meanwhile. */
  readonly #firstPending = new Set<RunId>()
  /** Attempts under way, per run. */
  readonly #sending = new Map<RunId, number>()
  readonly #underway = new Set<Promise<void>>()
  /** Their account became reachable again while an attempt was under way: try once more if that one fails. */
  readonly #tryAgain = new Set<RunId>()
  readonly #copies = new Map<RunId, Destination[]>()

  constructor(deps: AttemptsDeps) {
    this.#deps = deps
  }

  /**
   * The first attempt of an answer, once it is durable, and the copies others asked for. Nothing for a message that had
   * another answer before. Resolves when it has begun.
   */
  async first(run: RunId, committed: Promise<Committed>): Promise<void> {
    const answered = committed.then(({ answered: all }) => all.find(({ message }) => message.run === run))
    await this.#sendFirst(run, answered)
    const known = await answered
    if (known === undefined) return
    for (const to of this.#copies.get(run) ?? []) this.#sendCopy(known, to)
    this.#copies.delete(run)
  }

  /** The peer sent its message again and gets the answer again, unless its first attempt is still to come. */
  repeat(run: RunId): void {
    if (!this.#firstPending.has(run)) void this.#send(run, { redelivered: true, requested: true })
  }

  /** The account can be reached. Resolves when the answer is written, or cannot be; one under way is left to itself. */
  async offer(run: RunId): Promise<void> {
    if (this.#sending.has(run)) this.#tryAgain.add(run)
    else await this.#offer(run)
  }

  /** The same for a peer that asked for what it had before. */
  offerAgain(run: RunId): Promise<void> {
    return this.#offer(run, true)
  }

  /** For another account that sent the same message: now, or when there is an answer. */
  async copy(run: RunId, to: Destination): Promise<void> {
    const known = await this.#deps.storage.inbox.find(run)
    if (known === undefined) return
    if (known.state !== 'open') return this.#sendCopy(known, to)
    const others = (this.#copies.get(run) ?? []).filter(({ account }) => account !== to.account)
    this.#copies.set(run, [...others, to].slice(-MAX_COPIES))
  }

  /** Resolves when every attempt has its fate. */
  async close(): Promise<void> {
    while (this.#underway.size > 0) await Promise.all(this.#underway)
  }

  async #offer(run: RunId, requested = false): Promise<void> {
    const known = await this.#deps.storage.inbox.find(run)
    if (known === undefined || this.#firstPending.has(run)) return
    const wasSent = known.state !== 'waiting'
    if (wasSent) return this.#send(run, { redelivered: true, requested })
    const marked = this.#deps.storage.outbox
      .take(run)
      .then((isOurs) => (isOurs ? this.#deps.storage.inbox.find(run) : undefined))
    const { written } = await this.#sendFirst(run, marked)
    await written
  }

  /**
   * Once what must precede it is durable. Another sender meanwhile leaves it to us: two would both believe to be the
   * first. Resolves when the attempt has begun.
   */
  async #sendFirst(
    run: RunId,
    durable: Promise<StoredMessage | undefined>,
  ): Promise<{ readonly written: Promise<void> }> {
    const release = this.#claim(run)
    this.#firstPending.add(run)
    try {
      const known = await durable
      if (known === undefined) return { written: Promise.resolve() }
      return { written: this.#send(run, { redelivered: false }, known) }
    } finally {
      this.#firstPending.delete(run)
      release()
    }
  }

  /** Resolves when it is written, or cannot be; what became of it is stored after that. */
  #send(run: RunId, attempt: Attempt, known?: StoredMessage): Promise<void> {
    const release = this.#claim(run)
    const attempted = this.#attempt(run, attempt, known)
    void this.#own(
      attempted
        .then((outcome) => outcome && this.#store(outcome, attempt))
        .finally(() => {
          release()
          if (!this.#sending.has(run) && this.#tryAgain.delete(run)) void this.#own(this.#tryOnceMore(run), run)
        }),
      run,
    )
    return attempted.then(
      () => undefined,
      () => undefined,
    )
  }

  async #tryOnceMore(run: RunId): Promise<void> {
    const known = await this.#deps.storage.inbox.find(run)
    if (known === undefined || known.state === 'open' || known.state === 'delivered') return
    await this.#offer(run)
  }

  async #attempt(
    run: RunId,
    { redelivered, requested }: Attempt,
    stored?: StoredMessage,
  ): Promise<Attempted | undefined> {
    const known = stored ?? (await this.#deps.storage.inbox.find(run))
    if (known?.content === undefined) return undefined
    const fate = await this.#deps.channels.deliver({
      redelivered,
      ...replyOf(known, known.content),
      ...(requested === true ? { requested } : {}),
    })
    return { message: known.message, fate }
  }

  async #store({ message, fate }: Attempted, { redelivered }: Attempt): Promise<void> {
    const { channel, account, run } = message
    const { storage } = this.#deps
    if (fate === 'waiting' && isEphemeralAccount(account)) await storage.outbox.abandon(channel, account)
    // "Waiting" means that nothing was ever sent; an earlier attempt, or another one right now, may have been.
    if (fate === 'unknown' || (fate === 'waiting' && (redelivered || (this.#sending.get(run) ?? 0) > 1))) return
    await storage.transact([{ kind: 'delivery', run, state: fate }])
  }

  /** Not kept in the outbox: a client that misses it sends the message again. */
  #sendCopy(known: StoredMessage, to: Destination): void {
    if (known.content === undefined) return
    const reply = { ...replyOf(known, known.content), ...to, redelivered: true }
    const sending = this.#deps.storage.outbox.nextSeq(reply.channel, reply.account).then(async (seq) => {
      await this.#deps.channels.deliver({ ...reply, seq })
    })
    void this.#own(sending, reply.run)
  }

  #claim(run: RunId): () => void {
    this.#sending.set(run, (this.#sending.get(run) ?? 0) + 1)
    return () => {
      const left = (this.#sending.get(run) ?? 1) - 1
      if (left === 0) this.#sending.delete(run)
      else this.#sending.set(run, left)
    }
  }

  #own(work: Promise<void>, run: RunId): Promise<void> {
    const owned = work.catch((error: unknown) => {
      // The answer is durable and stays as it was: it is offered again when its account is back.
      this.#deps.log.warn('the delivery state of a reply was not stored', {
        run,
        reason: error instanceof Error ? error.name : 'unknown',
      })
    })
    this.#underway.add(owned)
    return owned.finally(() => this.#underway.delete(owned))
  }
}

export function replyOf({ message, seq }: StoredMessage, content: ReplyContent): Omit<Reply, 'redelivered'> {
  const { run, key, channel, account, messageId, replyTo } = message
  return { run, key, channel, account, messageId, replyTo, seq, content }
}
