import type { JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import type { PhoneTask } from './phone-task.ts'
import { textPart } from './requests.ts'
import type { XiaoyiSimulator } from './simulator.ts'

/** A file that goes inside the message. */
export interface PhoneFile {
  readonly name: string
  readonly mimeType: string
  /** Base64. */
  readonly data: string
}

interface Exchange {
  readonly said: string
  readonly task: PhoneTask
}

export interface ScreenLimits {
  /** Messages with their answers; older ones are forgotten. */
  readonly exchanges: number
  /** Of one text. */
  readonly chars: number
  /** Of all files of a message, encoded: the service takes no larger frames. */
  readonly fileChars: number
}

const LIMITS: ScreenLimits = { exchanges: 100, chars: 20_000, fileChars: 1024 * 1024 }

/** The phone's present conversation as bubbles, and the buttons below it. */
export class PhoneScreen {
  readonly #simulator: XiaoyiSimulator
  readonly #limits: ScreenLimits
  readonly #exchanges: Exchange[] = []
  #violations = 0

  constructor(simulator: XiaoyiSimulator, limits: Partial<ScreenLimits> = {}) {
    this.#simulator = simulator
    this.#limits = { ...LIMITS, ...limits }
    simulator.phone.events.onViolation = () => this.#violations++
  }

  view(): JsonObject {
    const { sessionId } = this.#simulator
    // After clearing, the app is in another conversation, and shows that one.
    const present = this.#exchanges.filter(({ task }) => task.sessionId === sessionId)
    return {
      connected: this.#isConnected,
      bubbles: present.flatMap((exchange) => this.#bubblesOf(exchange)),
      violations: this.#violations,
    }
  }

  /** Returns the task's id. */
  say(text: string, files: readonly PhoneFile[] = []): string {
    if (files.reduce((sum, { data }) => sum + data.length, 0) > this.#limits.fileChars)
      throw new GatewayError('FIELD_INVALID', `files are at most ${this.#limits.fileChars} characters of base64`, {
        field: 'files',
      })
    const fileParts = files.map(({ name, mimeType, data }) => ({ kind: 'file', file: { name, mimeType, bytes: data } }))
    const task = this.#simulator.sayParts([...(text === '' ? [] : [textPart(text)]), ...fileParts])
    const said = [text, ...files.map(({ name }) => `[${name}]`)].filter((line) => line !== '').join('\n')
    this.#exchanges.push({ said, task })
    if (this.#exchanges.length > this.#limits.exchanges) this.#exchanges.shift()
    return task.taskId
  }

  cancel(): void {
    this.#requireAgent()
    this.#simulator.cancel()
  }

  clear(): void {
    this.#requireAgent()
    this.#simulator.clear()
  }

  get #isConnected(): boolean {
    return this.#simulator.connections.ready().length > 0
  }

  /** The service keeps no control for later. */
  #requireAgent(): void {
    if (!this.#isConnected) throw new GatewayError('XIAOYI_LINK_DOWN', 'the gateway is not connected to the phone')
  }

  #bubblesOf({ said, task }: Exchange): JsonObject[] {
    const { chars } = this.#limits
    const isDelivered = task.state !== 'undelivered'
    const asked = { from: 'user', text: said.slice(0, chars), state: isDelivered ? 'sent' : 'undelivered' }
    if (!isDelivered) return [asked]
    const answer = [...task.statusTexts, task.text, ...task.extras].filter((line) => line !== '').join('\n')
    const thinking = task.reasoning === '' ? {} : { thinking: task.reasoning.slice(0, chars) }
    return [asked, { from: 'agent', text: answer.slice(0, chars), ...thinking, state: stateOf(task) }]
  }
}

function stateOf({ state, lastState, errorCode }: PhoneTask): string {
  if (state !== 'done') return state
  if (lastState === 'canceled') return 'canceled'
  return errorCode === undefined ? 'done' : 'failed'
}
