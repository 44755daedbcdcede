import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/async.ts'
import type { Owner } from '../core/change.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { ReplyContent } from '../core/inbound.ts'
import type { Claim, NodeLoad, Storage, StoredMessage } from '../storage/storage.ts'

export interface ResumptionLimits {
  /** After so many starts that ended unforeseen while a message was worked on, it is answered with an error. */
  readonly messageAttempts: number
}

export interface ResumptionDeps extends ResumptionLimits {
  readonly clock: Clock
  readonly storage: Storage
}

/** How long a message that may have ended the last start has the gateway to itself, as far as its like go. */
const ALONE_MS = 1_000

/**
 * `converse`: as any other · `record`: not again; write it down and answer with an error · `refuse`: not even writing it down
 * went well.
 */
export type Verdict = 'converse' | 'record' | 'refuse'

/**
 * What the messages of earlier starts may do now. A message can end the whole process: a defect, memory, a loop that only
 * `kill -9` ends. It is durable, so it would do that again at every start. Therefore each start that finds the one before it
 * ended unforeseen counts that against the messages it was working on.
 */
export class Resumption {
  readonly #deps: ResumptionDeps
  readonly #deaths = new Map<RunId, number>()
  /** One at a time, so that the next start can tell which of them it was. */
  #last: Promise<void> = Promise.resolve()

  constructor(deps: ResumptionDeps) {
    this.#deps = deps
  }

  /** What has to be resumed, oldest first. */
  async begin(load: () => NodeLoad): Promise<readonly StoredMessage[]> {
    const { storage } = this.#deps
    await storage.start(load)
    const open = await storage.inbox.open()
    const ours = new Set<SessionKey>()
    for (const key of new Set(open.map(({ message }) => message.key))) {
      const claim = await storage.ownership.claim(key)
      if (claim === undefined) continue
      ours.add(key)
      this.suspect(claim)
    }
    // Once more: what another node did before its session was taken is not done again.
    return (await storage.inbox.open()).filter(({ message }) => ours.has(message.key))
  }

  /** Messages of a session that was taken: those that earlier ends may be the fault of begin one after the other. */
  suspect({ suspects }: Claim): void {
    for (const { run, deaths } of suspects) this.#deaths.set(run, deaths)
  }

  /** Waits until a message may begin. Call `leave` with its run when it has ended. */
  async enter(run: RunId, signal: AbortSignal): Promise<{ readonly verdict: Verdict; leave(): void }> {
    const deaths = this.#deaths.get(run)
    if (deaths === undefined) return { verdict: 'converse', leave: () => undefined }
    const release = await this.#waitInLine(signal)
    const timer = this.#deps.clock.after(ALONE_MS, release)
    await noteResumed(this.#deps.storage, run)
    this.#deaths.delete(run)
    return {
      verdict: this.#verdict(deaths),
      leave: () => {
        timer.cancel()
        release()
      },
    }
  }

  /** Resolves with what lets the next one begin. One that is stopped while it waits leaves the line. */
  async #waitInLine(signal: AbortSignal): Promise<() => void> {
    const before = this.#last
    const mine = deferred()
    this.#last = mine.promise
    const stopped = deferred()
    const onAbort = (): void => stopped.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    await Promise.race([before, stopped.promise])
    signal.removeEventListener('abort', onAbort)
    if (signal.aborted) void before.then(() => mine.resolve())
    signal.throwIfAborted()
    return () => mine.resolve()
  }

  #verdict(deaths: number): Verdict {
    const { messageAttempts } = this.#deps
    if (messageAttempts === 0 || deaths < messageAttempts) return 'converse'
    return deaths === messageAttempts ? 'record' : 'refuse'
  }
}

/** To be durable before a message that has ended starts begins again, if the disk has room for it. */
export async function noteResumed(storage: Storage, run: RunId, owner?: Owner): Promise<void> {
  await storage.transact([{ kind: 'resumed', run }], owner).catch(() => undefined)
}

export const POISONED = {
  kind: 'error',
  code: 'MESSAGE_POISONED',
  message: 'the gateway ended unforeseen each time it worked on this message; it is not tried again',
  partialText: '',
} as const satisfies ReplyContent
