import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import type { Hold } from '../channel.ts'

export interface HoldingDeps {
  readonly clock: Clock
  hold(): Promise<Hold | undefined>
  connect(): Promise<void>
  /** Another node connects, or may do so. */
  disconnect(): Promise<void>
}

/** How soon a node notices that it may connect. */
const TRY_EVERY_MS = 1_000

/** The service takes one set of links for an agent: of several nodes one has them, and another when that one is gone. */
export class Holding {
  readonly #deps: HoldingDeps
  readonly #closing = new AbortController()
  #hold: Hold | undefined
  #starting: Promise<void> | undefined
  #keeping: Promise<void> | undefined

  constructor(deps: HoldingDeps) {
    this.#deps = deps
  }

  /** Whether the links are this node's. */
  get isHolder(): boolean {
    return this.#hold?.lost.aborted === false
  }

  get hasSuccessor(): boolean {
    return this.#hold?.hasSuccessor ?? true
  }

  /** Resolves when this node is connecting, or another one has the links. */
  async start(): Promise<void> {
    this.#starting = this.#try()
    await this.#starting
    this.#keeping = this.#keep()
  }

  /** Ends the trying; the links are still this node's until `release`. */
  async close(): Promise<void> {
    this.#closing.abort()
    // What is connecting now is to be disconnected by the caller.
    await this.#starting?.catch(() => undefined)
    await this.#keeping
  }

  async release(): Promise<void> {
    const hold = this.#hold
    this.#hold = undefined
    // It ends with this node's lease if that does not succeed.
    await hold?.release().catch(() => undefined)
  }

  async #keep(): Promise<void> {
    const { clock, disconnect } = this.#deps
    const { signal } = this.#closing
    while (!signal.aborted) {
      if (this.#hold === undefined) {
        await sleep(clock, TRY_EVERY_MS, signal).catch(() => undefined)
        if (!signal.aborted) await this.#try().catch(() => undefined)
        continue
      }
      await untilAborted(this.#hold.lost, signal)
      if (signal.aborted) return
      this.#hold = undefined
      await disconnect()
    }
  }

  async #try(): Promise<void> {
    const hold = await this.#deps.hold()
    if (hold === undefined) return
    this.#hold = hold
    try {
      await this.#deps.connect()
    } catch (error) {
      await this.release()
      throw error
    }
  }
}

function untilAborted(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const signal of signals) signal.removeEventListener('abort', done)
      resolve()
    }
    for (const signal of signals) signal.addEventListener('abort', done)
    if (signals.some(({ aborted }) => aborted)) done()
  })
}
