import { sleep } from '../../base/async.ts'
import { backoffDelay, type Clock } from '../../base/clock.ts'
import type { Database, Listening } from '../../base/database.ts'
import type { Ids } from '../../base/ids.ts'
import { isRecord } from '../../base/json.ts'
import type { Notice } from '../storage.ts'

export interface NoticesOptions {
  readonly database: Pick<Database, 'query' | 'listen'>
  readonly clock: Clock
  readonly ids: Ids
  readonly node: string
  readonly schema: string
  /** Of another node; also what a poll found. */
  heard(notice: Notice): void
  /** The connection that listens is there again: something may have been missed. */
  onListening(): void
}

const NOTIFY = { name: 'notify', text: 'select pg_notify($1, payload) from unnest($2::text[]) as payload' }
/** The server refuses 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900
/** Notices that wait for the database; the oldest go first: a poll finds what matters. */
const MAX_WAITING = 1_000
const PAUSES = { firstMs: 100, maxMs: 2_000, jitter: 0.2 }

/**
 * Hints between nodes through `NOTIFY`. They are sent beside the commits, never inside one: a commit that notifies makes
 * all commits of the database wait in one line.
 */
export class Notices {
  readonly #options: NoticesOptions
  readonly #channel: string
  readonly #stopping = new AbortController()
  #waiting: string[] = []
  #sending: Promise<void> | undefined
  #listening: Promise<void> | undefined

  constructor(options: NoticesOptions) {
    this.#options = options
    this.#channel = `clew ${options.schema}`
  }

  start(): void {
    this.#listening = this.#keepListening().catch(() => undefined)
  }

  send(notice: Notice): void {
    const payload = JSON.stringify({ from: this.#options.node, notice })
    if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES) return
    this.#waiting.push(payload)
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()
    this.#sending ??= Promise.resolve().then(() => this.#sendAll())
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#listening
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const payloads = this.#waiting
      this.#waiting = []
      // A hint that is lost costs a second: the poll of the other node finds what it was about.
      await this.#options.database.query(NOTIFY, [this.#channel, payloads]).catch(() => undefined)
    }
    this.#sending = undefined
  }

  async #keepListening(): Promise<void> {
    const { clock, ids, onListening } = this.#options
    const { signal } = this.#stopping
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#listenOnce(() => {
          attempt = 0
          onListening()
        })
      } catch {
        // The next try follows, however long the database stays away.
      }
      await sleep(clock, backoffDelay(attempt, PAUSES, ids), signal)
    }
  }

  /** Resolves when the connection is lost, or has been closed. */
  async #listenOnce(begun: () => void): Promise<void> {
    const { database } = this.#options
    const { signal } = this.#stopping
    let end = (): void => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const listening: Listening = await database.listen([this.#channel], (payload) => this.#read(payload), end)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    begun()
    await ended
    signal.removeEventListener('abort', end)
    await listening.close()
  }

  #read(payload: string): void {
    let said: unknown
    try {
      said = JSON.parse(payload)
    } catch {
      return
    }
    if (!isRecord(said) || said['from'] === this.#options.node || !isRecord(said['notice'])) return
    this.#options.heard(said['notice'] as unknown as Notice)
  }
}
