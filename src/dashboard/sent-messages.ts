import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { decodeMessages, type MessageReport } from '../history/report.ts'
import type { ReplayedRequest } from '../history/request-record.ts'
import { estimateStoredTokens } from './stored-tokens.ts'

interface Amount {
  readonly messages: number
  readonly tokens: number
}

/** Which stored messages a request held, kept up from request to request: each costs what it does not share with the one before. */
export class SentMessages {
  readonly #branch: readonly Entry[]
  readonly #placeOf: ReadonlyMap<EntryId, number>
  /** Of all messages in front of each place. */
  readonly #before: readonly Amount[]
  /** One for each stored form; empty for one that cannot be read. */
  readonly #messages: (readonly MessageReport[])[] = []
  readonly #times = new Map<EntryId, number>()
  #count = 0
  #held: Amount = { messages: 0, tokens: 0 }
  #furthest = -1

  constructor(branch: readonly Entry[], placeOf: ReadonlyMap<EntryId, number>) {
    this.#branch = branch
    this.#placeOf = placeOf
    const before: Amount[] = [{ messages: 0, tokens: 0 }]
    for (const entry of branch) before.push(plus(before.at(-1), amountOf(entry)))
    this.#before = before
  }

  /** Messages that the request held, those that stand for no entry included. */
  get count(): number {
    return this.#count
  }

  follow({ messages, kept }: Pick<ReplayedRequest, 'messages' | 'kept'>): void {
    for (const gone of this.#messages.splice(kept)) {
      this.#count -= gone.length
      for (const { entries } of gone) for (const id of entries) this.#forget(id)
    }
    for (const added of messages.slice(this.#messages.length)) {
      const decoded = decodeMessages([added])
      this.#messages.push(decoded)
      this.#count += decoded.length
      for (const { entries } of decoded) for (const id of entries) this.#add(id)
    }
  }

  /** Stored messages in front of a place that no message of the request stands for. */
  leftOut(end: number): { readonly messages: number; readonly tokens: number } {
    return plus(this.#before[end], this.#heldBefore(end), -1)
  }

  #heldBefore(end: number): Amount {
    if (this.#furthest < end) return this.#held
    // A damaged record may name what came after its request.
    let held: Amount = { messages: 0, tokens: 0 }
    for (const id of this.#times.keys()) if ((this.#placeOf.get(id) ?? end) < end) held = plus(held, this.#amountOf(id))
    return held
  }

  #add(id: EntryId): void {
    const times = this.#times.get(id) ?? 0
    this.#times.set(id, times + 1)
    if (times > 0) return
    this.#held = plus(this.#held, this.#amountOf(id))
    this.#furthest = Math.max(this.#furthest, this.#placeOf.get(id) ?? -1)
  }

  #forget(id: EntryId): void {
    const times = this.#times.get(id) ?? 0
    if (times > 1) return void this.#times.set(id, times - 1)
    this.#times.delete(id)
    this.#held = plus(this.#held, this.#amountOf(id), -1)
  }

  #amountOf(id: EntryId): Amount {
    return amountOf(this.#branch[this.#placeOf.get(id) ?? -1])
  }
}

function amountOf(entry: Entry | undefined): Amount {
  return entry?.type === 'message' ? { messages: 1, tokens: estimateStoredTokens(entry) } : { messages: 0, tokens: 0 }
}

function plus(a: Amount = { messages: 0, tokens: 0 }, b: Amount, sign: 1 | -1 = 1): Amount {
  return { messages: a.messages + sign * b.messages, tokens: a.tokens + sign * b.tokens }
}
