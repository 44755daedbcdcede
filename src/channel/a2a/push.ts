import type { JsonObject } from '../../base/json.ts'
import type { RunId } from '../../core/ids.ts'
import type { AcceptedMessage } from '../../core/inbound.ts'
import { Callbacks, type CallbackOptions } from '../callbacks.ts'
import type { PushConfig, PushConfigs } from './push-configs.ts'
import type { A2aReplyTo, TaskView } from './task.ts'

/** How long the end of a task is offered to its address; other changes are stale much sooner. */
const END_FOR_MS = 24 * 3_600_000
const CHANGE_FOR_MS = 60_000

export interface PushOptions extends Omit<CallbackOptions, 'onDelivered'> {
  readonly configs: PushConfigs
}

/** Tells the addresses that a task's client named about its changes. Its end is sent until it is accepted, over restarts. */
export class Push {
  readonly #options: PushOptions
  readonly #callbacks: Callbacks
  /** Ended tasks, with the jobs that are still to be taken. */
  readonly #unconfirmed = new Map<RunId, Set<string>>()
  /** What is sent has to be put into the form of its protocol version first, in the order it happened. */
  #order: Promise<void> = Promise.resolve()
  #onConfirmed: (run: RunId) => void = () => undefined

  constructor(options: PushOptions) {
    this.#options = options
    this.#callbacks = new Callbacks({ ...options, onDelivered: (id) => this.#taken(id) })
  }

  /** Those that came with the message itself, until they are changed. */
  async configsOf({ run, replyTo }: Pick<AcceptedMessage, 'run' | 'replyTo'>): Promise<readonly PushConfig[]> {
    return (await this.#options.configs.of(run)) ?? (replyTo as A2aReplyTo).push ?? []
  }

  get pending(): number {
    return this.#callbacks.pending
  }

  /** `onConfirmed`: every address has taken the end of this task. */
  start(onConfirmed: (run: RunId) => void): void {
    this.#onConfirmed = onConfirmed
  }

  changed(task: TaskView, message: AcceptedMessage): void {
    const { id: taskId, contextId, status } = task
    this.#inOrder(taskId, async () => {
      for (const config of await this.configsOf(message))
        await this.#send(taskId, config, { statusUpdate: { taskId, contextId, status } }, CHANGE_FOR_MS)
    })
  }

  /** False when no receiver is registered. `endedAt`: of a task that ended before the last stop. */
  async ended(task: TaskView, message: AcceptedMessage, endedAt: number | undefined): Promise<boolean> {
    const { run } = message
    const configs = await this.configsOf(message)
    if (configs.length === 0) return false
    this.#unconfirmed.set(run, new Set(configs.map(({ id }) => jobOf(run, id))))
    const age = endedAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - endedAt)
    this.#inOrder(run, async () => {
      for (const config of configs) await this.#send(run, config, { task }, END_FOR_MS - age)
    })
    return true
  }

  /** Durable when it resolves. One of the same id is replaced. */
  async add(message: AcceptedMessage, config: PushConfig): Promise<void> {
    const others = (await this.configsOf(message)).filter(({ id }) => id !== config.id)
    await this.#options.configs.set(message.run, [...others, config])
  }

  /** Durable when it resolves; nothing is sent there any more. */
  async remove(message: AcceptedMessage, config: string): Promise<void> {
    const others = (await this.configsOf(message)).filter(({ id }) => id !== config)
    await this.#options.configs.set(message.run, others)
    this.#callbacks.cancel(jobOf(message.run, config))
    this.#taken(jobOf(message.run, config))
  }

  async close(): Promise<void> {
    await this.#order
    await this.#callbacks.close()
  }

  #inOrder(run: string, work: () => Promise<void>): void {
    this.#order = this.#order.then(work).catch((error: unknown) => {
      this.#options.log.error('a push notification could not be made', { task: run, cause: nameOf(error) })
    })
  }

  async #send(run: string, config: PushConfig, response: JsonObject, forMs: number): Promise<void> {
    const { id, url, token, authentication, version } = config
    const headers = {
      ...(token === undefined ? {} : { 'x-a2a-notification-token': token }),
      ...(authentication === undefined
        ? {}
        : { authorization: `${authentication.scheme} ${authentication.credentials}`.trim() }),
    }
    const { body, type } = await encodePush(version, response)
    this.#callbacks.send({ id: jobOf(run, id), url, headers: { ...headers, 'content-type': type }, body, forMs })
  }

  #taken(job: string): void {
    const run = job.slice(0, job.indexOf(' ')) as RunId
    const waiting = this.#unconfirmed.get(run)
    waiting?.delete(job)
    if (waiting?.size !== 0) return
    this.#unconfirmed.delete(run)
    this.#onConfirmed(run)
  }
}

function jobOf(run: string, config: string): string {
  return `${run} ${config}`
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}

/** Version 0.3 has another shape, and its translator is only loaded for it. */
async function encodePush(version: string, response: JsonObject): Promise<{ body: string; type: string }> {
  if (version.startsWith('0.')) return (await import('./legacy-push.ts')).encodeLegacyPush(response)
  return { body: JSON.stringify(response), type: 'application/a2a+json' }
}
