import type { Clock } from '../../base/clock.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { PhoneTaskOptions, Rule, SeenFrame, Violation } from './phone-task.ts'
import { keepLast, PhoneTask } from './phone-task.ts'
import type { Switches } from './switches.ts'

/** A clear or cancel the user tapped, and how it was answered. */
export interface PhoneControl {
  readonly kind: 'clear' | 'cancel'
  readonly id: string
  /** As it was named in the request: the answer must name the same. */
  readonly sessionId: string
  /** Tasks that were running when it was asked. */
  readonly tasks: readonly PhoneTask[]
  readonly askedAt: number
  answers: { readonly state: string; readonly at: number; readonly endpoint: number; readonly resultId?: string }[]
}

const STATES = new Set(['submitted', 'working', 'input-required', 'completed', 'canceled', 'failed', 'unknown'])
const CONTROL_STATES = new Set(['cleared', 'canceled', 'failed', 'unknown'])

/** What a phone notices. */
export interface PhoneEvents {
  onChange?: (task: PhoneTask, frame: SeenFrame) => void
  onControl?: (control: PhoneControl) => void
  onViolation?: (violation: Violation) => void
  /** No frame came for so long that the phone gave up. */
  onTimeout?: (task: PhoneTask) => void
  /** An agent connected, left, or was refused, as a sentence. */
  onAgent?: (what: string) => void
}

/** What it remembers: the last of each. */
export interface PhoneLimits {
  readonly maxTasks: number
  readonly maxFrames: number
  readonly maxViolations: number
}

const DEFAULT_LIMITS: PhoneLimits = { maxTasks: 10_000, maxFrames: 10_000, maxViolations: 20_000 }

/** Shows what a real phone would show, and writes down everything a real phone would have choked on. */
export class VirtualPhone {
  readonly violations: Violation[] = []
  readonly controls: PhoneControl[] = []
  readonly events: PhoneEvents = {}
  readonly #clock: Clock
  readonly #switches: Switches
  readonly #agentId: string
  readonly #limits: PhoneLimits
  readonly #tasks: PhoneTask[] = []
  /** The newest of each id. */
  readonly #taskOf = new Map<string, PhoneTask>()
  /** The oldest of each id. */
  readonly #controlOf = new Map<string, PhoneControl>()

  constructor(agentId: string, clock: Clock, switches: Switches, limits: Partial<PhoneLimits> = {}) {
    this.#agentId = agentId
    this.#clock = clock
    this.#switches = switches
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
  }

  /** Newest last. */
  get tasks(): readonly PhoneTask[] {
    return this.#tasks
  }

  get running(): readonly PhoneTask[] {
    return this.#tasks.filter((task) => task.state === 'running')
  }

  addTask(options: Omit<PhoneTaskOptions, 'clock' | 'idleLimitMs' | 'maxFrames' | 'onTimeout'>): PhoneTask {
    const { idleLimitMs, supersedeOnNewTask } = this.#switches
    if (supersedeOnNewTask) {
      for (const task of this.running) if (task.sessionId === options.sessionId) task.end('superseded')
    }
    const { maxFrames, maxTasks } = this.#limits
    const onTimeout = (): void => this.events.onTimeout?.(task)
    const task: PhoneTask = new PhoneTask({ ...options, clock: this.#clock, idleLimitMs, maxFrames, onTimeout })
    if (this.#tasks.length >= maxTasks) this.#forgetOne()
    this.#tasks.push(task)
    this.#taskOf.set(task.taskId, task)
    return task
  }

  /** The oldest that is over; the oldest at all when none is. */
  #forgetOne(): void {
    const over = this.#tasks.findIndex((task) => task.state !== 'running')
    const [forgotten] = this.#tasks.splice(Math.max(0, over), 1)
    if (forgotten === undefined) return
    if (forgotten.state === 'running') forgotten.end('timed-out')
    if (this.#taskOf.get(forgotten.taskId) === forgotten) this.#taskOf.delete(forgotten.taskId)
  }

  addControl(control: Omit<PhoneControl, 'answers' | 'askedAt'>): PhoneControl {
    const added = { ...control, askedAt: this.#clock.now(), answers: [] }
    keepLast(this.controls, added, this.#limits.maxTasks)
    if (!this.#controlOf.has(added.id)) this.#controlOf.set(added.id, added)
    for (const oldest of this.#controlOf.keys()) {
      if (this.#controlOf.size <= this.#limits.maxTasks) break
      this.#controlOf.delete(oldest)
    }
    return added
  }

  /** One frame of the agent, as the service hands it on. */
  receive(endpoint: number, frame: Record<string, unknown>): void {
    const { agentId, sessionId, taskId, msgDetail } = frame
    if (agentId !== this.#agentId) return this.violate('wrong-agent', 'agentId is not ours')
    if (typeof sessionId !== 'string' || typeof taskId !== 'string' || typeof msgDetail !== 'string') {
      return this.violate('missing-field', 'sessionId, taskId and msgDetail must be strings')
    }
    const detail = parseJson(msgDetail)
    if (!isRecord(detail) || detail['jsonrpc'] !== '2.0') {
      return this.violate('bad-detail', 'msgDetail is no JSON-RPC 2.0 object', taskId)
    }
    const result = isRecord(detail['result']) ? detail['result'] : undefined
    if (result !== undefined && result['kind'] === undefined) return this.#control(endpoint, sessionId, detail, result)
    this.#answer(endpoint, { sessionId, taskId }, detail, result)
  }

  /** Stops waiting for anything. */
  close(): void {
    for (const task of this.running) task.end('timed-out')
  }

  violate(rule: Rule, detail: string, taskId?: string): void {
    const violation = { rule, detail, at: this.#clock.now(), ...(taskId === undefined ? {} : { taskId }) }
    keepLast(this.violations, violation, this.#limits.maxViolations)
    this.events.onViolation?.(violation)
  }

  #control(
    endpoint: number,
    sessionId: string,
    detail: Record<string, unknown>,
    result: Record<string, unknown>,
  ): void {
    const control = this.#controlOf.get(String(detail['id']))
    const status = isRecord(result['status']) ? result['status'] : {}
    const { state } = status
    if (control === undefined) return this.violate('control-answer', 'answers no request of this phone')
    if (control.sessionId !== sessionId) this.violate('wrong-session', 'a control answer names another session')
    if (typeof state !== 'string' || !CONTROL_STATES.has(state)) {
      return this.violate('bad-state', 'the state of a control answer is unknown')
    }
    if (state === 'canceled' || state === 'cleared') {
      for (const task of control.tasks) {
        // Without its own final the task spins on; the answer to the command does not end it.
        task.canceledAt ??= this.#clock.now()
      }
    }
    const resultId = typeof result['id'] === 'string' ? { resultId: result['id'] } : {}
    control.answers.push({ state, at: this.#clock.now(), endpoint, ...resultId })
    this.events.onControl?.(control)
  }

  #answer(
    endpoint: number,
    envelope: { readonly sessionId: string; readonly taskId: string },
    detail: Record<string, unknown>,
    result: Record<string, unknown> | undefined,
  ): void {
    const task = this.#taskOf.get(envelope.taskId)
    if (task === undefined) {
      // An error may answer a frame that never became a task.
      if (result === undefined && isRecord(detail['error'])) return
      return this.violate('unknown-task', 'the phone has no such task', envelope.taskId)
    }
    this.#checkAddress(task, envelope, detail, result)
    if (endpoint !== task.endpoint && this.#switches.answersOnOtherLink === 'drop') {
      return this.violate('other-link', 'the answer came over another link and was dropped', task.taskId)
    }
    const shown = this.#accepts(task, result)
    const frame = this.#apply(task, endpoint, detail, result, shown)
    task.remember(frame)
    if (shown && frame.final === true) {
      task.finals++
      task.end('done')
    } else if (shown) task.touch()
    else if (frame.final === true) task.finals++
    this.events.onChange?.(task, frame)
  }

  #checkAddress(
    task: PhoneTask,
    envelope: { readonly sessionId: string },
    detail: Record<string, unknown>,
    result: Record<string, unknown> | undefined,
  ): void {
    if (envelope.sessionId !== task.sessionId) this.violate('wrong-session', 'not the session of the task', task.taskId)
    if (String(detail['id']) !== task.requestId) this.violate('wrong-id', 'id is not the request’s', task.taskId)
    if (result !== undefined && result['taskId'] !== task.taskId) {
      this.violate('task-mismatch', 'result.taskId is not the envelope’s', task.taskId)
    }
  }

  #accepts(task: PhoneTask, result: Record<string, unknown> | undefined): boolean {
    switch (task.state) {
      case 'running':
        break
      case 'done':
        this.violate(result?.['final'] === true ? 'second-final' : 'after-final', 'the task had ended', task.taskId)
        return false
      case 'timed-out':
        this.violate('idle-timeout', 'the phone had given up waiting', task.taskId)
        return false
      case 'superseded':
        this.violate('superseded-task', 'a newer message had voided the task', task.taskId)
        return false
      case 'undelivered':
        return false
    }
    if (task.canceledAt === undefined) return true
    if (result?.['final'] === true) {
      // It ends the spinner all the same, only after the person was told that it had ended.
      this.violate('closed-late', 'the task was closed after its cancel had been answered', task.taskId)
      return true
    }
    this.violate('after-cancel', 'the task had been cancelled', task.taskId)
    return false
  }

  #apply(
    task: PhoneTask,
    endpoint: number,
    detail: Record<string, unknown>,
    result: Record<string, unknown> | undefined,
    shown: boolean,
  ): SeenFrame {
    const base = { at: this.#clock.now(), endpoint, shown, ...this.#error(task, detail) }
    if (result === undefined) return { ...base, kind: 'error' }
    const final = this.#flag(task, result, 'final')
    if (result['kind'] === 'status-update')
      return { ...base, kind: 'status-update', final, ...this.#status(task, result, shown) }
    return { ...base, kind: 'artifact-update', final, ...this.#artifact(task, result, shown) }
  }

  #error(task: PhoneTask, detail: Record<string, unknown>): { errorCode?: number | string } {
    const error = isRecord(detail['error']) ? detail['error'] : undefined
    const code = error?.['code']
    if (typeof code !== 'number' && typeof code !== 'string') return {}
    if (code === 0 || code === '0') return {}
    task.errorCode = code
    return { errorCode: code }
  }

  #status(task: PhoneTask, result: Record<string, unknown>, shown: boolean): { state: string; text?: string } {
    const status = isRecord(result['status']) ? result['status'] : {}
    const state = typeof status['state'] === 'string' ? status['state'] : ''
    if (!STATES.has(state)) this.violate('bad-state', 'not one of the seven task states', task.taskId)
    if (!shown) return { state }
    task.lastState = state
    const message = isRecord(status['message']) ? status['message'] : {}
    const text = partsOf(message)
      .map(({ text }) => (typeof text === 'string' ? text : ''))
      .join('')
    if (text === '') return { state }
    task.statusTexts.push(text)
    return { state, text }
  }

  #artifact(task: PhoneTask, result: Record<string, unknown>, shown: boolean): Partial<SeenFrame> {
    const append = this.#flag(task, result, 'append')
    const lastChunk = this.#flag(task, result, 'lastChunk')
    const artifact = isRecord(result['artifact']) ? result['artifact'] : {}
    const artifactId = typeof artifact['artifactId'] === 'string' ? artifact['artifactId'] : ''
    if (artifactId === '') this.violate('missing-field', 'artifact.artifactId is missing', task.taskId)
    if (task.artifactIds.has(artifactId)) this.violate('artifact-reused', 'overwrites the piece before', task.taskId)
    const frame = { append, lastChunk, artifactId }
    let shownText: { text?: string; reasoning?: string } = {}
    for (const part of partsOf(artifact)) shownText = { ...shownText, ...this.#part(task, part, frame, shown) }
    return { ...frame, ...shownText }
  }

  #part(
    task: PhoneTask,
    part: Record<string, unknown>,
    frame: { readonly append: boolean; readonly artifactId: string },
    shown: boolean,
  ): { text?: string; reasoning?: string } {
    if (part['kind'] === 'reasoningText') {
      const reasoning = part['reasoningText']
      if (typeof reasoning !== 'string') this.violate('bad-part', 'reasoningText lacks its text', task.taskId)
      else {
        if (shown) task.reasoning = frame.append ? task.reasoning + reasoning : reasoning
        return { reasoning }
      }
      return {}
    }
    const { text } = part
    if (shown && (part['kind'] === 'data' || part['kind'] === 'file')) task.showExtra(part)
    if (part['kind'] !== 'text' || typeof text !== 'string') return {}
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) {
      this.violate('broken-text', 'half a character', task.taskId)
    }
    if (!frame.append && text === '' && task.text !== '') {
      this.violate('empty-replace', 'wipes the visible answer', task.taskId)
    }
    if (shown) task.show(text, frame.append, frame.artifactId)
    return { text }
  }

  /** The official defaults, as a phone would take them; leaving a flag out is how clients go wrong. */
  #flag(task: PhoneTask, result: Record<string, unknown>, name: 'append' | 'lastChunk' | 'final'): boolean {
    const value = result[name]
    if (typeof value === 'boolean') return value
    this.violate('missing-flag', `${name} is not written`, task.taskId)
    return name === 'lastChunk'
  }
}

function partsOf(holder: Record<string, unknown>): readonly Record<string, unknown>[] {
  const { parts } = holder
  return Array.isArray(parts) ? parts.filter(isRecord) : []
}
