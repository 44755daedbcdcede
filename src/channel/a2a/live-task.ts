import { deferred } from '../../base/async.ts'
import type { SessionEvent } from '../../core/event.ts'

/** A call that waits for a person. */
export interface Question {
  readonly id: string
  readonly tool: string
}

/**
 * What is known of a task that has not ended: the text of the answer as it grows, and whether a person is asked. A
 * preview in memory; readers look at it whenever it has changed, so a slow one skips and never piles up.
 */
export class LiveTask {
  /** A client here has asked to see what happens. */
  isFollowed = false
  #round = 0
  #text = ''
  #changedAt = 0
  #isRunning = false
  #questions: readonly Question[] = []
  #changed = deferred()
  #turned = deferred()

  get round(): number {
    return this.#round
  }

  /** Of this round. */
  get text(): string {
    return this.#text
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** Unix ms of the latest change of its state; 0 before the first. */
  get changedAt(): number {
    return this.#changedAt
  }

  get question(): Question | undefined {
    return this.#questions[0]
  }

  /** Settles at the next change of any kind. */
  get changed(): Promise<void> {
    return this.#changed.promise
  }

  /** Settles at the next change that is more than text. */
  get turned(): Promise<void> {
    return this.#turned.promise
  }

  /** True when its state has changed. */
  observe({ event, at }: SessionEvent): boolean {
    switch (event.type) {
      case 'turn-start':
        this.#isRunning = true
        return this.#turn(at)
      case 'text-delta':
        this.#text = event.round === this.#round ? this.#text + event.delta : event.delta
        this.#round = event.round
        this.#wake()
        return false
      case 'approval-requested': {
        const { id, tool } = event
        this.#questions = [...this.#questions.filter((one) => one.id !== id), { id, tool }]
        return this.#turn(at)
      }
      case 'approval-decided':
        this.#questions = this.#questions.filter(({ id }) => id !== event.id)
        return this.#turn(at)
      case 'thinking-delta':
      case 'tool-start':
      case 'tool-end':
      case 'model-retry':
      case 'round-end':
      case 'compaction-end':
      case 'step-cleanup-completed':
      case 'step-completed':
      case 'turn-end':
        return false
    }
  }

  /** It has ended, or nothing more comes here. */
  end(): void {
    this.#turn(this.#changedAt)
  }

  #turn(at: number): true {
    this.#changedAt = at
    this.#turned.resolve()
    this.#turned = deferred()
    this.#wake()
    return true
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = deferred()
  }
}
