import type { JsonObject } from '../../base/json.ts'
import type { RunId } from '../../core/ids.ts'
import type { ReplyAddress } from './frames.ts'
import { BoundedMap } from './bounded-map.ts'
import type { TaskDeps } from './task.ts'
import { Task } from './task.ts'

/** What travels with a message as its opaque `replyTo`. */
export interface ReplyTo extends ReplyAddress {
  /** URL of the link it came over; an index could mean another server after a restart. */
  readonly link: string
}

export interface TasksDeps extends TaskDeps {
  indexOf(url: string): number | undefined
}

/** The tasks a phone is waiting for, found by run, by session or by their own id. */
export class Tasks {
  readonly #deps: TasksDeps
  readonly #byRun = new Map<RunId, Task>()
  readonly #ended: BoundedMap<true>

  constructor(deps: TasksDeps) {
    this.#deps = deps
    this.#ended = new BoundedMap(deps.settings.limits.maxRemembered)
  }

  get size(): number {
    return this.#byRun.size
  }

  get(run: RunId): Task | undefined {
    return this.#byRun.get(run)
  }

  /** True when the task of this run has had its terminal frame from this process. */
  hasEnded(run: RunId): boolean {
    return this.#ended.has(run)
  }

  all(): readonly Task[] {
    return [...this.#byRun.values()]
  }

  ofSession(sessionId: string): readonly Task[] {
    return this.all().filter((task) => task.address.sessionId === sessionId)
  }

  /**
   * The task of a run, made when it is first heard of: by its acceptance, by its first event, or by its reply after a
   * restart. Undefined when it is over.
   */
  open(run: RunId, replyTo: JsonObject): Task | undefined {
    const known = this.#byRun.get(run)
    if (known !== undefined) return known
    const to = fromReplyTo(replyTo)
    if (this.#ended.has(run) || to === undefined) return undefined
    const task = new Task(run, to, this.#deps.indexOf(to.link) ?? 0, this.#deps)
    this.#byRun.set(run, task)
    return task
  }

  end(task: Task): void {
    task.abandon()
    this.#byRun.delete(task.run)
    this.#ended.set(task.run, true)
  }

  /** Sent, perhaps: the reply may come again, and then it is sent again. */
  forget(task: Task): void {
    task.abandon()
    this.#byRun.delete(task.run)
  }
}

export function toReplyTo(address: ReplyAddress, link: string): JsonObject {
  return { sessionId: address.sessionId, taskId: address.taskId, requestId: address.requestId, link }
}

export function fromReplyTo(replyTo: JsonObject): ReplyTo | undefined {
  const { sessionId, taskId, requestId, link } = replyTo
  if (typeof sessionId !== 'string' || typeof taskId !== 'string') return undefined
  if (typeof requestId !== 'string' || typeof link !== 'string') return undefined
  return { sessionId, taskId, requestId, link }
}
