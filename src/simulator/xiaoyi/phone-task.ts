import type { Clock, Timer } from '../../base/clock.ts'

const MAX_EXTRA_CHARS = 500

/** Where a task of the phone stands. */
export type PhoneTaskState = 'undelivered' | 'running' | 'done' | 'timed-out' | 'superseded'

/** One thing an agent did that a real phone would punish. `rule` names it; conformance cases refer to these names. */
export interface Violation {
  readonly rule: Rule
  readonly detail: string
  readonly taskId?: string
  readonly at: number
}

/** The rules a phone holds an agent to. */
export type Rule =
  | 'after-cancel'
  | 'after-final'
  | 'artifact-reused'
  | 'bad-detail'
  | 'bad-part'
  | 'bad-state'
  | 'before-init'
  | 'broken-text'
  | 'closed-late'
  | 'control-answer'
  | 'empty-replace'
  | 'idle-timeout'
  | 'missing-field'
  | 'missing-flag'
  | 'not-json'
  | 'other-link'
  | 'second-final'
  | 'superseded-task'
  | 'task-mismatch'
  | 'unknown-msg-type'
  | 'unknown-task'
  | 'wrong-agent'
  | 'wrong-id'
  | 'wrong-session'

/** An answer frame taken apart, in the order the phone received them. */
export interface SeenFrame {
  readonly at: number
  readonly endpoint: number
  readonly kind: 'status-update' | 'artifact-update' | 'error'
  readonly state?: string
  readonly text?: string
  readonly reasoning?: string
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly final?: boolean
  readonly artifactId?: string
  readonly errorCode?: number | string
  /** False when the phone did not show it: it came after the end. */
  readonly shown: boolean
}

export interface PhoneTaskOptions {
  readonly taskId: string
  readonly requestId: string
  readonly sessionId: string
  readonly request: string
  readonly endpoint: number
  readonly clock: Clock
  readonly idleLimitMs: number
  /** How many of its last frames it remembers. */
  readonly maxFrames: number
  onTimeout(): void
}

/** A message on the phone and what became visible below it. */
export class PhoneTask {
  readonly taskId: string
  readonly requestId: string
  readonly sessionId: string
  /** The frame as it was sent, for a redelivery. */
  readonly request: string
  endpoint: number
  /** The last ones. */
  readonly frames: SeenFrame[] = []
  /** Texts of status updates: they never go away again. */
  readonly statusTexts: string[] = []
  /** Cards, commands and files of the answer, as one line each. */
  readonly extras: string[] = []
  readonly artifactIds = new Set<string>()
  text = ''
  reasoning = ''
  lastState: string | undefined
  errorCode: number | string | undefined
  finals = 0
  canceledAt: number | undefined
  state: PhoneTaskState = 'running'
  isAcknowledged = false
  readonly #clock: Clock
  readonly #idleLimitMs: number
  readonly #maxFrames: number
  readonly #onTimeout: () => void
  #idle: Timer | undefined
  #lastChunkLength = 0

  constructor(options: PhoneTaskOptions) {
    this.taskId = options.taskId
    this.requestId = options.requestId
    this.sessionId = options.sessionId
    this.request = options.request
    this.endpoint = options.endpoint
    this.#clock = options.clock
    this.#idleLimitMs = options.idleLimitMs
    this.#maxFrames = options.maxFrames
    this.#onTimeout = options.onTimeout
    this.touch()
  }

  remember(frame: SeenFrame): void {
    this.isAcknowledged ||= frame.kind === 'status-update' && frame.state === 'working'
    keepLast(this.frames, frame, this.#maxFrames)
  }

  /** The phone waits this long for the next frame, then shows that the network is busy. */
  touch(): void {
    this.#idle?.cancel()
    if (this.state !== 'running') return
    this.#idle = this.#clock.after(this.#idleLimitMs, () => {
      this.state = 'timed-out'
      this.#onTimeout()
    })
  }

  /** No agent was there at first; now there is one. */
  deliverLate(endpoint: number): void {
    if (this.state !== 'undelivered') return
    this.endpoint = endpoint
    this.state = 'running'
    this.touch()
  }

  end(state: Exclude<PhoneTaskState, 'running'>): void {
    this.state = state
    this.#idle?.cancel()
  }

  showExtra(part: Record<string, unknown>): void {
    const { kind, ...content } = part
    keepLast(this.extras, `[${String(kind)}] ${JSON.stringify(content).slice(0, MAX_EXTRA_CHARS)}`, this.#maxFrames)
  }

  /** The rules real phones were seen to follow: replacing replaces all, appending adds, a reused artifact overwrites. */
  show(text: string, append: boolean, artifactId: string): void {
    if (!append) this.text = text
    else if (this.artifactIds.has(artifactId))
      this.text = this.text.slice(0, -this.#lastChunkLength || undefined) + text
    else this.text += text
    this.#lastChunkLength = text.length
    this.artifactIds.add(artifactId)
    for (const oldest of this.artifactIds) {
      if (this.artifactIds.size <= this.#maxFrames) break
      this.artifactIds.delete(oldest)
    }
  }
}

/** Adds one and drops the oldest; a few at a time, because dropping moves all others. */
export function keepLast<T>(list: T[], added: T, max: number): void {
  list.push(added)
  if (list.length > max * 1.25) list.splice(0, list.length - max)
}
