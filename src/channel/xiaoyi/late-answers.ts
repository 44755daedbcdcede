import type { Clock } from '../../base/clock.ts'
import type { HttpClient } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { RunId } from '../../core/ids.ts'
import type { DeliveryFate, Reply, ReplyContent } from '../../core/inbound.ts'
import { GatewayError, toGatewayError } from '../../core/errors.ts'
import type { TextName } from './errors.ts'
import { phoneText, reasonFor } from './errors.ts'
import type { PushMessage } from './push.ts'
import { sendPush } from './push.ts'
import type { XiaoyiSettings } from './settings.ts'
import type { XiaoyiState } from './state.ts'
import { joined, type Task } from './task.ts'
import type { Tasks } from './tasks.ts'

export interface LateAnswersDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly http: HttpClient
  readonly settings: XiaoyiSettings
  readonly state: XiaoyiState
}

/** Tasks that end on the phone before their answer is there; the answer then goes out as a notification, if at all. */
export class LateAnswers {
  readonly #deps: LateAnswersDeps

  constructor(deps: LateAnswersDeps) {
    this.#deps = deps
  }

  /** Whether the phone already got the notice that this run's answer will not come here. */
  isLate(run: RunId): boolean {
    return this.#deps.state.get('closedRuns', run) !== undefined
  }

  async closeEarly(task: Task, why: 'limit' | 'restarting', tasks: Tasks): Promise<void> {
    const { state, settings } = this.#deps
    const sentence: TextName = this.#canPush(task.address.sessionId) ? `${why}Push` : why
    // Durable first: after a crash in between the phone waits a little longer, instead of getting two endings.
    await this.#saved(state.set('closedRuns', task.run, task.address.sessionId))
    const fate = await task.finishWithNotice(phoneText(sentence, settings.language))
    if (fate !== 'waiting') return tasks.end(task)
    // Nothing went out: its answer can still be its one ending.
    await this.#saved(state.delete('closedRuns', task.run))
  }

  async deliver({ run, content }: Reply, signal: AbortSignal): Promise<DeliveryFate> {
    const { state, log } = this.#deps
    const sessionId = state.get('closedRuns', run) ?? ''
    const canPush = this.#canPush(sessionId)
    if (!canPush) log.warn('a late XiaoYi answer stays in the transcript: no push', { run })
    const result = this.#resultOf(content)
    if (canPush && result !== undefined) {
      try {
        await this.push({ sessionId, ...result }, signal)
      } catch (error) {
        log.warn('a late XiaoYi answer could not be pushed', { code: toGatewayError(error).code })
        return 'waiting'
      }
    }
    await this.#saved(state.delete('closedRuns', run))
    return 'delivered'
  }

  /** Whether the person of this session can be notified. */
  #canPush(sessionId: string): boolean {
    const { state, settings } = this.#deps
    return settings.push !== undefined && state.get('pushIds', sessionId) !== undefined
  }

  /** A result was promised, so a failure is one too; of what its person stopped there is nothing to say. */
  #resultOf(content: ReplyContent): Pick<PushMessage, 'text' | 'state'> | undefined {
    switch (content.kind) {
      case 'complete':
        return { text: content.text, state: 'completed' }
      case 'error':
        return {
          text: joined(content.partialText, phoneText(reasonFor(content.code), this.#deps.settings.language)),
          state: 'failed',
        }
      case 'cancelled':
        return undefined
    }
  }

  async push(message: Omit<PushMessage, 'pushId'>, signal: AbortSignal): Promise<void> {
    const { state, settings } = this.#deps
    const { push } = settings
    const pushId = state.get('pushIds', message.sessionId)
    if (push === undefined || pushId === undefined) {
      throw new GatewayError('XIAOYI_PUSH_FAILED', 'no push address is known for this session', {
        configured: push !== undefined,
      })
    }
    await sendPush({ ...message, pushId }, { ...this.#deps, settings: push }, signal)
  }

  async #saved(saving: Promise<void>): Promise<void> {
    await saving.catch((error: unknown) => {
      this.#deps.log.error('the XiaoYi state could not be saved', { code: toGatewayError(error).code })
    })
  }
}
