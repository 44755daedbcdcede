import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ControlCommand } from '../../core/inbound.ts'
import { toGatewayError } from '../../core/errors.ts'
import type { Arrivals } from './arrivals.ts'
import type { XiaoyiRequest } from './codec.ts'
import { encodeCanceled, encodeCleared } from './frames.ts'
import { BoundedMap } from './bounded-map.ts'
import type { XiaoyiSettings } from './settings.ts'
import type { Task } from './task.ts'
import type { Tasks } from './tasks.ts'

export type ClearRequest = Extract<XiaoyiRequest, { kind: 'clear' }>
export type CancelRequest = Extract<XiaoyiRequest, { kind: 'cancel' }>

export interface ControlsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly settings: XiaoyiSettings
  readonly arrivals: Arrivals
  readonly tasks: Tasks
  /** The conversation an id stands for, and its key in the gateway. */
  resolve(sessionId: string): { readonly sessionId: string; readonly key: string }
  control(command: ControlCommand): Promise<unknown>
  onCleared(request: ClearRequest, sessionId: string, key: string): void
}

interface Outcome {
  readonly done: boolean
  readonly frame: string
}

/**
 * clearContext and tasks/cancel. The effect comes first, then the answer; the model is never involved. The gateway
 * closes every task it stops (through `deliver`) before `control` resolves, so the phone sees the end of the task before
 * the answer to its command.
 */
export class Controls {
  readonly #deps: ControlsDeps
  readonly #answers: BoundedMap<Promise<string>>

  constructor(deps: ControlsDeps) {
    this.#deps = deps
    const { maxRemembered, rememberMs } = deps.settings.limits
    this.#answers = new BoundedMap(maxRemembered, { clock: deps.clock, maxMs: rememberMs })
  }

  /** The frame to answer with. A repeated request is carried out once and answered every time; one that failed again. */
  answer(request: ClearRequest | CancelRequest): Promise<string> {
    const key = JSON.stringify([request.kind, request.sessionId, request.id])
    const known = request.id === '' ? undefined : this.#answers.get(key)
    if (known !== undefined) return known
    const outcome = request.kind === 'clear' ? this.#clear(request) : this.#cancel(request)
    const answer = outcome.then(({ frame, done }) => {
      if (!done) this.#answers.delete(key)
      return frame
    })
    this.#answers.set(key, answer)
    return answer
  }

  async #clear(request: ClearRequest): Promise<Outcome> {
    const { settings, tasks } = this.#deps
    const { sessionId, key } = this.#deps.resolve(request.sessionId)
    const done = await this.#withMutedTasks(tasks.ofSession(sessionId), async () => {
      await this.#endArrivals(sessionId)
      await this.#deps.control({ type: 'reset', key })
    })
    this.#deps.log.info('[CLEAR] a XiaoYi conversation was cleared', { session: key, id: request.id, done })
    if (done) this.#deps.onCleared(request, sessionId, key)
    return { done, frame: encodeCleared(settings.agentId, request, done ? 'cleared' : 'failed') }
  }

  async #cancel(request: CancelRequest): Promise<Outcome> {
    const { settings } = this.#deps
    const { sessionId, key } = this.#deps.resolve(request.sessionId)
    const target = this.#targetOf(request, sessionId)
    const done = await this.#withMutedTasks(this.#tasksOf(sessionId, target), async () => {
      await this.#endArrivals(sessionId, target)
      const everything: ControlCommand = { type: 'cancel', key }
      // Looked up only now: a message that was being stored has become a task meanwhile.
      const named = this.#tasksOf(sessionId, target).map(({ run }): ControlCommand => ({ type: 'cancel', key, run }))
      for (const command of target === undefined ? [everything] : named) await this.#deps.control(command)
    })
    const facts = { session: key, id: request.id, task: target, done }
    this.#deps.log.info('[CANCEL] a XiaoYi conversation was cancelled', facts)
    const answered = { ...request, taskId: request.taskId ?? request.id }
    return { done, frame: encodeCanceled(settings.agentId, answered, done ? 'canceled' : 'failed') }
  }

  /** The task id meant, or undefined for everything of the session: the real service names no task. */
  #targetOf(request: CancelRequest, sessionId: string): string | undefined {
    if (request.taskId !== undefined && request.taskId !== request.id) return request.taskId
    return this.#tasksOf(sessionId, request.id).length > 0 ? request.id : undefined
  }

  #tasksOf(sessionId: string, taskId: string | undefined): readonly Task[] {
    const tasks = this.#deps.tasks.ofSession(sessionId)
    return taskId === undefined ? tasks : tasks.filter((task) => task.address.taskId === taskId)
  }

  async #endArrivals(sessionId: string, taskId?: string): Promise<void> {
    await this.#deps.arrivals.abort(
      (arrival) => arrival.sessionId === sessionId && (taskId === undefined || arrival.request.taskId === taskId),
    )
  }

  /** From the first moment nothing more of these tasks appears; when the command fails they go on. */
  async #withMutedTasks(tasks: readonly Task[], command: () => Promise<void>): Promise<boolean> {
    for (const task of tasks) task.mute()
    try {
      await command()
      return true
    } catch (error) {
      const { code } = toGatewayError(error)
      // A conversation that was never begun is as empty as one that was cleared.
      if (code === 'SESSION_NOT_FOUND') return true
      this.#deps.log.error('a XiaoYi control request failed', { code })
      return false
    } finally {
      for (const task of tasks) task.unmute()
    }
  }
}
